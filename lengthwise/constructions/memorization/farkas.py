"""Proofs that a set of frequencies has no read-out of a word: Farkas certificates, checked with intervals or exactly.

Each position i and competing symbol j have a constraint: the margin of the letter s_i over j is positive. The margin is
linear in the weights w and b of the read-out. Suppose that numbers l_ij >= 0 exist, not all 0, such that the margins,
multiplied by l_ij, add up to 0 as functions of w and b. Then no w, b satisfy all constraints, because the sum would be
positive. By Farkas' lemma, such numbers exist iff no w, b satisfy all constraints. Let S be the set of frequencies, p
the period of the word, and z = e^(2 pi i / p). The margins add up to 0 iff, for each symbol a, and for each frequency k
of S and k = 0 (for the bias),

    sum over i with s_i = a, j of l_ij z^(k i)  =  sum over i of l_ia z^(k i).

The l_ij are real numbers, and floating-point numbers satisfy these equations only up to rounding. There are three kinds
of proof:

- `"coincidence"`: S and p have a common divisor, so that two positions with different letters share a state;
- `"interval"`: all but (n - 1)(d + 1) of the numbers are fixed, for n symbols and dimension d. The remaining numbers
  solve a square system of linear equations whose coefficients are enclosed by intervals. Interval elimination encloses
  the solution and shows that it is positive;
- `"exact"`: the numbers lie in the field of z: they are sums of fractions times powers of z, and are compared modulo
  the cyclotomic polynomial of p.

Source: Farkas (1902) for the alternative; Neumaier, "Interval Methods for Systems of Equations" (1990), for Gaussian
elimination in intervals. Differs from the source: no difference.
"""

from fractions import Fraction
from math import comb, gcd, isfinite
from numbers import Rational
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from lengthwise.constructions.memorization.cyclotomic import Sum, is_zero, null_vector, sign
from lengthwise.constructions.memorization.frequencies import Frequencies, dimension, orbit, sets_of_dimension
from lengthwise.constructions.memorization.memorize import Memorization
from lengthwise.constructions.memorization.rational import RationalMemorization, frequencies_of, sets_of_orders
from lengthwise.constructions.memorization.separation import constraints, dual_weights, pairs
from lengthwise.constructions.memorization.words import Word, check_word
from lengthwise.validation import check_choice, check_kind, whole_number

Kind = Literal["coincidence", "interval", "exact"]

SUPPORT = 1e-9
"""The smallest weight of `dual_weights` that is kept, as a fraction of the largest weight. The check of a certificate
does not rely on this choice."""

PRECISION = 200
"""The precision of the ends of intervals, in bits."""

MAX_CERTIFICATES = 10_000
"""The largest number of certificates in a proof."""


class FarkasCertificate(NamedTuple):
    """A proof that frequencies have no read-out: with factors `numbers` > 0, the constraints of `pairs` add up to 0.

    Each pair is a position and a competing symbol. The constraints of all other pairs have the factor 0. For kind
    `"interval"`, numbers are floats. For n symbols and dimension d, the last (n - 1)(d + 1) floats are approximate. The
    check replaces these floats by the exact solution, which it encloses in intervals. For kind `"exact"`, each number
    is a tuple of p fractions, the coefficients of the powers of z. Here z = e^(2 pi i / p), for a word of period p.
    """

    frequencies: Frequencies
    kind: Kind
    pairs: tuple[tuple[int, int], ...]
    numbers: tuple[Any, ...]


