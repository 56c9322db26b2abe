"""Generators with a rational recurrence matrix W_h: dimensions of matrices of order p, and integer companion matrices.

The minimal polynomial of a rational matrix of finite order p is a product of different cyclotomic polynomials Phi_j, j
in J, and the least common multiple of J is p. The smallest such matrix has dimension sum phi(j), with Euler's function
phi. Its frequencies are all k with p / gcd(k, p) in J, because a rational matrix that has one primitive j-th root of
unity as an eigenvalue has all of them. The bias replaces j = 1.
"""

from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations
from math import gcd, lcm
from typing import NamedTuple

import numpy as np

from lengthwise.constructions.memorization.closed_form import companion_matrix, simplex
from lengthwise.constructions.memorization.cyclotomic import cyclotomic
from lengthwise.constructions.memorization.frequencies import Frequencies, orbit
from lengthwise.constructions.memorization.generator import Array, LinearGenerator
from lengthwise.constructions.memorization.memorize import (
    BUDGET,
    ENTRIES_PER_PROGRAM,
    MAX_ENTRIES,
    MAX_READOUT_DIMENSION,
    check_max_dimension,
)
from lengthwise.constructions.memorization.separation import num_entries, read_out
from lengthwise.constructions.memorization.words import Word, parse_word
from lengthwise.validation import check_sizes

MAX_DIVISORS = 18
"""The largest number of divisors j >= 2 of a period for which all sets of divisors are enumerated. For periods with
more divisors, only a bound on the dimension is computed."""


def psi(order: int) -> int:
    """Return the smallest dimension in which a rational matrix has order p.

    This dimension is the sum of Euler's phi(q) over the prime powers q != 2 in the factorization of p. A single factor
    2 costs nothing, because -1 times a matrix of odd order q has order 2 q. The exception is psi(2) = 1.

    Example:
        >>> [psi(p) for p in (1, 2, 3, 4, 5, 8, 12, 30)]
        [0, 1, 2, 2, 4, 4, 4, 6]

    Source: Levitt and Nicolas, "On the maximum order of torsion elements in GL(n, Z) and Aut(F_n)" (1998), for this
        function.
    """
    from sympy import factorint, totient

    check_sizes(order=order)
    if order == 2:
        return 1
    return sum(int(totient(q**e)) for q, e in factorint(order).items() if (q, e) != (2, 1))


class RationalMemorization(NamedTuple):
    """The smallest generator that a search found for a word, among all generators with a rational W_h.

    `orders` is the set J of the orders of the eigenvalues of W_h. `order_dimension` is psi(p) for the period p. This
    dimension suffices for a matrix of order p, but may not suffice for the word. All numbers of the generator,
    including W_h, are integers. The smallest dimension is at least `lower`, and equal to `lower` unless the search
    ended early. `programs` counts the linear programs that were solved.
    """

    word: Word
    orders: tuple[int, ...]
    order_dimension: int
    generator: LinearGenerator
    lower: int
    programs: int

    @property
    def dimension(self) -> int:
        """Return the dimension of the generator, which is the sum of Euler's phi(j) over the orders j in `orders`."""
        return self.generator.dimension


def memorize_rationally(text: str, *, max_dimension: int | None = None, budget: int = BUDGET) -> RationalMemorization:
    """Return the smallest generator of ``(text)^+`` without feedback and with a rational W_h.

    W_h, W_y and h_1 are as in `LinearGenerator`. Sets J of divisors of the period are tried in order of dimension. W_h
    is block-diagonal with the companion matrices of the cyclotomic polynomials Phi_j, and h_1 is the sum of the first
    unit vectors of all blocks. W_y is rounded to integers that give every letter a positive margin, so no step of the
    generator rounds anything. If the period has too many divisors, the budget ends, or linear programs become too
    large, the generator is `simplex`. The orders of its eigenvalues are all divisors of the period except 1.

    Raises:
        ValueError: the text is not a word (`parse_word`). The word needs more than `max_dimension` dimensions, or the
            search found no generator with at most this dimension. `max_dimension` is above 999, the most that any word
            needs.
        RuntimeError: a linear program fails, or no integer weights below 2^52 read the word out.

    Example:
        >>> memorization = memorize_rationally("00000111")
        >>> memorization.dimension, memorization.orders, memorization.generator.hidden.tolist()
        (4, (8,), [[0, 0, 0, -1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])

    Source: "update on rnn memorization", section "How small can we make d?".
    Differs from the source: the source shows only that no rational 3 x 3 matrix has order 8, and gives no read-out.
    """
    word = parse_word(text)
    check_max_dimension(max_dimension)
    check_sizes(budget=budget)
    best = _search(word, budget)
    if max_dimension is not None and max_dimension < best.lower:
        raise ValueError(
            f"max_dimension: expected at least {best.lower}, which {word.text!r} needs with a rational matrix, got "
            f"{max_dimension}; allow more dimensions, or leave out the option rational (in Python: call memorize)"
        )
    if max_dimension is not None and max_dimension < best.dimension:
        raise ValueError(
            f"max_dimension: expected at least {best.dimension}, the smallest dimension of a rational matrix found for "
            f"{word.text!r} within the budget, got {max_dimension}; allow more dimensions or a larger budget"
        )
    return best


