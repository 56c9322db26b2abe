"""Generators in closed form: rotations, permutations, simplices, words with an end, words with feedback."""

from itertools import permutations
from math import gcd, pi

import numpy as np
import pytest
from checked_types import begin
from hypothesis import given
from hypothesis import strategies as st
from in_fractions import in_fractions
from scipy.optimize import linprog
from word_classes import word_classes

from lengthwise.constructions.memorization.closed_form import (
    arc_margin,
    companion_matrix,
    complex_rotation,
    permutation,
    repeats,
    rotation,
    simplex,
)
from lengthwise.constructions.memorization.cyclotomic import cyclotomic
from lengthwise.constructions.memorization.feedback import counter, cycle, digits
from lengthwise.constructions.memorization.finite import end_indefinitely
from lengthwise.constructions.memorization.frequencies import orbit
from lengthwise.constructions.memorization.generator import LinearGenerator, strict_argmax
from lengthwise.constructions.memorization.networks import as_linear_rnn
from lengthwise.constructions.memorization.planar import planar
from lengthwise.constructions.memorization.separation import read_out
from lengthwise.constructions.memorization.words import binary_words, parse_word, units
from lengthwise.conventions import Tie

ARCS = [(a, p - a) for p in range(3, 13) for a in range(1, p)]
words = st.text("abcd", min_size=2, max_size=14).filter(lambda text: len(set(text)) > 1)


@pytest.mark.parametrize("make", [rotation, complex_rotation])
def test_rotations_generate_arcs(make) -> None:
    for a, b in ARCS:
        generator = make(a, b)
        assert generator.generate(5 * (a + b)) == 5 * ("0" * a + "1" * b)
        assert generator.margin(a + b) == pytest.approx(arc_margin(a, a + b), rel=1e-9)


def test_no_line_has_a_wider_margin() -> None:
    """Against the widest margin over 4,000 directions, each with its best offset."""
    angles = np.linspace(0, 2 * pi, 4_000, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)])
    for a, b in ARCS:
        heights = orbit((1,), a + b) @ directions
        widest = (heights[:a].min(0) - heights[a:].max(0)).max() / 2
        assert widest <= arc_margin(a, a + b) * (1 + 1e-12)
        assert widest == pytest.approx(arc_margin(a, a + b), rel=1e-2)


@pytest.mark.parametrize(
    ("a", "p", "margin"),
    [(5, 8, 0.3536), (4, 8, 0.3827), (1, 8, 0.1464), (10, 20, 0.1564), (1, 20, 0.0245), (50, 100, 0.0314)],
)
def test_margins_of_the_sheet(a: int, p: int, margin: float) -> None:
    assert round(arc_margin(a, p), 4) == margin


def test_arcs_are_refused_where_less_suffices() -> None:
    with pytest.raises(ValueError, match="zeros: expected a whole number of at least 1, got 0; give 1 or more"):
        rotation(0, 3)
    begin(is_checked=False)  # the annotations reject the wrong type before the function can
    with pytest.raises(ValueError, match=r"zeros: expected a whole number of at least 1, got 1\.5"):
        rotation(1.5, 2)  # type: ignore[arg-type]  # the argument is wrong on purpose
    with pytest.raises(ValueError, match=r"expected a period zeros \+ ones of at least 3, got 2; call simplex"):
        complex_rotation(1, 1)


@given(words, st.integers(1, 13))
def test_permutations_generate_any_word(text: str, power: int) -> None:
    word = parse_word(text)
    if gcd(power, word.period) > 1:
        with pytest.raises(ValueError, match=r"power: expected a number coprime to the period"):
            permutation(word, power)
        return
    for action in ("inverse", "note"):
        generator = permutation(word, power, action)
        assert repeats(generator, word, 3 * word.period)
        assert generator.dimension == word.period
        order = [tuple(state) for state in generator.states(word.period + 1)]
        assert len(set(order[:-1])) == word.period
        assert order[-1] == order[0]


def test_all_cycles_of_full_length_generate_a_word() -> None:
    """(d - 1)! of them, and not the phi(d) powers of one alone; other permutations pass some states over."""
    word = parse_word("abcab")
    cycles = 0
    for images in permutations(range(5)):
        states = [0]
        while images[states[-1]] != 0:
            states.append(images[states[-1]])
        if len(states) < 5:
            continue
        cycles += 1
        hidden, readout = np.zeros((5, 5), int), np.zeros((3, 5), int)
        hidden[images, range(5)] = readout[word.letters, states] = 1
        generator = LinearGenerator(hidden, readout, np.zeros(3, int), np.eye(5, dtype=int)[0], word.symbols)
        assert repeats(generator, word, 15)
    assert cycles == 24


