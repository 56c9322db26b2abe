"""Generators that read their own output and forget their errors: all eigenvalues of W_h are inside the unit circle.

`feedback.digits` says any word with d = 1, but W_h expands there. Here is what contracting nets need.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lengthwise.constructions.memorization.generator import LinearGenerator
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import Word

MAX_HALVINGS = 60
"""How often an interval of rates is halved before `contracting_rate` gives up."""

Polynomial = tuple[Fraction, ...]
"""Coefficients, the constant first, without zeros at the end."""


class Undecided(RuntimeError):
    """Neither a rate nor a proof that there is none was found."""


def contracting_rate(word: Word) -> Fraction | None:
    """A W_h = a in (-1, 1) with which d = 1 says a word of two symbols, reading its own answers; None: there is none.

    With c the difference of the columns of W_x, the state before the answer at i is, on the cycle and up to a shift, c
    times S_i = sum_k a^k y_(i - 1 - k), where y is 1 at one symbol and 0 at the other. The two logits differ by an
    affine function of it, so that the word is said iff all S_i with answer 1 are above all with answer 0, or all below.
    Times 1 - a^p > 0 these are polynomials of degree p - 1, and their differences keep their signs between roots, which
    are counted by Sturm's theorem in exact arithmetic. Points where some difference is 0 need no look: where all are of
    one sign, they are so nearby.

    Raises:
        ValueError: another number of symbols.
        Undecided: two differences have an irrational root in common, at which both change their signs.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contracting_rate(parse_word("00101")), contracting_rate(parse_word("0011"))
        (Fraction(1, 2), None)

    Source: Sturm's theorem.
    """
    _check_binary(word)
    differences = [_Difference(p, _sturm(p)) for p in _differences(word)]
    intervals = [(Fraction(-1), Fraction(1))]
    for _ in range(MAX_HALVINGS):
        halves = []
        for low, high in intervals:
            middle = (low + high) / 2
            signs = {difference.sign_between(low, high) for difference in differences}
            if len(signs & {-1, 1}) == 2:
                continue  # one pair of positions is in order, and another one is not, at all rates in between
            if 0 not in signs or _separates(differences, middle):
                return middle
            halves += [(low, middle), (middle, high)]
        if not halves:
            return None
        intervals = halves
    raise Undecided(f"word: {word.text} is neither said nor refuted at rates near {float(intervals[0][0])}")


def contraction(word: Word) -> LinearGenerator | None:
    """The net of `contracting_rate`, in fractions; None where there is none.

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


def shift_register(word: Word) -> LinearGenerator:
    """The net that keeps the last m answers, with the smallest m from which the next one can be read; W_h^m = 0.

    Raises:
        ValueError: another number of symbols than two.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> generator = shift_register(parse_word("0011"))
        >>> generator.dimension, generator.generate(8)
        (2, '00110011')
    """
    _check_binary(word)
    letters = word.letters
    for size in range(1, word.period):
        kept = np.stack([np.roll(letters, 1 + k) for k in range(size)], 1).astype(float)
        readout = read_out(letters, kept)
        if readout is not None:
            inputs = np.zeros((size, 2))
            inputs[0, 1] = 1.0
            return LinearGenerator(np.eye(size, k=-1), readout.weights, readout.bias, kept[0], word.symbols, inputs)
    raise AssertionError("p - 1 answers, which tell all positions of a primitive word apart, are vertices of a cube")


def found_net(word: Word, dimension: int, tries: int = 400, seed: int = 0) -> LinearGenerator | None:
    """A net of this dimension from random eigenvalues inside the unit circle, or None; that is no proof of anything.

    W_h has a 2 x 2 rotation, made smaller, for each pair of eigenvalues and a number for each real one; W_x is ones for
    one symbol and zeros for the other. Up to a change of basis these are all W_h with different eigenvalues, if W_x
    reaches all of them. The states on the cycle are known then, and a linear program reads the word out of them.

    Raises:
        ValueError: another number of symbols than two, or a dimension below 1.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> found_net(parse_word("0011"), 2).generate(8)
        '00110011'
    """
    _check_binary(word)
    if dimension < 1:
        raise ValueError(f"dimension: expected at least 1, got {dimension}; a bias alone repeats one symbol (d = 0)")
    draws = np.random.default_rng(seed)
    for _ in range(tries):
        hidden = _random_contraction(dimension, draws)
        inputs = np.zeros((dimension, 2))
        inputs[:, 1] = 1.0
        states = _cycle_states(hidden, inputs[:, 1], word)
        try:
            readout = read_out(word.letters, states)
        except RuntimeError:  # margins as small as rounding
            continue
        if readout is None:
            continue
        net = LinearGenerator(hidden, readout.weights, readout.bias, states[0], word.symbols, inputs)
        if net.generate(50 * word.period) == 50 * word.text:
            return net
    return None


