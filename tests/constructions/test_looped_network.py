"""Looped networks with random weights, against the formulas of the paper, written out over columns."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.constructions.looped import LoopedNetwork, evaluate, evaluate_exactly, quantizer, sizes_of
from lengthwise.constructions.looped.forms import Form, pass_units, step
from lengthwise.constructions.looped.network import Affine, Head, LoopedBlock

TOKENS, INPUTS, STATE, SIZE, WIDTH, OUTPUTS = 4, 2, 3, 2, 5, 1


def random_network(rng: np.random.Generator, num_heads: int, num_loops: int, *, timed: bool) -> LoopedNetwork:
    def draw(*shape: int) -> np.ndarray:
        numbers = rng.integers(-3, 4, shape).astype(object)
        return np.frompyfunc(lambda number: Fraction(number, 4), 1, 1)(numbers)

    def affine(rows: int, columns: int) -> Affine:
        return Affine(draw(rows, columns), draw(rows))

    heads = tuple(
        Head(draw(SIZE, STATE), draw(SIZE, STATE), draw(SIZE, STATE), draw(STATE, SIZE)) for _ in range(num_heads)
    )
    block = LoopedBlock(heads, affine(WIDTH, STATE), affine(STATE, WIDTH))
    scales = draw(num_loops, STATE) if timed else None
    return LoopedNetwork(affine(STATE, INPUTS), block, affine(OUTPUTS, STATE), num_loops, scales)


def by_the_paper(network: LoopedNetwork, columns: np.ndarray, softmax) -> np.ndarray:
    """Eq. (1) to (6) for one sequence whose tokens are columns; `softmax` is one of columns."""
    x = network.read_in.weight @ columns + network.read_in.bias[:, None]
    (w_1, b_1), (w_2, b_2) = network.block.up, network.block.down
    for loop in range(network.num_loops):
        attended = x * 0
        for query, key, value, output in network.block.heads:
            attended = attended + output @ (value @ x) @ softmax((key @ x).T @ (query @ x))
        x = x + attended
        change = w_2 @ np.maximum(w_1 @ x + b_1[:, None], 0) + b_2[:, None]
        x = x + (change if network.scales is None else network.scales[loop][:, None] * change)
    return network.read_out.weight @ x + network.read_out.bias[:, None]


def hardmax(scores: np.ndarray) -> np.ndarray:
    chosen = scores == scores.max(0)
    return np.array(
        [[Fraction(int(cell), int(total)) for cell, total in zip(row, chosen.sum(0), strict=True)] for row in chosen]
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp((scores - scores.max(0)).astype(float))
    return raised / raised.sum(0)


networks = st.builds(
    random_network,
    st.integers(0, 10_000).map(np.random.default_rng),
    st.integers(0, 2),
    st.integers(0, 3),
    timed=st.booleans(),
)


@given(networks, st.integers(0, 10_000))
def test_exact_evaluation_is_the_formula_with_hardmax(network: LoopedNetwork, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = np.array(
        [[[Fraction(int(x), 3) for x in rng.integers(-2, 3, INPUTS)] for _ in range(TOKENS)] for _ in "ab"]
    )
    outputs = evaluate_exactly(network, inputs)
    for one, columns in zip(outputs, inputs, strict=True):
        assert np.array_equal(one.T, by_the_paper(network, columns.T, hardmax))


@given(networks, st.integers(0, 10_000))
def test_evaluation_in_floats_is_the_formula_with_softmax(network: LoopedNetwork, seed: int) -> None:
    inputs = torch.randn(2, TOKENS, INPUTS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    outputs = evaluate(network, inputs, temperature=1.0)
    for one, rows in zip(outputs, inputs, strict=True):
        expected = by_the_paper(network, rows.numpy().T, softmax).astype(float)
        torch.testing.assert_close(one.T, torch.from_numpy(expected), rtol=1e-9, atol=1e-9)


def test_sizes_count_what_is_there() -> None:
    network = random_network(np.random.default_rng(0), num_heads=2, num_loops=7, timed=False)
    assert sizes_of(network) == (STATE, 2, SIZE, WIDTH, 7, 2 * 4 * SIZE * STATE + 2 * WIDTH * STATE + WIDTH + STATE)


def total(units, **at: int) -> int:
    """What units write to y when coordinates have these values."""
    values = [unit.reads.constant + sum(w * at[name] for name, w in unit.reads.weights.items()) for unit in units]
    return sum(unit.writes["y"] * max(value, 0) for unit, value in zip(units, values, strict=True))


def test_steps_and_impulses_on_integers() -> None:
    x, t = Form.coordinate("x"), Form.coordinate("t")
    for at in range(-5, 6):
        assert total(step(x - 1, {"y": 3}), x=at) == 3 * (at >= 1)
        for value in range(-4, 5):
            units = pass_units(t - 2, [(x, {"y": 1}), (-1 * x + 2, {"y": 10})], bound=6)
            assert len(units) == 6
            assert total(units, x=value, t=at) == (at == 2) * (value + 10 * (2 - value))


@pytest.mark.unchecked
@pytest.mark.parametrize("shape", [(3, 1), (2, 3, 2), (2, 0, 1)])
def test_inputs_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    network = quantizer(num_bins=4)
    with pytest.raises(ValueError, match=r"inputs: expected shape \[B, T, 1\] with T of at least 1, got"):
        evaluate_exactly(network, np.zeros(shape))
    with pytest.raises(ValueError, match=r"inputs: expected shape \[B, T, 1\] with T of at least 1, got"):
        evaluate(network, torch.zeros(shape, dtype=torch.float64))


def test_other_dtypes_and_temperatures_are_refused() -> None:
    network = quantizer(num_bins=4)
    with pytest.raises(ValueError, match=r"inputs: expected float64, got torch\.float32"):
        evaluate(network, torch.zeros(1, 1, 1))
    for temperature in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="temperature: expected a positive number, got"):
            evaluate(network, torch.zeros(1, 1, 1, dtype=torch.float64), temperature)
