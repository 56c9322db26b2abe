"""The three steps of the theorem and the memory with factors, on every point of their grids, and their sizes."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from lengthwise.constructions.looped import (
    bit_sum,
    contextual_mapping,
    evaluate,
    evaluate_exactly,
    extended_contextual_mapping,
    quantizer,
    sizes_of,
    stepwise_memory,
    timed_memory,
)
from lengthwise.constructions.looped.bits import MAX_VALUES


def indices(count: int) -> np.ndarray:
    """0 ... count - 1 as tokens of one sequence."""
    return np.arange(count)[None, :, None]


@pytest.mark.parametrize("num_bins", range(2, 10))
def test_the_quantizer_is_right_from_edge_to_edge_of_every_interval(num_bins: int) -> None:
    sharpness = 7
    network = quantizer(num_bins, 1, sharpness)
    bins = range(num_bins)
    edges = [(Fraction(k, num_bins), Fraction(k + 1, num_bins) - Fraction(1, num_bins * sharpness)) for k in bins]
    edges[-1] = (edges[-1][0], Fraction(1))
    for share in (Fraction(0), Fraction(1, 3), Fraction(1)):
        points = [[low + share * (high - low)] for low, high in edges]
        assert evaluate_exactly(network, [points]).flatten().tolist() == list(bins)
    inside = [[high + Fraction(1, 2 * num_bins * sharpness)] for _, high in edges[:-1]]
    for k, between in enumerate(evaluate_exactly(network, [inside]).flatten()):
        assert k < between < k + 1, "in a gap it is on its way"


@pytest.mark.parametrize("token_dim", [1, 2, 3])
def test_sizes_of_the_quantizer(token_dim: int) -> None:
    sizes = sizes_of(quantizer(6, token_dim))
    assert sizes[:5] == (2 * token_dim + 1, 0, 0, 2 * token_dim, 6 - 1)


def test_the_quantizer_takes_coordinates_apart_and_runs_in_floats() -> None:
    network = quantizer(8, 2)
    points = torch.rand(1, 500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outside_gaps = ((8 * points) % 1 <= 1 - 2**-10).all(-1)[0]
    assert outside_gaps.sum() > 490
    assert torch.equal(evaluate(network, points)[:, outside_gaps], (8 * points[:, outside_gaps]).floor())


GRIDS = [(4, 2, 1), (3, 3, 1), (2, 2, 2), (2, 3, 2), (5, 1, 1), (3, 1, 2), (2, 2, 1), (4, 4, 1)]


def sequences(num_bins: int, num_tokens: int, token_dim: int) -> np.ndarray:
    """All sequences of different tokens, [B, T, d]."""
    return np.array(list(permutations(product(range(num_bins), repeat=token_dim), num_tokens)))


def ids_in_context(grid: tuple[int, int, int], tokens: np.ndarray) -> np.ndarray:
    """Digits z, z_(1), ..., z_(T) in base n^d, where z has the digits of the token in base n."""
    num_bins, _, token_dim = grid
    ids = tokens @ num_bins ** np.arange(token_dim)[::-1]
    numbers = ids
    for digit in np.sort(ids, 1)[:, ::-1].T:
        numbers = numbers * num_bins**token_dim + digit[:, None]
    return numbers


@pytest.mark.parametrize("grid", GRIDS)
def test_the_contextual_mapping_is_one(grid: tuple[int, int, int]) -> None:
    """Definition 3.2, on all sequences of different tokens."""
    tokens, network = sequences(*grid), contextual_mapping(*grid)
    outputs = evaluate_exactly(network, tokens)[..., 0]
    assert (outputs == ids_in_context(grid, tokens)).all()
    contexts = {}
    for row, sequence in zip(outputs, tokens, strict=True):
        assert len(set(row)) == len(row), "entries of a sequence are distinct"
        contexts.setdefault(frozenset(map(tuple, sequence)), set()).update(row)
    assert len(set().union(*contexts.values())) == sum(map(len, contexts.values())), "those of different ones, too"
    assert torch.equal(
        evaluate(network, torch.from_numpy(tokens).double()).long()[..., 0], torch.tensor(outputs.tolist())
    )
    assert sizes_of(network)[:5] == (4, 1, 1, 3, grid[1]), "Lemma A.5: one head, N loops"


@pytest.mark.parametrize("grid", GRIDS)
def test_extended_ids_leave_unused_ones_before_every_carry(grid: tuple[int, int, int]) -> None:
    (num_bins, num_tokens, token_dim), tokens = grid, sequences(*grid)
    network = extended_contextual_mapping(*grid)
    outputs = evaluate_exactly(network, tokens)[..., 0].astype(int)
    plain = ids_in_context(grid, tokens)
    assert (outputs == 2 * num_bins * (plain // num_bins) + plain % num_bins).all()
    assert 0 <= outputs.min() <= outputs.max() < 2 * num_bins ** (token_dim * (num_tokens + 1))
    used = np.unique(outputs)
    carries = np.diff(used // (2 * num_bins)) > 0
    assert (np.diff(used)[carries] > num_bins).all()
    assert torch.equal(evaluate(network, torch.from_numpy(tokens).double()).long()[..., 0], torch.from_numpy(outputs))
    assert sizes_of(network)[:5] == (5, 1, 1, 4, num_tokens)


bits = st.lists(st.integers(0, 1), min_size=1, max_size=70)


@given(bits)
@example([1] * 200)
@example([0])
def test_bits_are_summed_up_to_every_index(bits: list[int]) -> None:
    network = bit_sum(bits)
    outputs = evaluate_exactly(network, indices(len(bits) + 1)).flatten().tolist()
    assert outputs == [0, *np.cumsum(bits).tolist()]
    assert sizes_of(network)[:5] == (6, 0, 0, 8, len(bits))


@pytest.mark.parametrize("pattern", [[1], [0, 1], [1, 1, 0], [0, 0, 0, 0, 1]])
def test_float64_extracts_51_bits_and_no_more(pattern: list[int]) -> None:
    bits = (pattern * 51)[:51]
    outputs = evaluate(bit_sum(bits), torch.arange(52, dtype=torch.float64)[None, :, None])
    assert outputs.flatten().tolist() == [0, *np.cumsum(bits).tolist()]
    with pytest.raises(ValueError, match=r"expected weights that are integers .* got a weight with 5\d bits"):
        evaluate(bit_sum([*bits, 1]), torch.zeros(1, 1, 1, dtype=torch.float64))


numbers = st.fractions(-5, 5, max_denominator=60)
tables = st.integers(1, 3).flatmap(lambda size: st.lists(st.tuples(*[numbers] * size), min_size=1, max_size=40))


@given(tables)
@example([(Fraction(2),)] * 5)
@example([(0,), (1,), (Fraction(1, 2),), (Fraction(3, 2),)])
def test_stepwise_memory_is_as_near_as_its_largest_step(targets: list[tuple[Fraction, ...]]) -> None:
    """Lemma 4.1, and twice as near: rounded to the nearest."""
    network = stepwise_memory(targets)
    outputs, expected = evaluate_exactly(network, indices(len(targets)))[0], np.array(targets, dtype=object)
    largest = abs(np.diff(expected, axis=0, prepend=expected[:1])).max(0)
    assert (2 * abs(outputs - expected) <= largest).all()
    sizes, dimension = sizes_of(network), expected.shape[1]
    assert sizes[:5] == (6 * dimension + 2, 0, 0, 10 * dimension + 2, len(targets) - 1)
    assert sizes.state_dim <= 12 * dimension, "the paper's size, which docs/looped.md cites"
    assert sizes.width <= 18 * dimension


def test_timed_memory_is_exact_for_a_thousand_random_targets() -> None:
    """Theorem 4.2: bit for bit in float64, and for numbers of 200 bits in integers."""
    generator = torch.Generator().manual_seed(0)
    targets = 1e3 * torch.randn(1000, 3, generator=generator, dtype=torch.float64)
    network = timed_memory(targets.tolist())
    outputs = evaluate(network, torch.arange(1000, dtype=torch.float64)[None, :, None])
    assert torch.equal(outputs[0], targets)
    sizes = sizes_of(network)
    assert sizes[:5] == (3 + 2, 0, 0, 3, 1000)
    assert sizes.state_dim <= 4 * 3, "the paper's size, which docs/looped.md cites"
    assert sizes.width <= 6 * 3
    rng = np.random.default_rng(0)
    large = [[int.from_bytes(rng.bytes(25), "little", signed=True)] for _ in range(1000)]
    sample = indices(1000)[:, ::20]
    assert evaluate_exactly(timed_memory(large), sample)[0].tolist() == large[::20]


@given(tables)
def test_timed_memory_is_exact_for_fractions(targets: list[tuple[Fraction, ...]]) -> None:
    assert evaluate_exactly(timed_memory(targets), indices(len(targets)))[0].tolist() == [list(y) for y in targets]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quantizer(1), "num_bins: expected a whole number from 2 to 262,144, got 1"),
        (lambda: quantizer(2.5), "num_bins: expected a whole number from 2 to 262,144, got 2.5"),
        (lambda: quantizer(4, 1.5), "token_dim: expected a whole number from 1 to 1,000, got 1.5"),
        (lambda: quantizer(4, 1, 0.5), "sharpness: expected a whole number of at least 1, got 0.5"),
        (lambda: contextual_mapping(3, 1.5), "num_tokens: expected a whole number, got 1.5"),
        (lambda: quantizer(4, 0), "token_dim: expected a whole number from 1 to 1,000, got 0"),
        (lambda: quantizer(10**12), "num_bins: expected a whole number from 2 to 262,144, got 1000000000000"),
        (lambda: quantizer(4, 10**12), "token_dim: expected a whole number from 1 to 1,000, got 1000000000000"),
        (lambda: contextual_mapping(10, 10**9, 9), "num_tokens: expected contextual IDs of at most 10,000 bits, "),
        (lambda: quantizer(4, 1, 0), "sharpness: expected a whole number of at least 1, got 0"),
        (lambda: contextual_mapping(3, 4), "num_tokens: expected a whole number from 1 to 3, got 4"),
        (lambda: extended_contextual_mapping(3, 0), "num_tokens: expected a whole number from 1 to 3, got 0"),
        (lambda: bit_sum([]), "bits: expected at least one bit, each 0 or 1, got"),
        (lambda: bit_sum([0, 2]), "bits: expected at least one bit, each 0 or 1, got"),
        (lambda: bit_sum([0] * MAX_VALUES), "values: expected at most 262,144 values, got 262,145"),
        (
            lambda: stepwise_memory([]),
            "targets: expected one or more vectors of equal, nonzero length, got 0 vectors",
        ),
        (
            lambda: timed_memory([[1], [1, 2]]),
            "targets: expected one or more vectors of equal, nonzero length, got 2",
        ),
        (lambda: timed_memory([[1]] * (MAX_VALUES + 1)), "values: expected at most 262,144 values, got 262,145"),
    ],
)
def test_sizes_that_cannot_be_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
