"""Generators in closed form: rotations for 0^a 1^b, permutations and simplices for any word."""

from math import cos, gcd, pi, sin
from numbers import Integral
from typing import Literal, get_args

import numpy as np

from lengthwise.constructions.memorization.generator import Array, LinearGenerator
from lengthwise.constructions.memorization.words import Word, check_word
from lengthwise.validation import check_choice, check_kind, check_sizes, truncate, whole_number

Action = Literal["inverse", "note"]


def rotation_matrix(angle: float) -> Array:
    """Return the counterclockwise rotation of the plane by an angle in radians; quarter turns are exact."""
    quarters = angle / (pi / 2)
    # cos(pi / 2) is not 0 in float64.
    if quarters == round(quarters):
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    else:
        c, s = cos(angle), sin(angle)
    return np.array([[c, -s], [s, c]])


def arc_margin(zeros: int, period: int) -> float:
    """Return sin(pi a / p) sin(pi / p), the widest margin of a line that separates two arcs of a regular p-gon.

    Here p is `period`, and a is `zeros`. The p corners are the states of the generator of 0^a 1^(p-a) (`rotation`), and
    have norm 1. The answer is 0 at `zeros` consecutive corners, and 1 at all other corners. The margin is the distance
    from the line to the nearest corner.

    Example:
        >>> round(arc_margin(5, 8), 4), round(arc_margin(1, 100), 5)
        (0.3536, 0.00099)
    """
    check_sizes(period=period)
    zeros = whole_number("zeros", zeros, 0, period)
    return sin(pi * zeros / period) * sin(pi / period)


def rotation(zeros: int, ones: int) -> LinearGenerator:
    """Return a generator of (0^a 1^b)^+ in the plane: W_h turns by 2 pi / (a + b), and a line separates two arcs.

    W_h and the states h_i are as in `LinearGenerator`. Let p be a + b. The states are corners of a regular p-gon, and
    h_1 = (1, 0) is the state of the first zero. The line's unit normal n points at the middle of the zeros' arc, at the
    angle pi (a - 1) / p. The line's offset is ``c = cos(pi a / p) cos(pi / p)``: the answer is 0 iff n.h > c. The line
    is `arc_margin` away from the nearest states.

    Raises:
        ValueError: a or b is not a whole number of at least 1, or p = 2, for which one dimension suffices.

    Example:
        >>> generator = rotation(5, 3)
        >>> generator.generate(16), round(generator.margin(8), 4)
        ('0000011100000111', 0.3536)

    Source: "update on rnn memorization", section (0^a 1^b)^+, Figures 1 and 2.
    Differs from the source: the best line and its offset are ours; states are neither shifted nor rotated.
    """
    period = _period_of_arcs(zeros, ones)
    middle = pi * (zeros - 1) / period
    normal = np.array([cos(middle), sin(middle)])
    offset = _offset(zeros, period)
    return LinearGenerator(
        rotation_matrix(2 * pi / period),
        np.stack([normal, -normal]),
        np.array([-offset, offset]),
        np.array([1.0, 0.0]),
        ("0", "1"),
    )


def complex_rotation(zeros: int, ones: int) -> LinearGenerator:
    """Return a generator of (0^a 1^b)^+ whose state is one complex number: W_h = e^(2 pi i / p), with p = a + b.

    W_h is as in `LinearGenerator`. Logits are real parts of complex numbers.

    Example:
        >>> complex_rotation(3, 4).generate(9)
        '000111100'

    Source: "update on rnn memorization", section "How small can we make d?".
    Differs from the source: the source gives only the matrix; the read-out is ours.
    """
    period = _period_of_arcs(zeros, ones)
    normal = np.exp(1j * pi * (zeros - 1) / period)
    offset = _offset(zeros, period)
    return LinearGenerator(
        np.array([[np.exp(2j * pi / period)]]),
        np.array([[normal.conj()], [-normal.conj()]]),
        np.array([-offset, offset]),
        np.array([1.0 + 0.0j]),
        ("0", "1"),
    )


def _period_of_arcs(zeros: int, ones: int) -> int:
    check_sizes(zeros=zeros, ones=ones)  # a word of one symbol needs no states
    if zeros == ones == 1:
        raise ValueError(
            "zeros, ones: expected a period zeros + ones of at least 3, got 2; call simplex(parse_word('01')), which "
            "needs only one dimension"
        )
    return zeros + ones


def _offset(zeros: int, period: int) -> float:
    """Return cos(pi a / p) cos(pi / p), with a = `zeros` and p = `period`; exactly 0 for arcs of equal size."""
    return 0.0 if 2 * zeros == period else cos(pi * zeros / period) * cos(pi / period)


