"""Rational matrices: their orders, the words that they generate, and integers that are never rounded."""

from itertools import combinations
from math import gcd, lcm, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_fractions import in_fractions
from sympy import Poly, cyclotomic_poly, divisors, symbols, totient

from lengthwise.constructions.memorization.closed_form import repeats
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.rational import (
    companion_blocks,
    frequencies_of,
    memorize_rationally,
    psi,
    sets_of_orders,
)

PSI = [0, 1, 2, 2, 4, 2, 6, 4, 6, 4, 10, 4, 12, 6, 6, 8, 16, 6, 18, 6, 8, 10, 22, 6, 20, 12, 18, 8, 28, 6]


def test_psi_is_the_smallest_sum_over_sets_of_divisors() -> None:
    assert [psi(p) for p in range(1, 31)] == PSI
    assert [psi(p) for p in (36, 42, 60)] == [8, 8, 8]
    for p in range(1, 61):
        sums = [
            sum(int(totient(j)) for j in orders)
            for size in range(len(divisors(p)) + 1)
            for orders in combinations(divisors(p), size)
            if lcm(*orders) == p
        ]
        assert psi(p) == (0 if p == 1 else min(sums))
    assert [p for p in range(1, 61) if psi(p) <= 2] == [1, 2, 3, 4, 6]


def test_no_rational_3_by_3_matrix_has_order_8() -> None:
    """Its minimal polynomial would be a product of factors of x^8 - 1 of degree at most 3 in all."""
    x = symbols("x")
    factors = [Poly(cyclotomic_poly(j, x)) for j in (1, 2, 4, 8)]
    orders = {}
    for size in range(1, 5):
        for product in combinations(zip((1, 2, 4, 8), factors, strict=True), size):
            degree = sum(factor.degree() for _, factor in product)
            orders.setdefault(degree, set()).add(lcm(*(j for j, _ in product)))
    assert 8 not in set().union(*(orders[d] for d in orders if d <= 3))
    assert 8 in orders[4]
    assert psi(8) == 4


@pytest.mark.parametrize("period", range(1, 31))
def test_a_matrix_of_finite_order_has_a_minimal_polynomial_of_cyclotomic_factors(period: int) -> None:
    x = symbols("x")
    whole = Poly(x**period - 1, x)
    assert prod((Poly(cyclotomic_poly(j, x), x) for j in divisors(period)), start=Poly(1, x)) == whole
    if period == 1:
        return
    _, orders = next(sets_of_orders(period))
    matrix, _ = companion_blocks(orders)
    shear = np.eye(len(matrix), dtype=int)
    shear[0, 1:] = range(1, len(matrix))
    back = np.eye(len(matrix), dtype=int)
    back[0, 1:] = -shear[0, 1:]
    matrix = shear @ matrix @ back  # no longer a companion, of the same order
    minimal = _minimal_polynomial(matrix, [Poly(cyclotomic_poly(j, x), x) for j in divisors(period)])
    assert whole.rem(minimal).is_zero
    assert minimal.degree() <= len(matrix)


def _minimal_polynomial(matrix: np.ndarray, factors: list[Poly]) -> Poly:
    """The product of least degree that is 0 at the matrix, tried one by one."""
    subsets = [subset for size in range(len(factors) + 1) for subset in combinations(factors, size)]
    products = [prod(subset, start=Poly(1, factors[0].gen)) for subset in subsets]
    for product in sorted(products, key=Poly.degree):
        if product.degree() <= len(matrix) and not _at(product, matrix).any():
            return product
    raise AssertionError("no product of the factors is 0 at the matrix")


def _at(polynomial: Poly, matrix: np.ndarray) -> np.ndarray:
    """By Horner's rule."""
    value = np.zeros_like(matrix)
    for coefficient in polynomial.all_coeffs():
        value = value @ matrix + int(coefficient) * np.eye(len(matrix), dtype=int)
    return value