def _search(word: Word, budget: int) -> RationalMemorization:
    p = word.period
    lower = psi(word.period)
    programs = 0
    entries = 0
    divisors = _divisors(p)
    if len(divisors) <= MAX_DIVISORS:
        for lower, orders in sets_of_orders(p):
            size = num_entries(len(word.symbols), p, lower)
            entries += size
            is_too_large = lower > MAX_READOUT_DIMENSION or size > MAX_ENTRIES
            if programs == budget or is_too_large or entries > ENTRIES_PER_PROGRAM * budget + MAX_ENTRIES:
                break
            programs += 1
            if p == 1 or read_out(word.letters, orbit(frequencies_of(orders, p), p)) is not None:
                return RationalMemorization(word, orders, psi(p), _assemble_weights(word, orders), lower, programs)
    return RationalMemorization(word, tuple(divisors), psi(p), simplex(word), lower, programs)


def _divisors(period: int) -> list[int]:
    """Return the divisors j >= 2 of a period."""
    return [j for j in range(2, period + 1) if period % j == 0]


def sets_of_orders(period: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield all sets of divisors j >= 2 whose least common multiple is the period, in order of dimension.

    Each result is a pair of a dimension and a set.

    Example:
        >>> list(sets_of_orders(6))
        [(2, (6,)), (3, (2, 3)), (3, (2, 6)), (4, (3, 6)), (5, (2, 3, 6))]
    """
    divisors = _divisors(period)
    subsets = chain.from_iterable(combinations(divisors, size) for size in range(len(divisors) + 1))
    yield from sorted((sum(_degree(j) for j in J), J) for J in subsets if lcm(*J) == period)


@cache
def _degree(order: int) -> int:
    return len(cyclotomic(order)) - 1


def frequencies_of(orders: tuple[int, ...], period: int) -> Frequencies:
    """Return the frequencies 1 <= k <= p / 2, for period p, of a matrix whose eigenvalues have these orders.

    Example:
        >>> frequencies_of((3, 4), 12)
        (3, 4)
    """
    return tuple(k for k in range(1, period // 2 + 1) if period // gcd(k, period) in orders)


def companion_blocks(orders: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the block-diagonal matrix of the companion matrices of Phi_j, for the orders j, and the first state h_1.

    Phi_j is the cyclotomic polynomial of order j. The vector h_1 is 1 where a block begins, and otherwise 0.
    """
    sizes = [_degree(j) for j in orders]
    hidden, first = np.zeros((sum(sizes),) * 2, int), np.zeros(sum(sizes), int)
    start = 0
    for j, size in zip(orders, sizes, strict=True):
        hidden[start : start + size, start : start + size] = companion_matrix(list(cyclotomic(j)))
        first[start] = 1
        start += size
    return hidden, first


MAX_WEIGHT = 2**52
"""The bound on the integers in a read-out. Below it, float64 represents all logits exactly."""


def _assemble_weights(word: Word, orders: tuple[int, ...]) -> LinearGenerator:
    """Return the generator with these orders, and with a read-out in integers.

    The smallest power of two that keeps every margin positive scales the read-out before it is rounded.
    """
    hidden, first = companion_blocks(orders)
    bare = LinearGenerator(hidden, np.zeros((1, len(first)), int), np.zeros(1, int), first, word.symbols)
    if word.period == 1:
        return bare
    states = bare.states(word.period)
    real = read_out(word.letters, states.astype(float))
    assert real is not None, "integer states span the same space as the unit circles of their frequencies"
    scale = 1.0
    while scale * np.abs(real.weights).max(initial=1.0) < MAX_WEIGHT:
        weights, bias = (np.rint(array * scale).astype(int) for array in real)
        logits = states @ weights.T + bias
        in_order = np.sort(logits, 1)
        if (logits.argmax(1) == word.letters).all() and (in_order[:, -1] > in_order[:, -2]).all():
            return bare._replace(readout=weights, bias=bias)
        scale *= 2
    raise RuntimeError(
        f"word: found no integer read-out weights below {MAX_WEIGHT:,} with which the net generates {word.text!r}; "
        "take a shorter word"
    )
