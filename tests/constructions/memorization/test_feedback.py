"""Nets that read their own answers: any word with d = 1, and what those need whose errors die out."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_classes import word_classes

from lengthwise.constructions.memorization.contracting import (
    FeedbackBounds,
    contracting_dimension,
    search_net,
    shift_register,
)
from lengthwise.constructions.memorization.contracting_line import contracting_rate, contraction
from lengthwise.constructions.memorization.contracting_plane import Signs, contracting_plane
from lengthwise.constructions.memorization.cycle import Undecided, cycle_states, net_of
from lengthwise.constructions.memorization.feedback import digits
from lengthwise.constructions.memorization.networks import as_elman, as_linear_rnn
from lengthwise.constructions.memorization.words import Word, parse_word
from lengthwise.models.linear_rnn_generator import generate_by_definition

BINARY = [text for period in range(2, 9) for text in word_classes(2, period)]


def is_balanced(text: str) -> bool:
    """Whether factors of one length, read around the circle, have numbers of `b` that differ by at most 1."""
    doubled = 2 * text
    for length in range(1, len(text)):
        counts = {doubled[start : start + length].count("b") for start in range(len(text))}
        if max(counts) - min(counts) > 1:
            return False
    return True


@pytest.mark.parametrize(("num_symbols", "longest"), [(2, 8), (3, 6), (4, 5)])
def test_every_word_takes_one_dimension_with_feedback(num_symbols: int, longest: int) -> None:
    """And no word of two symbols takes none: with d = 0 the bias alone answers, always the same."""
    for period in range(num_symbols, longest + 1):
        for text in word_classes(num_symbols, period):
            generator = digits(parse_word(text))
            assert generator.dimension == 1
            assert generator.generate(4 * period) == 4 * text


@given(st.text("abcd", min_size=2, max_size=60).filter(lambda text: len(set(text)) > 1))
def test_digits_say_long_words_in_integers(text: str) -> None:
    word = parse_word(text)
    assert digits(word).generate(3 * word.period) == 3 * word.text


@pytest.mark.parametrize("period", [8, 50])
def test_in_float64_digits_say_a_word_indefinitely_as_long_as_all_numbers_are_whole(period: int) -> None:
    text = "a" * (period - 3) + "bab"
    generated = as_linear_rnn(digits(parse_word(text))).generate(10 * period)
    assert generated.tolist() == [int(letter == "b") for letter in 10 * text]


def test_an_error_of_one_unit_ends_a_word_said_by_digits() -> None:
    generator = digits(parse_word("aabab"))
    other = generator._replace(first=generator.first + 1)
    assert other.generate(10) != generator.generate(10)


def test_a_contracting_net_of_one_dimension_says_balanced_words_and_no_others() -> None:
    """Against a definition that knows nothing of nets; exact, for all binary words up to period 8."""
    for text in BINARY:
        assert (contracting_rate(parse_word(text)) is not None) == is_balanced(text), text


@pytest.mark.parametrize("text", [text for text in BINARY if is_balanced(text)])
def test_it_comes_back_from_any_state(text: str) -> None:
    net = contraction(parse_word(text))
    assert net is not None
    assert net.generate(3 * len(text)) == 3 * text
    assert abs(net.hidden[0, 0]) < 1
    disturbed = net._replace(first=np.array([Fraction(7)], dtype=object)).generate(60 * len(text))
    assert disturbed[-2 * len(text) :] in 4 * text


@pytest.mark.parametrize("longest", [6, pytest.param(8, marks=pytest.mark.slow)])  # longer words take seconds
def test_bounds_of_contracting_nets_meet_for_all_words(longest: int) -> None:
    words = [text for text in BINARY if len(text) <= longest]
    bounds = {text: contracting_dimension(parse_word(text)) for text in words}
    assert all(bound.lower == bound.upper for bound in bounds.values())
    assert [text for text, bound in bounds.items() if bound.lower > 2] == ["aaabbabb"] * (longest == 8)
    assert {text for text, bound in bounds.items() if bound.lower == 1} == set(filter(is_balanced, words))


def test_the_plane_is_not_decided_by_too_few_triangles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.constructions.memorization.contracting_plane.MAX_TRIANGLES", 5)
    with pytest.raises(
        Undecided, match=r"that generates 'aaabbabb' nor a proof that no such net exists; take another word"
    ):
        contracting_plane(parse_word("aaabbabb"))
    assert contracting_dimension(parse_word("aaabbabb")) == FeedbackBounds(2, 3)


@given(st.integers(0, 2**32 - 1))
def test_no_net_inside_the_triangle_says_a_word_that_is_refuted(seed: int) -> None:
    word, random = parse_word("aaabbabb"), np.random.default_rng(seed)
    trace, determinant = random.dirichlet([0.5] * 3) @ [[-2, 1], [2, 1], [0, -1]] * (1 - 1e-6)
    hidden, added = np.array([[trace, -determinant], [1.0, 0.0]]), np.array([1.0, 0.0])
    assert net_of(word, hidden, added, cycle_states(hidden, added, word)) is None


@given(st.sampled_from([text for text in BINARY if len(text) > 4]), st.data())
def test_signs_on_triangles_are_those_at_all_their_points(text: str, data: st.DataObject) -> None:
    """Against states in fractions, by their recurrence from one cycle to the next."""
    word = parse_word(text)
    triple = tuple(data.draw(st.permutations(range(word.period)))[:3])
    halvings = tuple(data.draw(st.lists(st.integers(0, 1), max_size=12)))
    corners = np.array([[-2, 1], [2, 1], [0, -1]]) * Fraction(1)
    for half in halvings:
        first, second, third = corners
        corners = np.stack([corners[half], third, (first + second) / 2])
    weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))) * Fraction(1)
    trace, determinant = weights @ corners / weights.sum()
    signs = Signs(word)
    assert signs.sign(triple, halvings) in (0, _turn_at(word, trace, determinant, triple))
    coefficients = signs.coefficients(triple, halvings)
    degree = sum(next(iter(coefficients)))
    for index, (trace, determinant) in enumerate(corners):
        if abs(trace) < 1 + determinant and determinant < 1:
            at_corner = coefficients[tuple(degree * (index == other) for other in range(3))]
            assert int(at_corner > 0) - int(at_corner < 0) == _turn_at(word, trace, determinant, triple)


def _turn_at(word: Word, trace: Fraction, determinant: Fraction, triple: tuple[int, ...]) -> int:
    def after(state: tuple[Fraction, Fraction], letter: int) -> tuple[Fraction, Fraction]:
        return trace * state[0] - determinant * state[1] + letter, state[0]

    def around(state: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        for letter in word.letters.tolist():
            state = after(state, letter)
        return state

    c = around((Fraction(0), Fraction(0)))
    columns = [np.array(around(unit)) - c for unit in ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))]
    (a11, a21), (a12, a22) = columns[0], columns[1]
    det = (1 - a11) * (1 - a22) - a12 * a21  # of 1 less the matrix of one cycle
    states = [(((1 - a22) * c[0] + a12 * c[1]) / det, (a21 * c[0] + (1 - a11) * c[1]) / det)]
    assert around(states[0]) == states[0]
    for letter in word.letters[:-1].tolist():
        states.append(after(states[-1], letter))
    (x, y), (p, q), (r, s) = (states[i] for i in triple)
    turn = (p - x) * (s - y) - (q - y) * (r - x)
    return int(turn > 0) - int(turn < 0)


@pytest.mark.parametrize("text", ["aabb", "aaabbabb", "aabaabab"])
def test_registers_and_found_nets_say_the_word_and_contract(text: str) -> None:
    word = parse_word(text)
    register = shift_register(word)
    assert register.generate(20 * word.period) == 20 * text
    assert not np.linalg.matrix_power(register.hidden, register.dimension).any()
    net = search_net(word, 3)
    assert net is not None
    assert net.generate(200 * word.period) == 200 * text
    assert abs(np.linalg.eigvals(net.hidden)).max() < 1


def test_a_register_is_as_short_as_answers_allow() -> None:
    """After `aa` comes a or b in aaab: two answers do not tell; three are one of four windows, which b follows once."""
    assert shift_register(parse_word("aaab")).dimension == 3
    assert shift_register(parse_word("ab")).dimension == 1


def test_what_is_no_word_of_two_symbols_is_refused() -> None:
    with pytest.raises(ValueError, match="word: expected at least two different symbols, got 'a'"):
        digits(parse_word("aa"))
    for function in (contracting_rate, contracting_plane):
        with pytest.raises(ValueError, match="word: expected at most 32 letters for an exact search, got 33; give"):
            function(parse_word("0" * 20 + "1" * 13))
    for function in (contracting_rate, contracting_plane, shift_register, lambda word: search_net(word, 2)):
        with pytest.raises(ValueError, match="word: expected two symbols, got 3; take a word such as 00101"):
            function(parse_word("abc"))
    with pytest.raises(ValueError, match="dimension: expected a whole number of at least 1, got 0"):
        search_net(parse_word("ab"), 0)


def test_nets_of_fractions_are_standard_rnns_too() -> None:
    generator = contraction(parse_word("00101"))
    expected = "".join(generator.generate(10))
    for activation in ("relu", "tanh"):
        model = as_elman(generator, activation, 10)
        answers = generate_by_definition(model, 10).tolist()
        assert "".join(generator.symbols[answer] for answer in answers) == expected