def test_real_factors_of_the_order_are_not_only_quadratic() -> None:
    for p in range(3, 20):
        real = {round(root.real) for root in np.roots([1, *[0] * (p - 1), -1]) if abs(root.imag) < 1e-9}
        assert real == ({1, -1} if p % 2 == 0 else {1})


def test_the_note_sends_the_first_unit_vector_to_the_last() -> None:
    word = parse_word("abcde")
    assert np.flatnonzero(permutation(word, action="note").states(2)[1]).tolist() == [4]
    assert np.flatnonzero(permutation(word).states(2)[1]).tolist() == [1]


def test_coefficients_of_cyclotomic_polynomials_are_not_always_small() -> None:
    assert min(cyclotomic(105)) == -2
    assert all(set(cyclotomic(j)) <= {-1, 0, 1} for j in range(1, 105))


def test_totients_are_no_less_than_the_root_of_half() -> None:
    totient = {m: sum(gcd(j, m) == 1 for j in range(1, m + 1)) for m in range(1, 500)}
    assert all(totient[m] ** 2 >= m / 2 for m in totient)
    assert [m for m in totient if 2 * totient[m] ** 2 == m] == [2]


@given(words)
def test_a_bias_saves_one_dimension(text: str) -> None:
    word = parse_word(text)
    generator = simplex(word)
    assert generator.dimension == word.period - 1
    assert repeats(generator, word, 3 * word.period)
    assert np.array_equal(
        generator.logits(generator.states(word.period)), word.period * np.eye(len(word.symbols))[word.letters]
    )


def test_integer_generators_are_exact_after_any_number_of_steps() -> None:
    word = parse_word("abacabad")
    for generator in (permutation(word), simplex(word)):
        assert repeats(generator, word, 100_000)
        assert in_fractions(generator).generate(20) == generator.generate(20)


def test_companions_have_their_polynomial() -> None:
    coefficients = [1, 3, 0, -2, 5]
    assert np.poly(companion_matrix(coefficients)).round(6).tolist() == coefficients


SIZES = [(2, range(3, 10)), pytest.param(2, range(10, 13), marks=pytest.mark.slow), (3, range(3, 8)), (4, range(4, 7))]


@pytest.mark.unchecked
@pytest.mark.parametrize(("num_symbols", "periods"), SIZES)
def test_a_plane_suffices_iff_a_stride_is_non_crossing(num_symbols: int, periods: range) -> None:
    """The linear program of every primitive rotation against the construction; all words of these sizes."""
    planes = others = 0
    for period in periods:
        for text in word_classes(num_symbols, period):
            word = parse_word(text)
            feasible = any(read_out(word.letters, orbit((u,), period)) for u in units(period))
            if feasible:
                generator = planar(word)
                assert generator.dimension == 2
                assert repeats(generator, word, 3 * period)
                planes += 1
            else:
                with pytest.raises(ValueError, match="expected a word that is non-crossing at some stride"):
                    planar(word)
                others += 1
    assert planes
    assert others


@given(
    st.text(
        "abcdef",
        min_size=2,
        max_size=6,
    ).filter(lambda text: len(set(text)) == len(text)),
    st.data(),
)
def test_different_symbols_in_runs_need_a_plane(symbols: str, data) -> None:
    runs = data.draw(st.lists(st.integers(1, 5), min_size=len(symbols), max_size=len(symbols)))
    word = parse_word("".join(symbol * run for symbol, run in zip(symbols, runs, strict=True)))
    if word.period >= 3:
        assert repeats(planar(word), word, 2 * word.period)


def test_one_arc_for_each_symbol_is_not_needed() -> None:
    word = parse_word("abac")
    square = LinearGenerator(
        np.array([[0, -1], [1, 0]]),
        np.array([[0, 0], [0, 2], [0, -2]]),
        np.array([0, -1, -1]),
        np.array([1, 0]),
        ("a", "b", "c"),
    )
    assert repeats(square, word, 40)
    assert planar(word).dimension == 2
    for text in ("abacdc", "abcbad"):
        assert planar(parse_word(text)).dimension == 2
    for text in ("abcabd", "abcacb"):
        with pytest.raises(ValueError, match="two symbols cross at every stride"):
            planar(parse_word(text))


