"""Words that are repeated indefinitely: letters on a circle, which can be read at any stride (`at_stride`)."""

from collections.abc import Iterator
from math import gcd
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from lengthwise.validation import check_kind, quoted, truncate

MAX_SYMBOLS = 64
"""The largest number of different symbols in a word."""

MAX_LENGTH = 1_000
"""The longest period of a word, in letters."""


class Word(NamedTuple):
    """A primitive word, which is not a power of a shorter word.

    `letters` are indices into `symbols`, which are sorted; `power` is how often the given text repeats the word.
    """

    letters: Int64[np.ndarray, " p"]
    symbols: tuple[str, ...]
    power: int = 1

    @property
    def period(self) -> int:
        """Return the period p, the number of letters of the word."""
        return len(self.letters)

    @property
    def text(self) -> str:
        """Return the word as text."""
        return "".join(self.symbols[letter] for letter in self.letters)


def parse_word(text: str) -> Word:
    """Return the primitive root of a text: ``(abab)^+`` is ``(ab)^+``, whose period is 2.

    Raises:
        ValueError: the text is empty, has a symbol that cannot be printed, more than 64 different symbols, or a period
            above 1,000.

    Example:
        >>> word = parse_word("abaaba")
        >>> word.text, word.power, word.symbols
        ('aba', 2, ('a', 'b'))
    """
    check_kind("word", text, str, "a text")
    if not text:
        raise ValueError("word: expected at least one symbol, got an empty word; give the word to repeat")
    # In two copies of the text, the first occurrence of the text after index 0 is at its primitive period.
    period = (text + text).find(text, 1)
    root = text[:period]
    symbols = tuple(sorted(set(root)))
    if len(symbols) > MAX_SYMBOLS:
        raise ValueError(
            f"word: expected at most {MAX_SYMBOLS} different symbols, got {len(symbols)}; use fewer different symbols"
        )
    if period > MAX_LENGTH:
        raise ValueError(f"word: expected a period of at most {MAX_LENGTH:,}, got {period:,}; give a shorter word")
    for symbol in symbols:
        if not symbol.isprintable():
            raise ValueError(f"word: expected symbols that can be printed, got {quoted(symbol)}; use other symbols")
    return Word(np.array([symbols.index(letter) for letter in root]), symbols, len(text) // period)


def check_word(word: object) -> None:
    """Raise a ValueError unless the argument is a `Word`, for example if it is a text."""
    if not isinstance(word, Word):
        raise ValueError(f"word: expected a Word, got {truncate(repr(word))}; make it with parse_word")


def binary_words(period: int) -> Iterator[Word]:
    """Yield the words of two symbols with this period, one for each class under rotation and exchange of symbols.

    Example:
        >>> [word.text for word in binary_words(4)]
        ['0001', '0011']
    """
    renamed = str.maketrans("01", "10")
    # The least word of a class begins with 0.
    for number in range(1, 2 ** (period - 1)):
        text = f"{number:0{period}b}"
        rotations = [text[k:] + text[:k] for k in range(period)]
        least = min(rotations + [rotation.translate(renamed) for rotation in rotations])
        if rotations.count(text) == 1 and text == least:
            yield parse_word(text)


def units(period: int) -> tuple[int, ...]:
    """Return the strides 1 <= u <= p / 2 that are coprime to the period p.

    Stride u reads the letters at positions 0, u, 2u, ... modulo p, and stride p - u reads these letters backwards.
    """
    return tuple(u for u in range(1, max(2, period // 2 + 1)) if gcd(u, period) == 1)


def at_stride(letters: Int64[np.ndarray, " p"], stride: int) -> Int64[np.ndarray, " p"]:
    """Return the letters at positions 0, u, 2u, ... modulo the period p, for stride u.

    Example:
        >>> at_stride(np.array([0, 1, 2, 3, 4]), 2).tolist()
        [0, 2, 4, 1, 3]
    """
    return letters[np.arange(len(letters)) * stride % len(letters)]


def num_runs(letters: Int64[np.ndarray, " p"]) -> Int64[np.ndarray, " n"]:
    """Return the number of runs of each symbol in a circular word: for binary words, half the number of changes.

    Example:
        >>> num_runs(np.array([0, 1, 1, 0, 2, 1])).tolist()
        [2, 2, 1]
    """
    starts = letters[letters != np.roll(letters, 1)]
    return np.bincount(starts, minlength=int(letters.max()) + 1)


def alternations(letters: Int64[np.ndarray, " p"]) -> int:
    """Return the largest number of changes between two symbols of a circular word, with all other symbols left out.

    There is a change from x to y at each y for which the last x or y before it was an x. Around a circle, there are as
    many changes from y to x. A test compares this function with the definition, pair by pair.

    Example:
        >>> alternations(np.array([0, 1, 0, 2])), alternations(np.array([0, 1, 2, 0, 1, 2]))
        (2, 4)
    """
    twice = np.concatenate([letters, letters])
    is_symbol = twice[:, None] == np.arange(int(letters.max()) + 1)
    last_seen = np.maximum.accumulate(np.where(is_symbol, np.arange(len(twice))[:, None], -1))
    before = last_seen[len(letters) - 1 : -1]
    changes = np.zeros((is_symbol.shape[1],) * 2, int)
    np.add.at(changes, letters, before > np.take_along_axis(before, letters[:, None], 1))
    return 2 * int(changes.max())


def non_crossing_stride(letters: Int64[np.ndarray, " p"]) -> int | None:
    """Return a stride at which the word is non-crossing, or None.

    Stride u reads the letters at positions 0, u, 2u, ... modulo the period p. A circular word is non-crossing if no two
    symbols occur as x .. y .. x .. y. No two symbols then alternate more than twice.

    Example:
        >>> non_crossing_stride(np.array([0, 1, 0, 2])), non_crossing_stride(np.array([0, 1, 2, 0, 1, 3]))
        (1, None)
    """
    strides = (u for u in units(len(letters)) if alternations(at_stride(letters, u)) <= 2)
    return next(strides, None)


MAX_PERIOD = 32
"""The longest word, in letters, for which it is decided exactly whether a contracting net exists. The search has a
polynomial for each pair of a 1 and a 0, and the degrees of the polynomials grow with the word."""


def check_binary(word: Word, longest: int | None = None) -> None:
    """Raise a ValueError unless a word has two symbols and, if `longest` is given, at most that many letters."""
    check_word(word)
    if longest is not None and word.period > longest:
        raise ValueError(
            f"word: expected at most {longest} letters for an exact search, got {word.period}; give a shorter word"
        )
    if len(word.symbols) != 2:
        raise ValueError(f"word: expected two symbols, got {len(word.symbols)}; take a word such as 00101")
