"""Theorem 3.7 as one block, on every cube of small grids, against its three steps one after another."""

from fractions import Fraction
from itertools import product
from math import pi

import numpy as np
import pytest
import torch
from known_moduli import contextual_modulus, error, mixed, sequence_modulus, token_modulus, values_of

from lengthwise.constructions.looped import (
    error_bound,
    evaluate,
    evaluate_exactly,
    extended_contextual_mapping,
    looped_approximation,
    quantizer,
    sizes_of,
    stepwise_memory,
    timed_approximation,
)
from lengthwise.constructions.looped.approximation import interpolate, loop_budget, used_ids
from lengthwise.constructions.looped.context import Grid

SHARPNESS = 1 << 10
SMALL = [Grid(2, 2, 1), Grid(3, 2, 1), Grid(4, 2, 1), Grid(3, 3, 1), Grid(2, 2, 2), Grid(5, 1, 1), Grid(2, 1, 2)]
GRIDS = [
    *SMALL,
    pytest.param(Grid(3, 2, 2), marks=pytest.mark.slow),
    pytest.param(Grid(8, 2, 1), marks=pytest.mark.slow),
]


def wave(x: torch.Tensor) -> torch.Tensor:
    """Each token's own bump, half of those of the others, and a product of its coordinates."""
    bump = (1 - torch.cos(2 * pi * x)) / 2
    return bump + 0.5 * (bump.sum(1, keepdim=True) - bump) + x.prod(-1, keepdim=True)


def cubes(grid: Grid) -> np.ndarray:
    """The interval numbers of all cubes, [B, T, d]."""
    size = grid.num_tokens * grid.token_dim
    every = list(product(range(grid.num_bins), repeat=size))
    return np.array(every).reshape(-1, grid.num_tokens, grid.token_dim)


def points(grid: Grid, digits: np.ndarray, where: str) -> np.ndarray:
    """A point in each cube: its lowest corner, its center, or the highest corner of what lies outside the gap."""
    gap = Fraction(1, SHARPNESS)
    inside = {"low": Fraction(0), "center": Fraction(1, 2), "high": 1 - gap}[where]

    def point(digit: int) -> Fraction:
        last = where == "high" and digit == grid.num_bins - 1
        return Fraction(1) if last else (int(digit) + inside) / grid.num_bins

    return np.frompyfunc(point, 1, 1)(digits)


def distinct(digits: np.ndarray) -> np.ndarray:
    """Which cubes have no two equal tokens."""
    return np.array([len(set(map(tuple, tokens))) == len(tokens) for tokens in digits])


def center_values(grid: Grid, digits: np.ndarray) -> np.ndarray:
    return wave(torch.from_numpy(points(grid, digits, "center").astype(float))).numpy()


@pytest.mark.parametrize("grid", GRIDS)
def test_one_block_does_what_three_do_one_after_another(grid: Grid) -> None:
    """Exactly, on all cubes of different tokens, in every order of the tokens."""
    digits = cubes(grid)[distinct(cubes(grid))]
    made = looped_approximation(wave, *grid)
    ids, values = used_ids(wave, grid)
    bins = evaluate_exactly(quantizer(grid.num_bins, grid.token_dim), points(grid, digits, "high"))
    assert (bins == digits).all()
    in_context = evaluate_exactly(extended_contextual_mapping(*grid), bins)
    assert set(in_context.flatten()) == set(ids)
    steps = evaluate_exactly(stepwise_memory(interpolate(ids, values)), in_context - ids[0])
    for where in ("low", "high"):
        assert (evaluate_exactly(made.network, points(grid, digits, where)) == steps).all()
    away = abs(np.frompyfunc(Fraction, 1, 1)(center_values(grid, digits)) - steps)
    # Rounding may give a function's values in another order of the tokens another last bit.
    assert (away <= made.tolerance + Fraction(1, 10**12)).all()


@pytest.mark.parametrize("grid", GRIDS)
def test_with_factors_the_block_is_exact_on_every_cube(grid: Grid) -> None:
    digits = cubes(grid)[distinct(cubes(grid))]
    made = timed_approximation(wave, *grid)
    for where in ("low", "high"):
        outputs = evaluate_exactly(made.network, points(grid, digits, where)).astype(float)
        np.testing.assert_allclose(outputs, center_values(grid, digits), rtol=1e-14, atol=1e-14)
    assert not made.tolerance.any()


