"""Contracting nets of one dimension that read their own answers: Sturm's theorem decides which words they generate."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lengthwise.constructions.memorization.cycle import Undecided
from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.words import MAX_PERIOD, Word, check_binary

MAX_HALVINGS = 60
"""The largest number of times that `contracting_rate` halves an interval of rates before it gives up."""

Polynomial = tuple[Fraction, ...]
"""The coefficients of a polynomial, the constant first, without zeros at the end."""


def contracting_rate(word: Word) -> Fraction | None:
    """Return a rate W_h = a in (-1, 1) with which a net of one dimension generates a word of two symbols, or None.

    The net reads its own answers. Let c be the difference of the columns of W_x. Let y be 1 at positions of one symbol
    and 0 at positions of the other symbol. Up to a shift, the state before the answer at position i of the cycle is c
    times S_i = sum_k a^k y_(i - 1 - k), for k = 0, 1, ... The two logits differ by an affine function of the state. The
    word is therefore generated iff the S_i with answer 1 are all above, or all below, the S_i with answer 0.

    Let p be the period of the word. Multiplied by 1 - a^p > 0, the S_i are polynomials in a of degree at most p - 1. A
    difference of two S_i keeps its sign between its roots, which Sturm's theorem counts in exact arithmetic. The ends
    of searched intervals of a need no test: if all differences have one sign at an end, they also have this sign
    nearby.

    Raises:
        ValueError: the word does not have two symbols, or has more than `MAX_PERIOD` letters.
        Undecided: `MAX_HALVINGS` halvings do not decide, for example if two differences have a common irrational root
            at which both change their signs.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contracting_rate(parse_word("00101")), contracting_rate(parse_word("0011"))
        (Fraction(1, 2), None)

    Source: ours; Sturm's theorem for the number of roots.
    """
    check_binary(word, MAX_PERIOD)
    differences = [_Difference(p, _sturm(p)) for p in _differences(word)]
    intervals = [(Fraction(-1), Fraction(1))]
    for _ in range(MAX_HALVINGS):
        halves = []
        for low, high in intervals:
            middle = (low + high) / 2
            signs = {difference.sign_between(low, high) for difference in differences}
            if len(signs & {-1, 1}) == 2:
                continue  # at all rates in this interval, one pair of positions is in order, and another pair is not
            # If no difference has a root, all differences have the same sign on the whole interval. Otherwise, they may
            # still have the same sign at its middle.
            if 0 not in signs or _separates(differences, middle):
                return middle
            halves += [(low, middle), (middle, high)]
        if not halves:
            return None
        intervals = halves
    near = float(intervals[0][0])
    raise Undecided(
        f"word: found neither a W_h that generates {word.text} nor a proof that none exists, for W_h near {near}; take "
        "another word"
    )


def contraction(word: Word) -> LinearGenerator | None:
    """Return the net whose W_h is the rate that `contracting_rate` finds, or None if no such rate exists.

    All numbers of the net are fractions.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contraction(parse_word("00101")).generate(10)
        '0010100101'
    """
    rate = contracting_rate(word)
    if rate is None:
        return None
    states = [_value(polynomial, rate) / (1 - rate**word.period) for polynomial in _sums(word)]
    ones = [state for state, letter in zip(states, word.letters, strict=True) if letter]
    zeros = [state for state, letter in zip(states, word.letters, strict=True) if not letter]
    sign = 1 if min(ones) > max(zeros) else -1
    threshold = (min(ones) + max(zeros) if sign == 1 else max(ones) + min(zeros)) / 2
    return LinearGenerator(
        np.array([[rate]], dtype=object),
        np.array([[Fraction(0)], [Fraction(sign)]], dtype=object),
        np.array([Fraction(0), -sign * threshold], dtype=object),
        np.array([states[0]], dtype=object),
        word.symbols,
        np.array([[Fraction(0), Fraction(1)]], dtype=object),
    )


def _sums(word: Word) -> list[Polynomial]:
    """Return the polynomials S_i (1 - a^p) of `contracting_rate`.

    The coefficients are the letters before position i, the latest first.
    """
    p, letters = word.period, word.letters
    return [_trimmed([Fraction(int(letters[(i - 1 - k) % p])) for k in range(p)]) for i in range(p)]


def _differences(word: Word) -> list[Polynomial]:
    """Return (S_i - S_j) (1 - a^p) for each i with answer 1 and each j with answer 0 (`contracting_rate`)."""
    sums = _sums(word)
    ones, zeros = ([s for s, letter in zip(sums, word.letters, strict=True) if letter == j] for j in (1, 0))
    return [_less(one, zero) for one in ones for zero in zeros]


class _Difference(NamedTuple):
    """A nonzero polynomial, and Sturm's chain of its square-free part, which has the same roots, each of them once."""

    polynomial: Polynomial
    chain: list[Polynomial]

    def sign_between(self, low: Fraction, high: Fraction) -> int:
        """Return the polynomial's sign between two numbers, or 0 if it has a root strictly between them."""
        at_high = _value(self.chain[0], high) == 0
        # Sturm's theorem counts roots in (low, high], so a root at the upper end is subtracted.
        roots = _changes(self.chain, low) - _changes(self.chain, high) - at_high
        middle = _value(self.polynomial, (low + high) / 2)
        return 0 if roots else (middle > 0) - (middle < 0)


def _separates(differences: Sequence[_Difference], rate: Fraction) -> bool:
    values = [_value(difference.polynomial, rate) for difference in differences]
    return min(values) > 0 or max(values) < 0


def _changes(chain: list[Polynomial], at: Fraction) -> int:
    """Return how often signs change along Sturm's chain at a number."""
    signs = [value > 0 for polynomial in chain if (value := _value(polynomial, at))]
    return sum(one != other for one, other in pairwise(signs))


def _sturm(polynomial: Polynomial) -> list[Polynomial]:
    """Return Sturm's chain of the polynomial's square-free part, which has the same roots, each of them once."""
    chain = [polynomial, _trimmed([k * c for k, c in enumerate(polynomial)][1:])]
    while chain[-1] and (rest := _divided(chain[-2], chain[-1])[1]):
        chain.append(tuple(-c for c in rest))
    chain = [one for one in chain if one]
    return chain if len(chain[-1]) == 1 else _sturm(_divided(polynomial, chain[-1])[0])


def _divided(dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Return the quotient and the remainder of two polynomials."""
    quotient, rest = [Fraction(0)] * max(0, len(dividend) - len(divisor) + 1), dividend
    while len(rest) >= len(divisor):
        factor, shift = rest[-1] / divisor[-1], len(rest) - len(divisor)
        quotient[shift] = factor
        rest = _less(rest, (Fraction(0),) * shift + tuple(factor * c for c in divisor))
    return tuple(quotient), rest


def _less(one: Polynomial, other: Polynomial) -> Polynomial:
    size = max(len(one), len(other))
    padded = ([*p, *[Fraction(0)] * (size - len(p))] for p in (one, other))
    return _trimmed([a - b for a, b in zip(*padded, strict=True)])


def _trimmed(coefficients: Sequence[Fraction]) -> Polynomial:
    count = max((k + 1 for k, c in enumerate(coefficients) if c), default=0)
    return tuple(coefficients[:count])


def _value(polynomial: Polynomial, at: Fraction) -> Fraction:
    value = Fraction(0)
    for coefficient in reversed(polynomial):
        value = value * at + coefficient
    return value
