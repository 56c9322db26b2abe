"""Words that are repeated indefinitely: their letters in a circle, read at any stride."""

from functools import cache
from itertools import combinations
from math import gcd
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from lengthwise.validation import quoted

MAX_SYMBOLS = 64
"""A word of more different symbols is refused."""

MAX_LENGTH = 1_000
"""A word of a longer period is refused."""


class Word(NamedTuple):
    """A primitive word: no power of a shorter one.

    `letters` are the ids of its letters in `symbols`, which are sorted; `power` says how often it stood in the text
    that was given.
    """

    letters: Int64[np.ndarray, " p"]
    symbols: tuple[str, ...]
    power: int = 1

    @property
    def period(self) -> int:
        """p, the number of letters."""
        return len(self.letters)

    @property
    def text(self) -> str:
        """The word itself."""
        return "".join(self.symbols[letter] for letter in self.letters)


def parse_word(text: str) -> Word:
    """The primitive root of a text: ``(abab)^+`` is ``(ab)^+``, whose period is 2.

    Raises:
        ValueError: it is empty, or it has over 64 different symbols or a period over 1,000.

    Example:
        >>> word = parse_word("abaaba")
        >>> word.text, word.power, word.symbols
        ('aba', 2, ('a', 'b'))
    """
    if not text:
        raise ValueError("word: expected at least one symbol, got none; give the word that is to be repeated")
    period = (text + text).find(text, 1)
    root = text[:period]
    symbols = tuple(sorted(set(root)))
    if len(symbols) > MAX_SYMBOLS:
        raise ValueError(f"word: expected at most {MAX_SYMBOLS} different symbols, got {len(symbols)}; use fewer")
    if period > MAX_LENGTH:
        raise ValueError(f"word: expected a period of at most {MAX_LENGTH:,}, got {period:,}; give a shorter word")
    for symbol in symbols:
        if not symbol.isprintable():
            raise ValueError(f"word: expected symbols that can be printed, got {quoted(symbol)}; use others")
    return Word(np.array([symbols.index(letter) for letter in root]), symbols, len(text) // period)


@cache
def units(period: int) -> tuple[int, ...]:
    """Strides 1 <= u <= p / 2 that are coprime to p; stride p - u reads the same letters backwards."""
    return tuple(u for u in range(1, max(2, period // 2 + 1)) if gcd(u, period) == 1)


def at_stride(letters: Int64[np.ndarray, " p"], stride: int) -> Int64[np.ndarray, " p"]:
    """The letters at 0, u, 2u, ... modulo p.

    Example:
        >>> at_stride(np.array([0, 1, 2, 3, 4]), 2).tolist()
        [0, 2, 4, 1, 3]
    """
    return letters[np.arange(len(letters)) * stride % len(letters)]


def num_runs(letters: Int64[np.ndarray, " p"]) -> Int64[np.ndarray, " n"]:
    """The number of runs of each symbol around the circle; of a binary word, changes are twice as many.

    Example:
        >>> num_runs(np.array([0, 1, 1, 0, 2, 1])).tolist()
        [2, 2, 1]
    """
    starts = letters[letters != np.roll(letters, 1)]
    return np.bincount(starts, minlength=int(letters.max()) + 1)


def alternations(letters: Int64[np.ndarray, " p"]) -> int:
    """The most changes, around the circle, between any two symbols when all others are left out.

    Example:
        >>> alternations(np.array([0, 1, 0, 2])), alternations(np.array([0, 1, 2, 0, 1, 2]))
        (2, 4)
    """
    maximum = 0
    for pair in combinations(range(int(letters.max()) + 1), 2):
        kept = letters[np.isin(letters, pair)]
        maximum = max(maximum, int((kept != np.roll(kept, 1)).sum()))
    return maximum


def non_crossing_stride(letters: Int64[np.ndarray, " p"]) -> int | None:
    """A stride at which the word is non-crossing: no two symbols occur as x .. y .. x .. y around the circle.

    That is, no two symbols alternate more than twice. None if there is no such stride.

    Example:
        >>> non_crossing_stride(np.array([0, 1, 0, 2])), non_crossing_stride(np.array([0, 1, 2, 0, 1, 3]))
        (1, None)
    """
    strides = (u for u in units(len(letters)) if alternations(at_stride(letters, u)) <= 2)
    return next(strides, None)