def test_a_plane_is_for_periods_from_three_on() -> None:
    with pytest.raises(ValueError, match=r"expected a period of at least 3, got 2; use simplex, which needs"):
        planar(parse_word("ab"))


@given(st.text("ab", min_size=1, max_size=9))
def test_strings_end_indefinitely(text: str) -> None:
    generator = end_indefinitely(text)
    assert generator.generate(len(text) + 200) == text + 200 * "$"
    eigenvalues = np.diag(generator.hidden)
    assert ((eigenvalues > 0) & (eigenvalues < 1)).all()
    assert len(set(eigenvalues.tolist())) == generator.dimension


@pytest.mark.parametrize("length", range(2, 9))
def test_binary_strings_need_no_more_exponentials_than_changes(length: int) -> None:
    """END is one of the two symbols: the string ends in the other one."""
    for number in range(2 ** (length - 1)):
        letters = np.array([int(digit) for digit in f"{number:0{length - 1}b}"] + [1, 0, 0])
        changes = int((np.diff(letters) != 0).sum())
        base = 0.5 ** (1 / length)
        states = np.vander([*(base**i for i in range(length + 1)), 0.0], changes + 1, increasing=True)[:, 1:]
        assert read_out(letters, states) is not None
        assert read_out(letters, states[:, :-1]) is None


@given(st.permutations("abcdef"), st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_symbols_of_one_run_each_end_with_one_exponential(symbols: list[str], runs: list[int]) -> None:
    text = "".join(symbol * run for symbol, run in zip(symbols, runs, strict=True))
    assert end_indefinitely(text).dimension == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected at least one symbol"),
        ("a$", "without the end symbol"),
        ("ab" * 600, "expected at most 1,000 symbols, got 1,200"),
    ],
)
def test_strings_that_cannot_end_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        end_indefinitely(text)


def test_a_text_that_changes_too_often_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        ValueError,
        match=r"^text: expected a text that a net .*, got 10 symbols in too many blocks",
    ):
        end_indefinitely("ab" * 5)


def test_numbers_that_float64_does_not_hold_are_no_weights() -> None:
    word = parse_word("".join("0123456789"[v] for v in np.random.default_rng(0).integers(10, size=400)))
    with pytest.raises(
        ValueError, match=r"^generator: expected numbers that float64 can represent, got larger numbers; call gen"
    ):
        as_linear_rnn(digits(word))


def test_feedback_needs_one_dimension_where_without_it_more_are_needed() -> None:
    for n in range(2, 20):
        symbols = tuple("abcdefghijklmnopqrst"[:n])
        assert cycle(symbols).dimension == 1
        assert cycle(symbols).generate(3 * n) == 3 * "".join(symbols)
        assert counter(n).generate(3 * n + 3) == 3 * ("0" * n + "1")
    with pytest.raises(ValueError, match="two or more different symbols"):
        cycle(("a", "a"))
    with pytest.raises(ValueError, match="zeros: expected a whole number of at least 1, got 0"):
        counter(0)
    with pytest.raises(ValueError, match="inputs: expected a generator without W_x"):
        counter(2).states(3)


def test_ties_are_errors() -> None:
    with pytest.raises(Tie, match="step 2: expected one largest logit"):
        strict_argmax(np.array([[1.0, 0.0], [2.0, 2.0]]))
    with pytest.raises(Tie):
        strict_argmax(np.array([[np.nan, 0.0]]))


def test_the_reference_program_agrees_on_pairs_of_measures() -> None:
    """Two symbols cannot be told apart iff two distributions on their positions have equal Fourier coefficients."""
    for text in word_classes(2, 9):
        word = parse_word(text)
        for frequencies in ((1,), (1, 2), (2, 3), (1, 3, 4)):
            states = orbit(frequencies, word.period)
            signs = 1 - 2 * word.letters
            equal = np.concatenate([(signs[:, None] * np.c_[states, np.ones(9)]).T, np.ones((1, 9))])
            measures = linprog(np.zeros(9), A_eq=equal, b_eq=np.r_[np.zeros(len(equal) - 1), 2.0])
            assert (measures.status == 0) == (read_out(word.letters, states) is None)


def test_words_of_a_period_are_there_each_time() -> None:
    assert [len(list(binary_words(5))) for _ in range(2)] == [3, 3]
