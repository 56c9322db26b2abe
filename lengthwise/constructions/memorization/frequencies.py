"""Which frequencies a generator may have: sets of them in order of dimension, and bounds that need no program.

W_h with W_h^p = 1 has eigenvalues e^(2 pi i k / p); of one orbit, only one copy of each frequency k matters, k and
p - k are one rotation, and frequency 0 is what the bias says. So a generator without feedback is a set S of frequencies
1 <= k <= p / 2, of dimension d(S) = 2 |S|, less 1 where p / 2 is in S, whose state turns by 2 pi / p k in each of its
planes. Every superset of a set that can be read out can be read out, too.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import gcd
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from lengthwise.constructions.memorization.words import Word, alternations, at_stride, num_runs, units

Frequencies = tuple[int, ...]


def dimension(frequencies: Frequencies, period: int) -> int:
    """d(S) = 2 |S| - [p / 2 in S].

    Example:
        >>> dimension((1, 3), 8), dimension((1, 4), 8)
        (4, 3)
    """
    return sum(1 if 2 * k == period else 2 for k in frequencies)


def orbit(frequencies: Frequencies, period: int) -> Float[np.ndarray, "p d"]:
    """Unit circles at all p steps: cos(2 pi k i / p), sin(2 pi k i / p) for each k; for k = p / 2 the sign alone.

    The angle is reduced in integers, so that the same state has the same numbers at every multiple of the period.

    Example:
        >>> orbit((2,), 4).ravel().tolist()
        [1.0, -1.0, 1.0, -1.0]
    """
    steps = np.arange(period)
    columns: list[np.ndarray] = []
    for k in frequencies:
        turns = steps * k % period
        angles = 2 * np.pi * turns / period
        columns.append(np.where(2 * turns == period, -1.0, np.cos(angles)))
        if 2 * k != period:
            columns.append(np.where(2 * turns == period, 0.0, np.sin(angles)))
    return np.stack(columns, 1) if columns else np.empty((period, 0))


def blocks(frequencies: Frequencies, period: int) -> list[slice]:
    """Where each frequency stands in a state."""
    ends = np.cumsum([0, *(dimension((k,), period) for k in frequencies)])
    return [slice(int(low), int(high)) for low, high in pairwise(ends)]


def sets_of_dimension(period: int, d: int, *, primitive: bool = True) -> Iterator[Frequencies]:
    """All S with d(S) = d; if `primitive`, those whose orbit has period p, and no shorter one: gcd(S, p) = 1.

    Example:
        >>> list(sets_of_dimension(8, 2)), list(sets_of_dimension(6, 3))
        ([(1,), (3,)], [(1, 3), (2, 3)])
    """
    if d % 2 and period % 2:
        return
    half = (period // 2,) * (d % 2)
    for rotations in combinations(range(1, (period + 1) // 2), d // 2):
        if not primitive or gcd(*rotations, *half, period) == 1:
            yield rotations + half


class Bounds(NamedTuple):
    """What is known of the smallest dimension of a word without a linear program.

    `lower` <= d_min <= `upper`; `enough` is a set of dimension `upper` that suffices. `alternating` has, for each
    stride u, how often two symbols alternate at it.
    """

    lower: int
    upper: int
    enough: Frequencies
    alternating: dict[int, int]

    def excludes(self, frequencies: Frequencies, period: int) -> bool:
        """Whether two symbols alternate, at some stride, more often than these frequencies can change sign.

        At stride u they are u S, and a trigonometric polynomial of degree m has at most 2 m zeros.
        """
        return any(
            maximum > 2 * max(min(u * k % period, -u * k % period) for k in frequencies)
            for u, maximum in self.alternating.items()
        )


def bounds(word: Word) -> Bounds:
    """Bounds on the smallest dimension of a generator without feedback.

    *Upper*: at stride u, a symbol of r runs gets a polynomial of degree r that is positive on them alone, and the
    symbol of the most runs is 0: the second largest number of runs, twice, is enough, and p - 1 always is. Binary:
    changes at the best stride.
    *Lower*: 1 for period 2, 2 if no two symbols cross at some stride; an odd period has no odd
    dimension. The word has two symbols or more.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> bounds(parse_word("00010011"))[:3]
        (3, 4, (1, 2))
    """
    p = word.period
    alternating = {u: alternations(at_stride(word.letters, u)) for u in units(p)}
    if p == 2:
        return Bounds(1, 1, (1,), alternating)
    lower = 2 if min(alternating.values()) <= 2 else 3 + p % 2
    best = None
    for u in units(p):
        degree = min(int(np.sort(num_runs(at_stride(word.letters, u)))[-2]), p // 2)
        back = pow(u, -1, p)
        enough = tuple(sorted({min(back * m % p, -back * m % p) for m in range(1, degree + 1)}))
        best = min(best or (p, enough), (dimension(enough, p), enough))
    assert best is not None
    upper, enough = best
    return Bounds(min(lower, upper), upper, enough, alternating)