def _random_contraction(dimension: int, draws: np.random.Generator) -> np.ndarray:
    """Block-diagonal, with some pairs of complex eigenvalues; moduli are denser near 1."""
    hidden = np.zeros((dimension, dimension))
    first = 0
    while first < dimension:
        modulus = 1 - 0.9 * draws.random() ** 2
        if dimension - first >= 2 and draws.random() < 0.75:
            angle = np.pi * draws.random()
            cosine, sine = modulus * np.cos(angle), modulus * np.sin(angle)
            hidden[first : first + 2, first : first + 2] = [[cosine, -sine], [sine, cosine]]
            first += 2
        else:
            hidden[first, first] = modulus * draws.choice([-1, 1])
            first += 1
    return hidden


def _cycle_states(hidden: np.ndarray, added: np.ndarray, word: Word) -> np.ndarray:
    """The states before each answer when the word is written without end: those of one period solve (1 - W_h^p) h."""
    period = word.period
    power, total = np.eye(len(hidden)), np.zeros(len(hidden))
    for k in range(period):
        total += power @ added * int(word.letters[(-1 - k) % period])
        power = power @ hidden
    state, states = np.linalg.solve(np.eye(len(hidden)) - power, total), []
    for letter in word.letters:
        states.append(state)
        state = hidden @ state + added * int(letter)
    return np.stack(states)


class FeedbackBounds(NamedTuple):
    """The smallest dimension of contracting nets with feedback: at least `lower`, at most `upper`."""

    lower: int
    upper: int


def contracting_dimension(word: Word, tries: int = 400) -> FeedbackBounds:
    """Bounds for a word of two symbols: 1 exactly where `contracting_rate` finds one, else at least 2.

    The upper one is the first dimension at which `found_net` has a net, or that of the shift register.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> contracting_dimension(parse_word("00101")), contracting_dimension(parse_word("0011"))
        (FeedbackBounds(lower=1, upper=1), FeedbackBounds(lower=2, upper=2))
    """
    if contracting_rate(word) is not None:
        return FeedbackBounds(1, 1)
    size = shift_register(word).dimension
    smaller = (d for d in range(2, size) if found_net(word, d, tries) is not None)
    return FeedbackBounds(2, next(smaller, size))


def _check_binary(word: Word) -> None:
    if len(word.symbols) != 2:
        raise ValueError(f"word: expected two symbols, got {len(word.symbols)}; take one like 00101")


def _sums(word: Word) -> list[Polynomial]:
    """S_i (1 - a^p): the letters before i, the latest first."""
    p, letters = word.period, word.letters
    return [_trimmed([Fraction(int(letters[(i - 1 - k) % p])) for k in range(p)]) for i in range(p)]


def _differences(word: Word) -> list[Polynomial]:
    """The sum of each position with answer 1 less that of each with answer 0."""
    sums = _sums(word)
    ones, zeros = ([s for s, letter in zip(sums, word.letters, strict=True) if letter == j] for j in (1, 0))
    return [_less(one, zero) for one in ones for zero in zeros]


class _Difference(NamedTuple):
    """A polynomial that is not 0, and Sturm's chain of one that has the same roots, each of them once."""

    polynomial: Polynomial
    chain: list[Polynomial]

    def sign_between(self, low: Fraction, high: Fraction) -> int:
        """The sign between two numbers, 0 where it has a root there (the ends do not count)."""
        at_high = _value(self.chain[0], high) == 0
        roots = _changes(self.chain, low) - _changes(self.chain, high) - at_high  # Sturm's are those in (low, high]
        middle = _value(self.polynomial, (low + high) / 2)
        return 0 if roots else (middle > 0) - (middle < 0)


def _separates(differences: Sequence[_Difference], rate: Fraction) -> bool:
    values = [_value(difference.polynomial, rate) for difference in differences]
    return min(values) > 0 or max(values) < 0


def _changes(chain: list[Polynomial], at: Fraction) -> int:
    """How often signs change along Sturm's chain."""
    signs = [value > 0 for polynomial in chain if (value := _value(polynomial, at))]
    return sum(one != other for one, other in pairwise(signs))


def _sturm(polynomial: Polynomial) -> list[Polynomial]:
    """Sturm's chain of a polynomial, divided by what it has in common with its derivative: multiple roots are one."""
    chain = [polynomial, _trimmed([k * c for k, c in enumerate(polynomial)][1:])]
    while chain[-1] and (rest := _divided(chain[-2], chain[-1])[1]):
        chain.append(tuple(-c for c in rest))
    chain = [one for one in chain if one]
    return chain if len(chain[-1]) == 1 else _sturm(_divided(polynomial, chain[-1])[0])


def _divided(dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder."""
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
