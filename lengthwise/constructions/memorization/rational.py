"""Rational W_h: which dimensions have a matrix of order p, and which of these can be read out; integer companions.

The minimal polynomial of a rational matrix of finite order p is a product of different cyclotomic polynomials Phi_j,
j in J, with least common multiple p. It has dimension sum phi(j), and all frequencies k with p / gcd(k, p) in J: a
rational matrix cannot have one primitive j-th root of unity without all others. j = 1 is what the bias says.
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
from lengthwise.constructions.memorization.memorize import BUDGET
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import Word, parse_word

MAX_DIVISORS = 18
"""The sets of so many divisors are listed; of a period with more, bounds are given."""


def psi(order: int) -> int:
    """The smallest dimension in which a rational matrix has order p: sum of phi(q) over prime powers q || p, q != 2.

    A single factor 2 is free, since -1 times a matrix of odd order q has order 2 q; psi(2) = 1.

    Example:
        >>> [psi(p) for p in (1, 2, 3, 4, 5, 8, 12, 30)]
        [0, 1, 2, 2, 4, 4, 4, 6]

    Source: Levitt and Nicolas, "On the maximum order of torsion elements in GL(n, Z) and Aut(F_n)" (1998), for this
        function.
    """
    from sympy import factorint, totient

    if order == 2:
        return 1
    return sum(int(totient(q**e)) for q, e in factorint(order).items() if (q, e) != (2, 1))


class RationalMemorization(NamedTuple):
    """The smallest generator of a word with a rational, here integer, W_h; `orders` are J.

    `order_dimension` is psi(p), which suffices for the order but may not for the word. All numbers are integers. The
    smallest dimension is at least `lower`, which is the generator's unless the search was given up after so many
    `programs`.
    """

    word: Word
    orders: tuple[int, ...]
    order_dimension: int
    generator: LinearGenerator
    lower: int
    programs: int

    @property
    def dimension(self) -> int:
        """d, the sum of phi(j) over the orders."""
        return self.generator.dimension


def memorize_rationally(text: str, *, max_dimension: int | None = None, budget: int = BUDGET) -> RationalMemorization:
    """The smallest generator of ``(text)^+`` with W_x = 0 and a rational W_h: sets J of divisors, by their dimension.

    W_h is block-diagonal with the companion matrices of Phi_j, h_1 is the first unit vector of each block, and W_y is
    rounded to integers that give every letter a margin: nothing is ever rounded when it runs. Where the period has too
    many divisors, or the budget of linear programs ends, the generator is `simplex`, which has all orders but 1.

    Raises:
        ValueError: the text is no word (`parse_word`), or it needs more than `max_dimension` dimensions.

    Example:
        >>> found = memorize_rationally("00000111")
        >>> found.dimension, found.orders, found.generator.hidden.tolist()
        (4, (8,), [[0, 0, 0, -1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])

    Source: "update on rnn memorization", section "How small can we make d?".
    Differs from the source: which shows that there is no rational 3 x 3 matrix of order 8, and reads nothing out.
    """
    word = parse_word(text)
    found = _search(word, budget)
    if max_dimension is not None and max_dimension < found.lower:
        raise ValueError(
            f"max_dimension: expected at least {found.lower}, which {word.text!r} needs with a rational matrix (order "
            f"{word.period} alone needs {found.order_dimension}), got {max_dimension}; allow more, or real numbers"
        )
    if max_dimension is not None and max_dimension < found.dimension:
        raise ValueError(
            f"max_dimension: expected at least {found.dimension}, got {max_dimension}; whether {word.text!r} needs "
            f"more than {found.lower} with a rational matrix was not settled within the budget"
        )
    return found


def _search(word: Word, budget: int) -> RationalMemorization:
    p, lower, programs = word.period, psi(word.period), 0
    divisors = _divisors(p)
    if len(divisors) <= MAX_DIVISORS:
        for lower, orders in sets_of_orders(p):
            if programs == budget:
                break
            programs += 1
            if p == 1 or read_out(word.letters, orbit(frequencies_of(orders, p), p)) is not None:
                return RationalMemorization(word, orders, psi(p), _assemble_weights(word, orders), lower, programs)
    return RationalMemorization(word, tuple(divisors), psi(p), simplex(word), lower, programs)


def _divisors(period: int) -> list[int]:
    """All but 1."""
    return [j for j in range(2, period + 1) if period % j == 0]


def sets_of_orders(period: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """All sets of divisors j >= 2 with least common multiple p, and their dimensions, in order of dimension.

    Example:
        >>> list(sets_of_orders(6))
        [(2, (6,)), (3, (2, 3)), (3, (2, 6)), (4, (3, 6)), (5, (2, 3, 6))]
    """
    divisors = _divisors(period)
    subsets = chain.from_iterable(combinations(divisors, size) for size in range(len(divisors) + 1))
    found = [(sum(_degree(j) for j in J), J) for J in subsets if lcm(*J) == period]
    yield from sorted(found)


@cache
def _degree(order: int) -> int:
    return len(cyclotomic(order)) - 1


def frequencies_of(orders: tuple[int, ...], period: int) -> Frequencies:
    """The frequencies 1 <= k <= p / 2 of these orders.

    Example:
        >>> frequencies_of((3, 4), 12)
        (3, 4)
    """
    return tuple(k for k in range(1, period // 2 + 1) if period // gcd(k, period) in orders)


def companion_blocks(orders: tuple[int, ...]) -> tuple[Array, Array]:
    """The block-diagonal integer matrix of the companions of Phi_j, and the sum of the blocks' first unit vectors."""
    sizes = [_degree(j) for j in orders]
    hidden, first = np.zeros((sum(sizes),) * 2, int), np.zeros(sum(sizes), int)
    start = 0
    for j, size in zip(orders, sizes, strict=True):
        hidden[start : start + size, start : start + size] = companion_matrix(list(cyclotomic(j)))
        first[start] = 1
        start += size
    return hidden, first


LARGEST_WEIGHT = 2**52
"""Integers of a read-out stay below, so that float64 holds all logits."""


def _assemble_weights(word: Word, orders: tuple[int, ...]) -> LinearGenerator:
    """The read-out of the integer states, in the smallest power of two at which rounding leaves every margin."""
    hidden, first = companion_blocks(orders)
    bare = LinearGenerator(hidden, np.zeros((1, len(first)), int), np.zeros(1, int), first, word.symbols)
    if word.period == 1:
        return bare
    states = bare.states(word.period)
    found = read_out(word.letters, states.astype(float))
    assert found is not None, "integer states span the same space as the unit circles of their frequencies"
    scale = 1.0
    while scale * np.abs(found.weights).max(initial=1.0) < LARGEST_WEIGHT:
        weights, bias = (np.rint(array * scale).astype(int) for array in found)
        logits = states @ weights.T + bias
        ahead = np.sort(logits, 1)
        if (logits.argmax(1) == word.letters).all() and (ahead[:, -1] > ahead[:, -2]).all():
            return bare._replace(readout=weights, bias=bias)
        scale *= 2
    raise RuntimeError(f"word: no integers below {LARGEST_WEIGHT:,} read {word.text!r} out of these states")
