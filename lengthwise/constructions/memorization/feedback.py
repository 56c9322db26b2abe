"""Generators that read their own output (W_x != 0), which makes them smaller than generators without feedback."""

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.words import Word, check_word
from lengthwise.validation import check_sizes


def cycle(symbols: tuple[str, ...]) -> LinearGenerator:
    """Return a generator of dimension 1 that repeats a word whose symbols are all different.

    The state is the previous symbol's index, and the recurrence matrix W_h is 0. Let t be the index of the symbol
    before symbol j. The logit y_j = 2 t h - t^2 is the largest logit if t is nearest to the state h.

    Example:
        >>> cycle(("a", "b", "c", "d")).generate(6)
        'abcdab'
    """
    if len(symbols) < 2 or len(set(symbols)) < len(symbols):
        raise ValueError(f"symbols: expected two or more different symbols, got {symbols}; list each symbol once")
    indices = np.arange(len(symbols))
    before = np.roll(indices, 1)
    return LinearGenerator(
        np.zeros((1, 1), int), 2 * before[:, None], -(before**2), indices[-1:], symbols, indices[None, :]
    )


def counter(zeros: int) -> LinearGenerator:
    """Return a generator of dimension 1 that repeats the word 0^a 1, for a = `zeros`.

    The state is the number of zeros since the last 1. The next symbol is 1 if this number is above a - 1/2.

    Example:
        >>> counter(3).generate(9)
        '000100010'
    """
    check_sizes(zeros=zeros)  # a word of one symbol needs no states (d = 0)
    return LinearGenerator(
        np.ones((1, 1), int),
        np.array([[-1], [1]]),
        np.array([zeros, 1 - zeros]),
        np.zeros(1, int),
        ("0", "1"),
        np.array([[1, -zeros]]),
    )


def digits(word: Word) -> LinearGenerator:
    """Return an integer generator of dimension 1 for any word of two or more symbols: letters are digits of one number.

    With n symbols, p letters and M = n^p - 1, the state h is the number whose digits in base n are the next p letters.
    The first digit, j, is floor(n h / M), and ``y_j = j n h - M j (j + 1) / 2`` is the largest logit. The next state,
    ``h' = n h - M j``, has the digits rotated by one. So no word needs more than one dimension. No word of several
    symbols needs less, because a net without states repeats one symbol.

    W_h = n expands, so an error of h grows n-fold in every step. The arithmetic of Python's integers is exact. The
    arithmetic of float64 is exact for p <= 51 in base 2.

    Raises:
        ValueError: the word has only one symbol.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> generator = digits(parse_word("abacabad"))
        >>> generator.dimension, generator.generate(16)
        (1, 'abacabadabacabad')
    """
    check_word(word)
    n, p = len(word.symbols), word.period
    if n < 2:
        raise ValueError(
            f"word: expected at least two different symbols, got {word.text!r}; give a word with different symbols"
        )
    largest = n**p - 1
    value = sum(int(letter) * n ** (p - 1 - i) for i, letter in enumerate(word.letters))
    numbers = [int(j) for j in range(n)]
    return LinearGenerator(
        np.array([[n]], dtype=object),
        np.array([[j * n] for j in numbers], dtype=object),
        np.array([-largest * (j * (j + 1) // 2) for j in numbers], dtype=object),
        np.array([value], dtype=object),
        word.symbols,
        np.array([[-largest * j for j in numbers]], dtype=object),
    )
