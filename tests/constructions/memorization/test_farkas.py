"""Proofs that a dimension is too small: they are memorization, they hold, and damaged ones do not."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_classes import word_classes

from lengthwise.constructions.memorization.cyclotomic import is_zero, null_vector, sign
from lengthwise.constructions.memorization.farkas import FarkasCertificate, holds, maximal_sets, refute, refute_below
from lengthwise.constructions.memorization.frequencies import dimension, orbit, sets_of_dimension
from lengthwise.constructions.memorization.memorize import memorize
from lengthwise.constructions.memorization.rational import memorize_rationally
from lengthwise.constructions.memorization.separation import pairs, read_out
from lengthwise.constructions.memorization.words import parse_word

pytestmark = pytest.mark.unchecked

COUNTEREXAMPLES = [("ACBDBCBCACADACABADAB", (1, 2, 3)), ("CAGACFCFAGFBEFDFDEGAEBCECDCB", (1, 2))]


@pytest.mark.parametrize(
    ("text", "frequencies"), [COUNTEREXAMPLES[0], pytest.param(*COUNTEREXAMPLES[1], marks=pytest.mark.slow)]
)
def test_words_whose_pairs_alternate_little_are_refuted_exactly(text: str, frequencies: tuple[int, ...]) -> None:
    word = parse_word(text)
    certificate = refute(word, frequencies, "exact")
    assert certificate is not None
    assert certificate.kind == "exact"
    first, *others = certificate.numbers
    longer = [first[0] + Fraction(1, 10**30), *first[1:]]
    assert not holds(word, certificate._replace(numbers=(longer, *others)))


def test_the_longer_of_them_is_refuted_by_intervals_too() -> None:
    text, frequencies = COUNTEREXAMPLES[1]
    certificate = refute(parse_word(text), frequencies, "interval")
    assert certificate is not None
    assert certificate.kind == "interval"


@pytest.mark.parametrize(
    ("num_symbols", "period"),
    [(2, 7), *(pytest.param(2, period, marks=pytest.mark.slow) for period in (8, 9)), (3, 6), (4, 6)],
)
def test_every_smaller_dimension_is_refuted(num_symbols: int, period: int) -> None:
    for text in word_classes(num_symbols, period):
        memorization = memorize(text)
        certificates = refute_below(memorization)
        assert all(holds(memorization.word, certificate) for certificate in certificates)
        refuted = [set(certificate.frequencies) for certificate in certificates]
        for d in range(1, memorization.upper):
            for smaller in sets_of_dimension(period, d):
                assert any(set(smaller) <= larger for larger in refuted)


@pytest.mark.slow
@pytest.mark.parametrize("period", [10, 11, 12])
def test_every_smaller_dimension_of_longer_words_is_refuted(period: int) -> None:
    for text in word_classes(2, period):
        refute_below(memorize(text))


@given(st.text("abc", min_size=4, max_size=10).filter(lambda text: len(set(text)) > 1), st.data())
def test_certificates_exist_where_there_is_no_read_out_and_nowhere_else(text: str, data) -> None:
    word = parse_word(text)
    frequencies = data.draw(st.sets(st.integers(1, max(1, word.period // 2)), min_size=1).map(sorted).map(tuple))
    readable = read_out(word.letters, orbit(frequencies, word.period)) is not None
    certificate = refute(word, frequencies)
    assert (certificate is None) == readable
    positions, competitors = pairs(word.letters)
    every = tuple(zip(positions.tolist(), competitors.tolist(), strict=True))
    numbers = tuple(data.draw(st.lists(st.floats(0.1, 10), min_size=len(every), max_size=len(every))))
    if readable:
        assert not holds(word, FarkasCertificate(frequencies, "interval", every, numbers))
    if certificate is not None:
        (i, _), *others = certificate.pairs
        wrong = certificate._replace(pairs=((i, int(word.letters[i])), *others))
        assert not holds(word, wrong)
        assert not holds(word, certificate._replace(pairs=(), numbers=()))


def test_damaged_certificates_do_not_hold() -> None:
    word = parse_word("0010111010011010")
    by_kind = {c.kind: c for c in refute_below(memorize(word.text)) + refute_below(memorize("abacabad"))}
    assert set(by_kind) == {"interval", "coincidence", "exact"}
    interval = by_kind["interval"]
    assert holds(word, interval)
    assert not holds(word, interval._replace(numbers=(-interval.numbers[0], *interval.numbers[1:])))
    assert not holds(word, interval._replace(frequencies=(*interval.frequencies, 6, 7)))
    assert not holds(word, interval._replace(pairs=interval.pairs[:2], numbers=interval.numbers[:2]))
    other = parse_word("abacabad")
    exact = by_kind["exact"]
    assert holds(other, exact)
    assert not holds(other, exact._replace(numbers=tuple([-c for c in number] for number in exact.numbers)))
    assert not holds(other, exact._replace(frequencies=(1, 4)))


def test_multipliers_that_are_not_real_show_nothing() -> None:
    """The equations at -k follow from those at k for real numbers alone; this word has a net with frequency 1."""
    word = parse_word("aab")
    assert refute(word, (1,)) is None
    assert memorize("aab").frequencies == (1,)
    zero, minus = Fraction(0), Fraction(-1)
    multipliers = ((zero, minus, zero), (zero, zero, minus), (Fraction(1), zero, zero))
    assert all(sign(number, 3) > 0 for number in multipliers)
    assert not holds(word, FarkasCertificate((1,), "exact", ((0, 1), (1, 1), (2, 0)), multipliers))
    # With twice as many coefficients: of the conjugate x of a number, and of 2 conj(x) - x.
    conjugates = [[number[-power % 3] for power in range(3)] for number in multipliers]
    longer = tuple(
        (*conjugate, *(2 * own - mirrored for own, mirrored in zip(number, conjugate, strict=True)))
        for number, conjugate in zip(multipliers, conjugates, strict=True)
    )
    assert all(sign(number, 3) > 0 for number in longer)
    assert not holds(word, FarkasCertificate((1,), "exact", ((0, 1), (1, 1), (2, 0)), longer))


def test_competitors_and_positions_are_those_of_the_word() -> None:
    """Python counts from the end where an index is negative: a letter would compete with itself."""
    word, ones = parse_word("aaab"), (1.0,) * 4
    assert memorize("aaab").frequencies == (1,)
    itself = FarkasCertificate((1,), "interval", ((1, -2), (0, 1), (2, 1), (3, 0)), ones)
    assert not holds(word, itself)
    certificate = refute(parse_word("aabb"), (2,))
    assert certificate is not None
    (i, j), other = certificate.pairs
    assert not holds(parse_word("aabb"), certificate._replace(pairs=((i - 4, j), other)))
    assert not holds(parse_word("aabb"), certificate._replace(pairs=(other,), numbers=(1,)))
    interval = refute(parse_word("0010111010011010"), (1,), "interval")
    assert interval is not None
    for number in (math.nan, math.inf, Fraction(1)):
        assert not holds(parse_word("0010111010011010"), interval._replace(numbers=(number, *interval.numbers[1:])))


def test_a_coincidence_is_one_state_with_two_letters() -> None:
    word = parse_word("aabb")
    certificate = refute(word, (2,))
    assert certificate is not None
    assert certificate.kind == "coincidence"
    assert not holds(word, certificate._replace(frequencies=(1,)))
    assert not holds(word, FarkasCertificate((2,), "coincidence", ((0, 1), (1, 1)), (1, 1)))


def test_maximal_sets_by_definition() -> None:
    for period in range(3, 12):
        for below in range(2, period):
            every = [S for d in range(1, below) for S in sets_of_dimension(period, d, primitive=False)]
            largest = [S for S in every if not any(set(S) < set(other) for other in every)]
            assert maximal_sets(period, below) == sorted(largest)
            assert all(dimension(S, period) < below for S in largest)


def test_smaller_rational_matrices_are_refuted_too() -> None:
    memorization = memorize_rationally("000000011111111")
    assert (memorization.order_dimension, memorization.dimension) == (6, 8)
    assert [certificate.frequencies for certificate in refute_below(memorization)] == [(3, 5, 6)]


@given(st.integers(3, 24), st.lists(st.integers(-3, 3), min_size=24, max_size=24))
def test_signs_of_sums_of_roots_of_unity(period: int, coefficients: list[int]) -> None:
    import numpy as np

    number = [Fraction(c) for c in coefficients[:period]]
    value = sum(c * np.exp(2j * np.pi * k / period) for k, c in enumerate(coefficients[:period]))
    assert is_zero(number, period) == (abs(value) < 1e-9)
    assert sign(number, period) == (0 if abs(value.real) < 1e-9 else np.sign(value.real))


@pytest.mark.parametrize("period", [3, 5, 7, 8, 12])
def test_null_vectors_solve_their_equations(period: int) -> None:
    equations = [[(1, 0), (1, 1), (1, 2), (-1, period - 1)]]
    numbers = null_vector(equations, period)
    if numbers is None:
        return
    total = [Fraction(0)] * period
    for (weight, power), number in zip(equations[0], numbers, strict=True):
        for index, coefficient in enumerate(number):
            total[(index + power) % period] += weight * coefficient
    assert is_zero(total, period)


def test_equations_with_many_solutions_have_no_one_null_vector() -> None:
    assert null_vector([[(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]], 6) is None


def test_nothing_is_below_a_word_of_one_letter() -> None:
    assert refute_below(memorize("aaa")) == []