def refute(word: Word, frequencies: Frequencies, kind: Kind | None = None) -> FarkasCertificate | None:
    """Return a checked certificate that these frequencies allow no read-out of the word, or None, which proves nothing.

    The certificate is of kind `kind` or, if `kind` is None, of the first kind that succeeds.

    Example:
        >>> from lengthwise.constructions.memorization.words import parse_word
        >>> refute(parse_word("abacabad"), (1,)).kind, refute(parse_word("aab"), (1,))
        ('exact', None)
    """
    check_word(word)
    if kind is not None:
        check_choice("kind", kind, get_args(Kind))
    for frequency in frequencies:
        whole_number("frequencies", frequency, 1, word.period // 2)
    methods = {"coincidence": _coincidence, "interval": _interval, "exact": _exact}
    for name in methods if kind is None else [kind]:
        certificate = methods[name](word, frequencies)
        if certificate is not None and holds(word, certificate):
            return certificate
    return None


def refute_below(memorization: Memorization | RationalMemorization) -> list[FarkasCertificate]:
    """Return a certificate for every maximal set of frequencies whose dimension is below `memorization.lower`.

    A certificate for a set also covers all its subsets. For a rational W_h, there is instead a certificate for
    each set that `sets_of_orders` gives below this dimension.

    Raises:
        ValueError: there are more than 10,000 maximal sets.
        RuntimeError: no certificate was found for one of these sets.

    Example:
        >>> from lengthwise.constructions.memorization.memorize import memorize
        >>> [(certificate.frequencies, certificate.kind) for certificate in refute_below(memorize("abcabd"))]
        [((1,), 'exact'), ((2,), 'coincidence'), ((3,), 'coincidence')]
    """
    check_kind("memorization", memorization, (Memorization, RationalMemorization), "a result of memorize")
    word = memorization.word
    lower = memorization.lower
    certificates = []
    if isinstance(memorization, RationalMemorization):
        smaller = [frequencies_of(orders, word.period) for d, orders in sets_of_orders(word.period) if d < lower]
    else:
        _check_count(word.period, lower)
        smaller = maximal_sets(word.period, lower)
    for frequencies in smaller:
        certificate = refute(word, frequencies)
        if certificate is None:
            raise RuntimeError(
                f"frequencies {frequencies}: expected a certificate that they do not suffice, got none; regard the "
                "lower bound as unproved, because it relies on the linear-program solver HiGHS alone"
            )
        certificates.append(certificate)
    return certificates


def _check_count(period: int, below: int) -> None:
    """Raise a ValueError if there are too many sets of frequencies of the largest dimension below `below`."""
    count = comb((period - 1) // 2, max(0, below - 1) // 2)
    if count > MAX_CERTIFICATES:
        raise ValueError(
            f"word: expected a proof with at most {MAX_CERTIFICATES:,} sets of frequencies, got {count:,}; take a "
            "shorter word"
        )


def maximal_sets(period: int, below: int) -> list[Frequencies]:
    """Return every set of frequencies whose dimension is less than `below`, and which is not part of another such set.

    For period p, the frequency p / 2 adds one dimension to a set, and any other frequency adds two. So all sets of
    dimension `below` - 1 are maximal. A set of dimension `below` - 2 is maximal if p is odd, or if the set contains
    p / 2.

    Example:
        >>> maximal_sets(6, 4), maximal_sets(5, 4)
        ([(1, 3), (2, 3)], [(1,), (2,)])
    """
    smaller, largest = (
        list(sets_of_dimension(period, d, primitive=False)) if d > 0 else [] for d in (below - 2, below - 1)
    )
    return sorted([*(S for S in smaller if period % 2 or period // 2 in S), *largest])


def holds(word: Word, certificate: FarkasCertificate) -> bool:
    """Return whether a certificate is valid; this check trusts no linear program, and encloses all rounding errors."""
    check_word(word)
    check_kind("certificate", certificate, FarkasCertificate, "a FarkasCertificate")
    letters, p = word.letters, word.period
    if not _is_about(word, certificate):
        return False
    if certificate.kind == "coincidence":
        (i, j), (other, competitor) = certificate.pairs
        same_state = all((i - other) * k % p == 0 for k in certificate.frequencies)
        return bool(same_state and letters[i] == competitor and letters[other] == j)
    if certificate.kind == "exact":
        balanced = all(
            is_zero(_exact_sum(word, certificate, symbol, k), p)
            for symbol in range(len(word.symbols))
            for k in (0, *certificate.frequencies)
        )
        return balanced and all(_is_real(number, p) and sign(number, p) > 0 for number in certificate.numbers)
    return _solution_is_positive(word, certificate)


def _is_about(word: Word, certificate: FarkasCertificate) -> bool:
    """Return whether pairs are positions and competing symbols, and all numbers have the type for the kind of proof.

    Without this check, Python would read negative positions from the end, and accept sums of any length.
    """
    both = certificate.pairs
    numbers = certificate.numbers
    num_symbols = len(word.symbols)
    if not both or len(both) != len(numbers) or (certificate.kind == "coincidence" and len(both) != 2):
        return False
    if not all(0 <= i < word.period and 0 <= j < num_symbols and word.letters[i] != j for i, j in both):
        return False
    if certificate.kind == "exact":
        return all(len(number) == word.period and all(isinstance(c, Rational) for c in number) for number in numbers)
    return all(isinstance(number, int | float) and isfinite(number) for number in numbers)


def _is_real(number: Sum, period: int) -> bool:
    """Return whether a number equals its conjugate: only then do the equations at k imply the equations at -k."""
    return is_zero([own - number[-power % period] for power, own in enumerate(number)], period)


def _coincidence(word: Word, frequencies: Frequencies) -> FarkasCertificate | None:
    # Positions that are `shift` apart share a state.
    shift = word.period // gcd(*frequencies, word.period)
    letters = word.letters
    for i in range(word.period if shift < word.period else 0):
        other = (i + shift) % word.period
        if letters[i] != letters[other]:
            both = ((i, int(letters[other])), (other, int(letters[i])))
            return FarkasCertificate(frequencies, "coincidence", both, (1, 1))
    return None


def _interval(word: Word, frequencies: Frequencies) -> FarkasCertificate | None:
    """Find an interval certificate with as many pairs as possible; constraints of the last pairs are independent."""
    from scipy.linalg import qr

    states = orbit(frequencies, word.period)
    weights = dual_weights(word.letters, states, spread=True)
    if weights is None:
        return None
    support = np.flatnonzero(weights > SUPPORT * weights.max())
    rows = constraints(word.letters, states)[support]
    # Pivoting chooses independent constraints, whose numbers can be solved for.
    _, triangle, order = qr(rows.T, mode="economic", pivoting=True)
    size = rows.shape[1]
    if len(support) < size or abs(triangle[-1, -1]) < SUPPORT * abs(triangle[0, 0]):
        return None
    chosen = support[np.concatenate([order[size:], order[:size]])]
    positions, competitors = pairs(word.letters)
    both = tuple((int(positions[index]), int(competitors[index])) for index in chosen)
    return FarkasCertificate(frequencies, "interval", both, tuple(float(weights[index]) for index in chosen))


def _solution_is_positive(word: Word, certificate: FarkasCertificate) -> bool:
    """Return whether interval elimination shows a positive solution; a float64 LU decides the order of rows."""
    from mpmath import iv
    from scipy.linalg import lu

    size = (len(word.symbols) - 1) * (dimension(certificate.frequencies, word.period) + 1)
    # Elimination solves for the last `size` numbers; the others are taken as they are and must be positive.
    if len(certificate.pairs) < size or min(certificate.numbers) <= 0:
        return False
    # mpmath's precision is global, and restored at the end.
    before, iv.prec = iv.prec, PRECISION
    try:
        columns = np.array([_enclosed(word, certificate.frequencies, i, j) for i, j in certificate.pairs]).T
        fixed = np.array([iv.mpf(number) for number in certificate.numbers[: len(certificate.numbers) - size]])
        matrix = columns[:, len(fixed) :]
        right = -(columns[:, : len(fixed)] * fixed).sum(1) + iv.mpf(0)
        # The order of rows decides only whether elimination succeeds, so midpoints are accurate enough for it.
        rows = lu(np.vectorize(lambda entry: float(entry.mid), otypes=[float])(matrix), p_indices=True)[0]
        ordered = np.argsort(rows)
        solution = _solved(matrix[ordered], right[ordered])
        return solution is not None and all(number.a > 0 for number in solution)
    finally:
        iv.prec = before


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return the solution of a square system of intervals, or None if a pivot may be 0."""
    size = len(right)
    for index in range(size):
        if 0 in matrix[index, index]:
            return None
        for row in range(index + 1, size):
            factor = matrix[row, index] / matrix[index, index]
            matrix[row, index + 1 :] = matrix[row, index + 1 :] - matrix[index, index + 1 :] * factor
            right[row] = right[row] - factor * right[index]
    solution = np.empty(size, object)
    for index in reversed(range(size)):
        known = (matrix[index, index + 1 :] * solution[index + 1 :]).sum()
        solution[index] = (right[index] - known) / matrix[index, index]
    return solution


def _enclosed(word: Word, frequencies: Frequencies, position: int, competitor: int) -> list[Any]:
    """Return the row of `constraints` for a position and a competitor, as intervals that contain the row's numbers."""
    from mpmath import iv

    p = word.period
    state = []
    for k in frequencies:
        angle = 2 * iv.pi * (k * position % p) / p
        state += [iv.cos(angle)] if 2 * k == p else [iv.cos(angle), iv.sin(angle)]
    state.append(iv.mpf(1))
    rows = [[iv.mpf(0)] * len(state) for _ in word.symbols]
    rows[word.letters[position]], rows[competitor] = state, [-number for number in state]
    return [number for row in rows[:-1] for number in row]


def _exact(word: Word, frequencies: Frequencies) -> FarkasCertificate | None:
    """Find an exact certificate: numbers in the field of z, for the pairs with positive weights in `dual_weights`."""
    weights = dual_weights(word.letters, orbit(frequencies, word.period), spread=False)
    if weights is None:
        return None
    positions, competitors = pairs(word.letters)
    support = np.flatnonzero(weights > SUPPORT * weights.max())
    both = tuple((int(positions[index]), int(competitors[index])) for index in support)
    equations = [
        [(int(word.letters[i] == symbol) - int(j == symbol), k * i) for i, j in both]
        for symbol in range(len(word.symbols) - 1)
        for k in (0, *frequencies)
    ]
    numbers = null_vector(equations, word.period)
    if numbers is None:
        return None
    return FarkasCertificate(frequencies, "exact", both, tuple(numbers))


def _exact_sum(word: Word, certificate: FarkasCertificate, symbol: int, k: int) -> list[Fraction]:
    """Return the difference of the two sides in the equation of a symbol and a frequency, as a sum of powers of z."""
    total = [Fraction(0)] * word.period
    for (i, j), number in zip(certificate.pairs, certificate.numbers, strict=True):
        weight = int(word.letters[i] == symbol) - int(j == symbol)
        if weight:
            for power, coefficient in enumerate(number):
                total[(power + k * i) % word.period] += weight * coefficient
    return total