def permutation(word: Word, power: int = 1, action: Action = "inverse") -> LinearGenerator:
    """Return a generator of any word: W_h is a power of the cyclic shift, and W_y has one-hot columns.

    W_h, W_y and h_i are as in `LinearGenerator`. The dimension d is the period p of the word. W_h represents c^j for
    the cycle c = (1 2 ... d) and j = `power` coprime to d. A permutation s acts on a vector v in one of two ways. With
    the action of the source, `"note"`, (s.v)_i = v_{s(i)}, and c maps e_1 to e_d, although the source states e_2. With
    the action `"inverse"`, (s.v)_i = v_{s^-1(i)}, and c maps e_1 to e_2. Only `"inverse"` is a representation of all
    permutations. For both actions, the columns of W_y are one-hot vectors of the letters, in the order of the orbit of
    h_1 = e_1. All numbers are 0 and 1, so nothing is rounded.

    Raises:
        ValueError: the power is not coprime to p, or the action is unknown.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> permutation(parse_word("abc")).hidden[:, 0].tolist()
        [0, 1, 0]
        >>> permutation(parse_word("abc"), action="note").hidden[:, 0].tolist()
        [0, 0, 1]

    Source: "update on rnn memorization", section (s_1^a_1 ... s_k^a_k)^+ and its remark.
    Differs from the source: the action is inverted by default, and the columns of W_y depend on the power; h_0 is
        W_h^-1 e_1, so that h_1 = e_1.
    """
    check_word(word)
    check_choice("action", action, get_args(Action))
    p = word.period
    check_kind("power", power, Integral, "a whole number")
    if gcd(power, p) != 1:
        raise ValueError(f"power: expected a number coprime to the period {p}, got {power}; take for example 1")
    step = power if action == "inverse" else -power
    orbit = np.arange(p) * step % p
    hidden, readout = np.zeros((p, p), int), np.zeros((len(word.symbols), p), int)
    hidden[(np.arange(p) + step) % p, np.arange(p)] = 1
    readout[word.letters, orbit] = 1
    return LinearGenerator(hidden, readout, np.zeros(len(readout), int), np.eye(p, dtype=int)[0], word.symbols)


def simplex(word: Word) -> LinearGenerator:
    """Return an integer generator of any word: e_1 -> e_2 -> ... -> e_(p-1) -> (-1, ..., -1) -> e_1.

    For a word of p letters, the dimension is p - 1. The recurrence matrix W_h is the companion matrix of
    1 + x + ... + x^(p-1). This is the cyclic shift without its eigenvalue 1, which the bias replaces. The states are
    the corners of a simplex, so a read-out can give them arbitrary logits. Here the logits are p times the one-hot
    vectors.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> generator = simplex(parse_word("abac"))
        >>> generator.dimension, generator.generate(8), generator.logits(generator.states(2)).tolist()
        (3, 'abacabac', [[4, 0, 0], [0, 4, 0]])
    """
    check_word(word)
    p = word.period
    one_hot = np.eye(len(word.symbols), dtype=int)[word.letters]
    bias = one_hot.sum(0)
    hidden = companion_matrix([1] * p)
    first = np.eye(max(p - 1, 0), dtype=int)[:1].reshape(-1)
    return LinearGenerator(hidden, (p * one_hot[:-1] - bias).T, bias, first, word.symbols)


def companion_matrix(coefficients: list[int]) -> Array:
    """Return the companion matrix C of a polynomial with integer coefficients, highest power first.

    The first coefficient is 1. For i below the degree, C maps e_i to e_(i+1). The characteristic polynomial of C is the
    given polynomial.

    Raises:
        ValueError: the first coefficient is missing or not 1.

    Example:
        >>> companion_matrix([1, 0, -2]).tolist()  # x^2 - 2
        [[0, 2], [1, 0]]
    """
    if not coefficients or coefficients[0] != 1:
        raise ValueError(
            f"coefficients: expected numbers of which the first is 1, got {truncate(repr(coefficients))}; begin with "
            "the highest power, and divide all coefficients by the first"
        )
    d = len(coefficients) - 1
    matrix = np.eye(d, k=-1, dtype=int)
    if d:
        matrix[:, -1] = [-coefficient for coefficient in coefficients[:0:-1]]
    return matrix


def repeats(generator: LinearGenerator, word: Word, count: int) -> bool:
    """Return whether the first `count` symbols that a generator generates repeat the word."""
    check_word(word)
    generated = generator.generate(count)
    return generated == (word.text * (count // word.period + 1))[:count]
