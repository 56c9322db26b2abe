"""Propositions A.1 and A.7, Corollary 3.8, norms other than L^2, and how the sizes of the block add up."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from known_moduli import contextual_modulus, error, mixed, sequence_modulus, token_modulus, values_of

from lengthwise.constructions.looped import (
    bit_sum,
    contextual_mapping,
    error_bound,
    evaluate_exactly,
    extended_contextual_mapping,
    looped_approximation,
    quantizer,
    sizes_of,
    stepwise_memory,
)
from lengthwise.constructions.looped.context import Grid
from lengthwise.constructions.looped.forms import CLOCK, Form, Unit, pass_units, step

X = Form.coordinate("x")


def total(units: Sequence[Unit], x: Fraction) -> Fraction:
    """What the units write to y where the coordinate x is this."""
    read = (max(unit.reads.constant + unit.reads.weights.get("x", 0) * x, 0) for unit in units)
    return sum((unit.writes["y"] * value for unit, value in zip(units, read, strict=True)), Fraction(0))


def rectangle(low: int, high: int, sharpness: int) -> list[Unit]:
    """Proposition A.1: 1 from `low` to just before `high`, else 0, of four ReLUs: a step up and a step down."""
    return [*step(sharpness * (X - low), {"y": 1}), *step(sharpness * (X - high), {"y": -1})]


@given(st.integers(-5, 5), st.integers(1, 5), st.integers(1, 1_000), st.fractions(-12, 12))
def test_a_rectangular_function_is_four_relus(low: int, width: int, sharpness: int, x: Fraction) -> None:
    units, ramp = rectangle(low, low + width, sharpness), Fraction(1, sharpness)
    assert len(units) == 4
    value = total(units, x)
    assert 0 <= value <= 1
    if low <= x <= low + width - ramp:
        assert value == 1
    if x <= low - ramp or x >= low + width:
        assert value == 0


@pytest.mark.parametrize("sharpness", [1, 3, 10, 1_000])
def test_its_error_is_as_small_as_one_likes(sharpness: int) -> None:
    """In L^1 it is two triangles of base 1 / sharpness and height 1: trapezoids between corners are exact."""
    units = rectangle(0, 2, sharpness)
    ramp = Fraction(1, sharpness)
    corners = [(-ramp, Fraction(0), 0), (2 - ramp, Fraction(2), 1)]
    error = Fraction(0)
    for start, end, right in corners:
        gaps = [abs(total(units, x) - right) for x in (start, end)]
        assert sorted(gaps) == [0, 1], "at one end of the ramp it is right, at the other it has its value beyond"
        assert abs(total(units, (start + end) / 2) - right) == Fraction(1, 2)
        error += (end - start) * sum(gaps) / 2
    assert error == ramp


def depth_two(num_bits: int) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Weights and biases of Proposition A.7: three affine maps with ReLUs between them, applied once in each loop.

    The state is (x, k, sum): what is left of the bits as a binary fraction, how many of them are to be added, and their
    sum so far. The first layer has beta = [2 x >= 1] and iota = [k >= 1], two units each, x and the sum; the second
    beta and iota = ReLU(beta + iota - 1), 2 x - beta, k - 1 and the sum. No weight depends on the bits.
    """
    steep = 2**num_bits
    first = np.array([[steep, 0, 0], [steep, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=object)
    biases = np.array([1 - steep // 2, -steep // 2, 0, -1, 0, 0], dtype=object)
    beta, iota = np.array([1, -1, 0, 0, 0, 0], dtype=object), np.array([0, 0, 1, -1, 0, 0], dtype=object)
    unit = np.eye(6, dtype=int).astype(object)
    second = np.stack([beta + iota, 2 * unit[4] - beta, unit[3], unit[5]])
    third = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=object)
    zeros = np.zeros(4, dtype=object)
    return (first, biases), (second, np.array([-1, 0, 0, 0], dtype=object) + zeros), (third, zeros[:3])


def run_depth_two(bits: Sequence[int], k: int) -> Fraction:
    """The output after a loop for each bit."""
    state = np.array([Fraction(int("".join(map(str, bits)), 2), 2 ** len(bits)), Fraction(k), Fraction(0)])
    (up, up_bias), (across, across_bias), (down, down_bias) = depth_two(len(bits))
    for _ in bits:
        hidden = np.maximum(across @ np.maximum(up @ state + up_bias, 0) + across_bias, 0)
        state = down @ hidden + down_bias
    return state[2]


@pytest.mark.parametrize("num_bits", range(1, 7))
def test_two_layers_add_the_first_bits_of_any_number(num_bits: int) -> None:
    """Proposition A.7, for all bits and all k, with one network of depth 2."""
    assert [len(bias) for _, bias in depth_two(num_bits)] == [6, 4, 3]
    for bits in product((0, 1), repeat=num_bits):
        for k in range(num_bits + 1):
            assert run_depth_two(bits, k) == sum(bits[:k])


@given(st.lists(st.integers(0, 1), min_size=1, max_size=64), st.data())
def test_one_layer_does_the_same_with_the_bits_in_its_weights(bits: list[int], data) -> None:
    """Lemma A.8 next to Proposition A.7: 8 units and state 6 instead of two layers and state 3."""
    k = data.draw(st.integers(0, len(bits)))
    network = bit_sum(bits)
    assert evaluate_exactly(network, [[[k]]]).item() == run_depth_two(bits, k)
    sizes = sizes_of(network)
    assert (sizes.state_dim, sizes.width) == (6, 8)


def bound(num_bins: int, p: float) -> float:
    """Theorem 3.7 for `mixed`: outputs differ by at most 1.5 in each of two tokens."""
    return error_bound(
        Grid(num_bins, 2, 1),
        sequence=lambda t: sequence_modulus(t, p),
        token=token_modulus,
        contextual=contextual_modulus,
        largest=1.5 * 2 ** (1 / p),
        p=p,
    )


NORMS = (1.0, 1.5, 2.0, 4.0)


def test_the_modulus_is_one_for_every_norm() -> None:
    """The bound's first term is no less than what pairs of inputs do, p by p."""
    x = torch.rand(20_000, 2, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step = torch.randn(20_000, 2, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for t in (0.05, 0.2, 0.6):
        other = x + t * step / step.norm(dim=1, keepdim=True)
        inside = ((other >= 0) & (other <= 1)).all(1)[:, 0]
        for p in NORMS:
            changes = (mixed(x) - mixed(other)).flatten(1).norm(p=p, dim=1)[inside]
            assert 0.8 * sequence_modulus(t, p) * 2 ** (1 / max(p, 2.0) - 0.5) <= float(changes.max())
            assert float(changes.max()) <= sequence_modulus(t, p) * (1 + 1e-12)


def test_errors_stay_below_the_bound_in_every_norm_and_fall_below_any_number() -> None:
    """Theorem 3.7 for p other than 2, and Corollary 3.8: of each error that is asked for, a grid is below it."""
    values = {n: values_of(looped_approximation(mixed, n, 2, 1)) for n in (2, 4, 8)}
    for p in NORMS:
        errors = [error(of_grid, n, p) for n, of_grid in values.items()]
        assert all(0 < e <= bound(n, p) for e, n in zip(errors, values, strict=True))
        if p <= 2:  # above, cubes with equal tokens decide, whose share falls as delta^(1/p)
            assert errors[0] > errors[1] > errors[2]
        for limit in (1.0, 0.1, 0.001):
            # Half is left to the terms that fall as delta, whose slopes add up to less than 21 (3 pi + 2 (pi + pi /
            # sqrt 2) for p = 1), and half to the last one, 1.5 (2 delta)^(1/p).
            num_bins = 1 + int(max(42 / limit, (3 * 2 ** (1 / p) / limit) ** p))
            assert bound(num_bins, p) < limit


def test_the_bound_is_no_bound_for_another_function() -> None:
    """A network for 3 f is not within f's bound of f: the comparison of the test above can fail."""
    values = values_of(looped_approximation(lambda x: 3 * mixed(x), 8, 2, 1))
    for p in NORMS:
        assert error(values, 8, p) > bound(64, p), p


@pytest.mark.parametrize("token_dim", [1, 2, 3])
def test_sizes_of_the_block_add_up_from_its_parts(token_dim: int) -> None:
    d = token_dim
    table = [[Fraction(k * (i + 1)) for i in range(d)] for k in range(5)]
    first, second, third = (
        sizes_of(part) for part in (quantizer(3, d), extended_contextual_mapping(3, 2, d), stepwise_memory(table))
    )
    assert (first.state_dim - 1, first.width) == (2 * d, 2 * d), "the clock, shared by all parts, not counted"
    assert (second.num_heads, second.head_dim, second.width) == (1, 1, 4)
    assert sizes_of(contextual_mapping(3, 2, d)).width == 3
    assert (third.state_dim - 2, third.width) == (6 * d, 10 * d + 2), "nor the ID, which is the second part's number"

    handed_over = len(pass_units(CLOCK, [(X, {"x": 1})], bound=1))  # the token's ID, once, in loop n
    whole = sizes_of(looped_approximation(lambda x: x - x.mean(1, keepdim=True), 2, 2, d).network)
    assert whole.width == first.width + second.width + third.width + handed_over == 12 * d + 10
    coordinates = 3  # waiting, gathered and number of the second part; IDs are never copied
    assert whole.state_dim == (first.state_dim - 1) + coordinates + (third.state_dim - 2) + 1 == 8 * d + 4
    assert whole.state_dim < 17 * d + 9, "the paper's size, which docs/looped.md cites"
    assert whole.width < 49 * d + 25