@pytest.mark.parametrize("period", range(2, 31))
def test_companions_have_the_order_and_the_frequencies(period: int) -> None:
    for d, orders in sets_of_orders(period):
        matrix, first = companion_blocks(orders)
        assert matrix.shape == (d, d)
        powers = [np.linalg.matrix_power(matrix, k) for k in range(1, period + 1)]
        identity = np.eye(d, dtype=int)
        assert [np.array_equal(power, identity) for power in powers].index(True) == period - 1
        angles = np.angle(np.linalg.eigvals(matrix)) / (2 * np.pi) * period
        frequencies = {min(round(a) % period, round(-a) % period) for a in angles}
        assert frequencies == set(frequencies_of(orders, period))
        if d <= 8:
            orbit = [first]
            for _ in range(d - 1):
                orbit.append(matrix @ orbit[-1])
            assert np.linalg.matrix_rank(np.stack(orbit)) == d


def arcs(p: int) -> dict[int, tuple[int, tuple[int, ...]]]:
    memorized = {a: memorize_rationally("0" * a + "1" * (p - a)) for a in range(1, p // 2 + 1)}
    return {a: (memorization.dimension, memorization.orders) for a, memorization in memorized.items()}


def test_arcs_of_the_sheet() -> None:
    assert {d for d, _ in arcs(8).values()} == {4}
    twelve = arcs(12)
    assert {d for d, _ in twelve.values()} == {4}
    assert {orders for _, orders in twelve.values()} <= {(3, 4), (4, 6), (12,)}
    assert {a: d for a, (d, _) in arcs(15).items()} == {1: 6, **dict.fromkeys(range(2, 8), 8)}
    assert arcs(15)[1][1] == (3, 5)
    assert {a: d for a, (d, _) in arcs(20).items()} == {1: 6, 2: 6, **dict.fromkeys(range(3, 11), 8)}


@pytest.mark.slow
def test_longer_arcs_of_the_sheet() -> None:
    assert {a: d for a, (d, _) in arcs(21).items()} == {1: 8, **dict.fromkeys(range(2, 11), 12)}
    assert {a: d for a, (d, _) in arcs(24).items()} == {1: 6, 2: 6, **dict.fromkeys(range(3, 13), 8)}
    assert {a: d for a, (d, _) in arcs(30).items()} == {1: 6, 2: 6, **dict.fromkeys(range(3, 16), 8)}


@given(st.text("abc", min_size=1, max_size=12))
def test_integers_generate_the_word(text: str) -> None:
    memorization = memorize_rationally(text)
    p = memorization.word.period
    generator = memorization.generator
    assert all(array.dtype.kind == "i" for array in generator[:4])
    assert psi(p) == memorization.order_dimension <= memorization.dimension
    assert memorization.dimension >= memorize(text).upper
    assert repeats(generator, memorization.word, 4 * p)
    states = generator.states(p + 1)
    assert np.array_equal(states[0], states[p])
    assert all(not np.array_equal(states[0], states[k]) for k in range(1, p))
    if memorization.dimension:
        exact = in_fractions(generator)
        assert exact.generate(2 * p) == generator.generate(2 * p)


def test_an_impossible_dimension_is_refused() -> None:
    sentence = "max_dimension: expected at least 4, which '00000111' needs with a rational matrix, got 3"
    with pytest.raises(ValueError, match=sentence):
        memorize_rationally("00000111", max_dimension=3)
    assert memorize_rationally("00000111", max_dimension=4).dimension == 4


def test_a_search_that_is_given_up_gives_bounds() -> None:
    text = "000000011111111"
    given_up = memorize_rationally(text, budget=1)
    assert (given_up.lower, given_up.dimension, given_up.programs) == (8, 14, 1)
    assert repeats(given_up.generator, given_up.word, 60)
    with pytest.raises(
        ValueError, match=r"at least 14, the smallest dimension of a rational matrix found for .* within"
    ):
        memorize_rationally(text, budget=1, max_dimension=9)


def test_a_period_of_too_many_divisors_gives_bounds() -> None:
    memorization = memorize_rationally("0" * 100 + "1" * 140)
    assert (memorization.lower, memorization.dimension, memorization.programs) == (psi(240), 239, 0)
    assert repeats(memorization.generator, memorization.word, 480)


def test_frequencies_of_an_order_are_its_primitive_roots() -> None:
    for p in range(2, 31):
        for j in range(2, p + 1):
            if p % j == 0:
                expected = {min(k, p - k) for k in range(1, p) if p // gcd(k, p) == j}
                assert set(frequencies_of((j,), p)) == expected
