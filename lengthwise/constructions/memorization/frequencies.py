"""Sets of frequencies that a generator may have, in order of dimension, and bounds without linear programs.

Let p be the period of a word. A recurrence matrix W_h with W_h^p = 1 has eigenvalues e^(2 pi i k / p). In one orbit, a
second copy of a frequency k adds nothing, k and p - k are the same rotation, and the bias replaces frequency 0. Except
for its read-out, a generator without feedback is therefore a set S of frequencies ``1 <= k <= p / 2``. Its dimension
d(S) is 2 |S|, minus 1 if p / 2 is in S. In each step, the generator's state turns by 2 pi k / p in the plane of each k.
If a word can be read out from a set of frequencies, it can also be read out from every larger set that contains this
set.
"""

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import gcd
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from lengthwise.constructions.memorization.words import Word, alternations, at_stride, check_word, num_runs, units

Frequencies = tuple[int, ...]


def dimension(frequencies: Frequencies, period: int) -> int:
    """Return the dimension of a set S of frequencies for period p: d(S) = 2 |S| - [p / 2 in S].

    Example:
        >>> dimension((1, 3), 8), dimension((1, 4), 8)
        (4, 3)
    """
    return sum(1 if 2 * k == period else 2 for k in frequencies)


def orbit(frequencies: Frequencies, period: int) -> Float[np.ndarray, "p d"]:
    """Return the states at all steps i: cos(2 pi k i / p) and sin(2 pi k i / p) for each k, or (-1)^i for k = p / 2.

    Here k is a frequency, and p is the period. Angles are reduced in integers, so that equal states are equal numbers.

    Example:
        >>> orbit((2,), 4).ravel().tolist()
        [1.0, -1.0, 1.0, -1.0]
    """
    steps = np.arange(period)
    columns: list[np.ndarray] = []
    for k in frequencies:
        turns = steps * k % period
        angles = 2 * np.pi * turns / period
        # Half turns are written exactly, because sin(pi) is not 0 in float64.
        columns.append(np.where(2 * turns == period, -1.0, np.cos(angles)))
        if 2 * k != period:
            columns.append(np.where(2 * turns == period, 0.0, np.sin(angles)))
    return np.stack(columns, 1) if columns else np.empty((period, 0))


def blocks(frequencies: Frequencies, period: int) -> list[slice]:
    """Return, for each frequency, the slice of a state that contains the coordinates of this frequency."""
    ends = np.cumsum([0, *(dimension((k,), period) for k in frequencies)])
    return [slice(int(low), int(high)) for low, high in pairwise(ends)]


def sets_of_dimension(period: int, d: int, *, primitive: bool = True) -> Iterator[Frequencies]:
    """Yield all sets S of frequencies with d(S) = d; if `primitive`, only the sets with gcd(S, p) = 1.

    Here p is the period, and d(S) is the `dimension` of a set. If gcd(S, p) = 1, the states of S (`orbit`) have no
    period that is shorter than p.

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
    """Bounds on the smallest dimension d_min of a word's generators, computed without a linear program.

    `lower` <= d_min <= `upper`; the word can be read out from the set `sufficient` of dimension `upper`. Stride u reads
    the letters at positions 0, u, 2u, ... modulo the period p. At the i-th stride of `units(p)`, frequency k becomes
    `degrees[i, k]`, and any two symbols alternate at most `alternations[i]` times.
    """

    lower: int
    upper: int
    sufficient: Frequencies
    degrees: Int64[np.ndarray, "U K"]
    alternations: Int64[np.ndarray, " U"]

    def exclude(self, frequencies: Frequencies) -> bool:
        """Return whether `Bounds` exclude that logits with these frequencies generate the word.

        At some stride, two symbols then alternate more often than the difference of their logits can have zeros. This
        difference is a trigonometric polynomial, which has at most 2 m zeros if its degree is m.
        """
        return bool((self.alternations > 2 * self.degrees[:, frequencies].max(1)).any())


def bounds(word: Word) -> Bounds:
    """Return bounds on the smallest dimension of a generator without feedback, for a word of at least two symbols.

    *Upper*: choose a stride u. The symbol with the most runs at this stride gets the logit 0. The logit of another
    symbol, with r runs, is a trigonometric polynomial of degree r that is positive only on these runs. So twice the
    second largest number of runs suffices. For binary words, this bound is the number of changes at the best stride.
    For period p, a dimension of p - 1 always suffices. *Lower*: the bound is 1 for period 2, and 2 if at some stride no
    two symbols cross (occur as x .. y .. x .. y). Otherwise, the bound is 3, or 4 for odd periods, which have no odd
    dimension.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> bounds(parse_word("00010011"))[:3]
        (3, 4, (1, 2))
    """
    check_word(word)
    p = word.period
    strides = np.array(units(p))
    degrees = _folded(strides[:, None] * np.arange(p // 2 + 1), p)
    changes = np.array([alternations(at_stride(word.letters, u)) for u in units(p)])
    if p == 2:
        return Bounds(1, 1, (1,), degrees, changes)
    candidates = []
    for u in units(p):
        degree = min(int(np.sort(num_runs(at_stride(word.letters, u)))[-2]), p // 2)
        frequencies = tuple(sorted(_folded(pow(u, -1, p) * np.arange(1, degree + 1), p).tolist()))
        candidates.append((dimension(frequencies, p), frequencies))
    upper, sufficient = min(candidates)
    lower = 2 if changes.min() <= 2 else 3 + p % 2
    return Bounds(min(lower, upper), upper, sufficient, degrees, changes)


def _folded(multiples: Int64[np.ndarray, "..."], period: int) -> Int64[np.ndarray, "..."]:
    """Return, for each k and period p, the frequency from 0 to p / 2 with the same rotation: k or -k modulo p."""
    folded: np.ndarray = np.minimum(multiples % period, -multiples % period)
    return folded