@pytest.mark.parametrize("grid", SMALL)
def test_sizes_do_not_depend_on_the_grid_and_loops_keep_to_the_budget(grid: Grid) -> None:
    (n, num_tokens, d), budget = grid, loop_budget(grid)
    stepwise, timed = (sizes_of(make(wave, *grid).network) for make in (looped_approximation, timed_approximation))
    assert stepwise[:4] == (8 * d + 4, 1, 1, 12 * d + 10)
    assert timed[:4] == (3 * d + 4, 1, 1, 2 * d + 11)
    assert stepwise.state_dim <= 17 * d + 9, "the paper's size, which docs/looped.md cites"
    assert stepwise.width <= 49 * d + 25
    num_ids = 2 * n ** ((num_tokens + 1) * d)
    assert stepwise.num_loops <= (n - 1) + num_tokens + (num_ids - 1) + 1 <= budget
    assert timed.num_loops == stepwise.num_loops + 1 <= budget


@pytest.mark.parametrize("num_bins", [2, 3])
@pytest.mark.parametrize("make", [looped_approximation, timed_approximation])
def test_float64_with_softmax_gives_the_same_where_it_can_count(make, num_bins: int) -> None:
    made = make(wave, num_bins, 2)
    digits = cubes(made.grid)
    inputs = torch.from_numpy(points(made.grid, digits, "center").astype(float))
    exact = evaluate_exactly(made.network, points(made.grid, digits, "center")).astype(float)
    torch.testing.assert_close(evaluate(made.network, inputs), torch.from_numpy(exact), rtol=1e-14, atol=1e-14)


def test_float64_is_refused_where_it_cannot() -> None:
    made = looped_approximation(wave, num_bins=4, num_tokens=2)
    with pytest.raises(ValueError, match=r"expected weights that are integers .* got a weight with 11. bits"):
        evaluate(made.network, torch.zeros(1, 2, 1, dtype=torch.float64))


@pytest.mark.parametrize("num_bins", [2, 3, 5])
def test_the_error_stays_below_the_bound(num_bins: int) -> None:
    """In L^2, with the moduli of `mixed`: sin(pi t), half of it, and sqrt(2) 1.5 sin(pi t / sqrt(2))."""
    grid = Grid(num_bins, 2, 1)
    stepwise, timed = looped_approximation(mixed, *grid), timed_approximation(mixed, *grid)
    delta = 1 / num_bins
    assert float(2 * stepwise.tolerance[0]) <= token_modulus(delta) + contextual_modulus(delta * 2**0.5)
    largest = 2**0.5 * 1.5
    bound = error_bound(
        grid, sequence=sequence_modulus, token=token_modulus, contextual=contextual_modulus, largest=largest
    )
    assert 0 < error(values_of(stepwise), num_bins, 2, 60) <= bound
    bound = error_bound(grid, sequence=sequence_modulus, token=None, contextual=None, largest=largest)
    assert 0 < error(values_of(timed), num_bins, 2, 60) <= bound


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"largest": -1.0}, "largest: expected a bound of at least 0 on the error's p-norm, got -1.0"),
        ({"largest": float("nan")}, "largest: expected a bound of at least 0 on the error's p-norm, got nan"),
        ({"p": 0.5}, "p: expected at least 1, got 0.5; take p >= 1, because no smaller p defines a norm"),
    ],
)
def test_error_bounds_reject_what_is_not_a_norm(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        error_bound(Grid(4, 2, 1), **{"sequence": abs, "token": None, "contextual": None, "largest": 1.0, **wrong})


@pytest.mark.parametrize(
    ("function", "sizes", "message"),
    [
        (wave, (1, 2, 1), "num_bins: expected a whole number from 2 to 262,144, got 1"),
        (wave, (2, 3, 1), "num_tokens: expected a whole number from 1 to 2, got 3"),
        (wave, (2, 2, 0), "token_dim: expected a whole number from 1 to 1,000, got 0"),
        (wave, (60, 2, 1), "num_bins: expected at most 262,144 contextual IDs, got 432,000 = 2"),
        (
            lambda x: x.cumsum(1),
            (4, 2, 1),
            "function: expected permuted outputs for permuted tokens, got different outputs",
        ),
        (
            lambda x: x.sum((1, 2)),
            (4, 2, 1),
            r"function: expected finite outputs of shape \[6, 2, Y\], got shape \[6\]",
        ),
        (lambda x: x / 0, (4, 2, 1), "function: expected finite outputs of shape"),
    ],
)
@pytest.mark.parametrize("make", [looped_approximation, timed_approximation])
def test_what_cannot_be_represented_is_refused(make, function, sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(function, *sizes)
    with pytest.raises(ValueError, match="sharpness: expected a whole number of at least 1, got 0"):
        make(wave, 2, 2, 1, 0)
