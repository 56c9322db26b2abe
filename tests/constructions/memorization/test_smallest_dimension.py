"""The smallest dimension of a word: tables of all words, bounds, margins, budgets, and what is refused."""

from collections import Counter
from itertools import accumulate, combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from word_classes import word_classes

import lengthwise.constructions.memorization.memorize as module
from lengthwise.constructions.memorization.closed_form import arc_margin, repeats
from lengthwise.constructions.memorization.frequencies import blocks, bounds, dimension, orbit, sets_of_dimension
from lengthwise.constructions.memorization.memorize import _first, _Search, memorize
from lengthwise.constructions.memorization.rational import memorize_rationally
from lengthwise.constructions.memorization.separation import constraints, num_entries, pairs, read_out, widest_margin
from lengthwise.constructions.memorization.words import alternations, at_stride, num_runs, parse_word, units

pytestmark = pytest.mark.unchecked

BINARY = {
    2: {1: 1},
    3: {2: 1},
    4: {2: 2},
    5: {2: 3},
    6: {2: 3, 3: 2},
    7: {2: 7, 4: 2},
    8: {2: 7, 3: 4, 4: 5},
    9: {2: 10, 4: 18},
    10: {2: 9, 3: 20, 4: 21, 5: 1},
    11: {2: 21, 4: 70, 6: 2},
    12: {2: 11, 3: 14, 4: 105, 5: 30, 6: 10},
    13: {2: 31, 4: 228, 6: 56},
}
TABLE = [
    *((2, period, table) for period, table in BINARY.items() if period < 11),
    (3, 6, {2: 10, 3: 7}),
    pytest.param(3, 7, {2: 36, 4: 7}, marks=pytest.mark.slow),
    (4, 6, {2: 10, 3: 3}),
    *(pytest.param(2, period, BINARY[period], marks=pytest.mark.slow) for period in (11, 12, 13)),
]
"""The numbers of words of each dimension, by symbols and period; most words have long periods, which are slow."""
AS_MANY_AS_CHANGES = {11: (93, 93), 12: (80, 170), 13: (286, 315)}


@pytest.mark.sampled(2)  # each case memorizes all words of a period
@pytest.mark.parametrize(("num_symbols", "period", "table"), TABLE)
def test_table_of_all_words(num_symbols: int, period: int, table: dict[int, int]) -> None:
    memorized = [memorize(text) for text in word_classes(num_symbols, period)]
    assert Counter(memorization.upper for memorization in memorized) == table
    for memorization in memorized:
        assert memorization.lower == memorization.upper == memorization.generator.dimension
        assert memorization.margin > 0
        assert repeats(memorization.generator, memorization.word, 3 * period)
    if num_symbols == 2 and period in AS_MANY_AS_CHANGES:
        as_many = sum(memorization.upper == bounds(memorization.word).upper for memorization in memorized)
        assert (as_many, len(memorized)) == AS_MANY_AS_CHANGES[period]


def smallest_by_definition(text: str) -> int:
    """Every set of frequencies in turn, pruned by nothing."""
    word = parse_word(text)
    every = [S for size in range(1, word.period // 2 + 1) for S in combinations(range(1, word.period // 2 + 1), size)]
    return min(dimension(S, word.period) for S in every if read_out(word.letters, orbit(S, word.period)) is not None)


@given(st.text("abcd", min_size=2, max_size=10).filter(lambda text: len(set(text)) > 1))
def test_pruning_loses_nothing(text: str) -> None:
    memorization = memorize(text)
    assert memorization.upper == smallest_by_definition(text)
    known = bounds(memorization.word)
    assert known.lower <= memorization.upper <= known.upper <= max(1, memorization.word.period - 1)


@given(st.text("abc", min_size=3, max_size=14).filter(lambda text: len(set(text)) > 1))
def test_upper_bounds_can_be_read_out(text: str) -> None:
    word = parse_word(text)
    known = bounds(word)
    assert dimension(known.sufficient, word.period) == known.upper
    assert not known.exclude(known.sufficient)
    assert read_out(word.letters, orbit(known.sufficient, word.period)) is not None


@pytest.mark.parametrize("period", [7, 8, 9, 10])
def test_two_symbols_need_as_many_low_frequencies_as_they_change(period: int) -> None:
    for text in word_classes(2, period):
        word = parse_word(text)
        for m in range(1, (period + 1) // 2):
            feasible = read_out(word.letters, orbit(tuple(range(1, m + 1)), period)) is not None
            assert feasible == (2 * int(num_runs(word.letters)[0]) <= 2 * m)


@pytest.mark.parametrize(
    ("num_symbols", "period"), [(3, 7), (4, 7), *(pytest.param(size, 8, marks=pytest.mark.slow) for size in (3, 4))]
)
def test_pairs_alternate_no_more_than_twice_the_degree(num_symbols: int, period: int) -> None:
    """Necessary always; sufficient for all words of these sizes."""
    for text in word_classes(num_symbols, period):
        word = parse_word(text)
        for m in (1, 2):
            feasible = read_out(word.letters, orbit(tuple(range(1, m + 1)), period)) is not None
            assert feasible == (alternations(word.letters) <= 2 * m)


@pytest.mark.parametrize(("text", "degree"), [("ACBDBCBCACADACABADAB", 3), ("CAGACFCFAGFBEFDFDEGAEBCECDCB", 2)])
def test_pairs_that_alternate_little_are_not_enough_for_more_symbols(text: str, degree: int) -> None:
    word = parse_word(text)
    assert alternations(word.letters) <= 2 * degree
    assert read_out(word.letters, orbit(tuple(range(1, degree + 1)), word.period)) is None


@given(st.text("abcde", min_size=3, max_size=12).filter(lambda text: len(set(text)) > 1))
def test_alternations_and_runs_by_definition(text: str) -> None:
    word = parse_word(text)
    circle = word.text
    runs = [sum(a != b == symbol for a, b in zip(circle[-1] + circle, circle, strict=False)) for symbol in word.symbols]
    assert num_runs(word.letters).tolist() == runs
    maximum = 0
    for pair in combinations(word.symbols, 2):
        kept = [letter for letter in circle if letter in pair]
        maximum = max(maximum, sum(a != b for a, b in zip([kept[-1], *kept], kept, strict=False)))
    assert alternations(word.letters) == maximum
    for stride in units(word.period):
        assert sorted(at_stride(word.letters, stride)) == sorted(word.letters)


def test_most_binary_words_need_a_sixth_of_their_period() -> None:
    """d dimensions part p states in 2 sum_(k <= d) C(p - 1, k) ways, for each of C(p / 2, d / 2) sets: that is few."""
    for p, minimum in ((100, 20), (1_000, 178), (2_000, 352)):
        ways = accumulate(2 * comb(p - 1, k) for k in range(p))
        assert minimum == next(d for d, few in enumerate(ways) if d % 2 == 0 and few * comb(p // 2, d // 2) >= 2**p)


def test_sets_of_frequencies_by_definition() -> None:
    for period in range(2, 14):
        every = [S for n in range(1, period // 2 + 1) for S in combinations(range(1, period // 2 + 1), n)]
        whole = [S for S in every if len(np.unique(orbit(S, period).round(9), axis=0)) == period]
        listed = [S for d in range(1, period) for S in sets_of_dimension(period, d)]
        assert sorted(listed) == sorted(whole)
        assert sorted(S for d in range(1, period) for S in sets_of_dimension(period, d, primitive=False)) == sorted(
            every
        )


@pytest.mark.parametrize("zeros", range(1, 12))
def test_the_widest_margin_of_arcs_is_that_of_the_formula(zeros: int) -> None:
    memorization = memorize("0" * zeros + "1" * (12 - zeros))
    assert memorization.margin == pytest.approx(arc_margin(zeros, 12), rel=1e-9)
    assert memorization.min_margin == pytest.approx(memorization.margin, rel=1e-9)


def test_no_read_out_drawn_at_random_has_a_wider_margin() -> None:
    """Read-outs of the same frequencies: some near the best one, some farther away."""
    generator = np.random.default_rng(0)
    for text in ("0010111", "00010111", "0010110111"):
        word, frequencies = (memorization := memorize(text)).word, memorization.frequencies
        states, indices = orbit(frequencies, word.period), blocks(frequencies, word.period)
        best = widest_margin(word.letters, states, indices)
        assert best is not None
        assert best.cost - best.lower_bound <= 1e-5 * best.cost
        ideal = np.sqrt(best.norms / best.cost)
        signs = 1 - 2 * word.letters
        separating = 0
        assert ideal.min() > 0
        for spread in np.repeat([0.003, 0.03, 0.3], 500):
            scales = np.abs(ideal * (1 + spread * generator.standard_normal(len(indices))))
            scales /= np.linalg.norm(scales)
            weights = best.readout.weights[0] * (1 + spread * generator.standard_normal(states.shape[1]))
            scaled, read = states.copy(), weights.copy()
            for block, scale in zip(indices, scales, strict=True):
                scaled[:, block] *= scale
                read[block] /= scale
            heights = scaled @ read
            gap = heights[signs > 0].min() - heights[signs < 0].max()
            separating += gap > 0
            assert gap / 2 / np.linalg.norm(read) <= 1 / best.cost * (1 + 1e-6)
        assert separating > 100


@given(st.text("abcd", min_size=3, max_size=10).filter(lambda text: len(set(text)) > 1))
@settings(max_examples=12)
def test_the_margin_is_as_promised(text: str) -> None:
    """States have norm 1; of two symbols the margin is what was maximized, of more it is no less."""
    memorization = memorize(text)
    norms = np.linalg.norm(memorization.generator.states(memorization.word.period), axis=1)
    np.testing.assert_allclose(norms, 1)
    assert memorization.margin >= memorization.min_margin * (1 - 1e-9)
    if len(memorization.word.symbols) == 2:
        assert memorization.margin == pytest.approx(memorization.min_margin, rel=1e-6)
    robust = memorize(text, robust=True)
    assert robust.upper == memorization.upper == robust.generator.dimension
    assert robust.min_margin >= memorization.min_margin * (1 - 1e-6)


def test_more_dimensions_widen_the_margin() -> None:
    tight = memorize("0010110111", robust=True)
    wide = memorize("0010110111", robust=True, max_dimension=9)
    assert tight.upper == wide.upper == tight.generator.dimension < wide.generator.dimension
    assert wide.margin > tight.margin
    assert repeats(wide.generator, wide.word, 100)


def test_the_logits_of_a_read_out_are_ahead_by_one() -> None:
    word = parse_word("abacabad")
    states = orbit((1, 4), 8)
    readout = read_out(word.letters, states)
    assert readout is not None
    logits = states @ readout.weights.T + readout.bias
    positions, competitors = pairs(word.letters)
    assert (logits[positions, word.letters[positions]] - logits[positions, competitors]).min() == pytest.approx(1)


@pytest.mark.parametrize("text", ["a", "aaaa"])
def test_one_symbol_needs_no_dimension(text: str) -> None:
    memorization = memorize(text)
    assert (memorization.lower, memorization.upper, memorization.generator.dimension) == (0, 0, 0)
    assert memorization.generator.generate(5) == "aaaaa"
    assert memorization.margin == np.inf


def test_powers_are_the_words_that_they_are_powers_of() -> None:
    memorization = memorize("aabaabaab")
    assert (memorization.word.text, memorization.word.power, memorization.upper) == ("aab", 3, 2)


def test_a_search_beyond_its_budget_gives_bounds() -> None:
    text = "00101101110100011110"
    memorization, given_up = memorize(text), memorize(text, budget=3)
    assert given_up.programs == 3 < memorization.programs
    assert given_up.lower <= memorization.lower == memorization.upper <= given_up.upper
    assert given_up.lower < given_up.upper == given_up.generator.dimension
    assert repeats(given_up.generator, given_up.word, 100)
    with pytest.raises(ValueError, match=r"the smallest dimension found for .* within the budget, got"):
        memorize(text, budget=3, max_dimension=given_up.lower)


def test_a_search_ends_where_bounds_exclude_all_sets_that_it_enumerates() -> None:
    """For a long word of odd period, bounds exclude millions of sets before one needs a linear program."""
    word = parse_word("".join(map(str, np.random.default_rng(0).integers(0, 2, 997))))
    search = _Search(word, known := bounds(word), budget=20)
    assert _first(word, search) == known.sufficient
    assert not search.is_complete
    assert search.programs < 20
    assert known.lower <= search.reached < known.upper


def test_a_search_for_wider_margins_ends_with_the_budget() -> None:
    tight = memorize("0010110111", budget=5)
    given_up = memorize("0010110111", robust=True, max_dimension=9, budget=5)
    assert tight.is_widest
    assert not given_up.is_widest
    assert given_up.margin >= tight.margin
    assert repeats(given_up.generator, given_up.word, 100)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "word: expected at least one symbol, got an empty word"),
        (5, "word: expected a text, got 5"),
        ("".join(map(chr, range(200, 265))), "word: expected at most 64 different symbols, got 65"),
        ("ab" * 500 + "a", "word: expected a period of at most 1,000, got 1,001"),
        ("a\tb", r"word: expected symbols that can be printed, got '\\t'"),
    ],
)
def test_what_is_no_word_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        memorize(text)


RANDOM_LETTERS = np.random.default_rng(0).integers(0, 64, 1_000)
TOO_LARGE = {
    "many changes": "".join("01"[letter % 2] for letter in RANDOM_LETTERS[:997]),
    "many symbols": "".join(chr(0x4E00 + letter) for letter in RANDOM_LETTERS),
}


@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE)
def test_words_whose_programs_are_too_large_are_refused(text: str) -> None:
    sentence = r"word: expected a word whose linear program has at most 200 dimensions and 5,000,000 entries, got "
    with pytest.raises(ValueError, match=sentence):
        memorize(text)


def test_a_long_word_of_few_changes_is_memorized() -> None:
    memorization = memorize("0" * 700 + "1" * 300)
    assert memorization.lower == memorization.upper == 2
    assert repeats(memorization.generator, memorization.word, 2_000)


@pytest.mark.parametrize("make", [memorize, memorize_rationally])
def test_a_limit_beyond_all_dimensions_is_refused(make) -> None:
    with pytest.raises(ValueError, match="at most 999, which is enough for every word, got 999999999999; lower"):
        make("cba", max_dimension=999_999_999_999)


def test_wider_margins_are_searched_in_all_dimensions_that_there_are() -> None:
    assert memorize("cba", robust=True, max_dimension=999).is_widest


def test_the_size_of_a_program_is_that_of_its_constraints() -> None:
    letters = np.array([0, 1, 2, 0, 1, 1])
    assert constraints(letters, orbit((1, 3), 6)).size == num_entries(3, 6, 3)


def test_the_entries_of_programs_count_against_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "00101101110100011110"
    settled = memorize(text)
    monkeypatch.setattr(module, "ENTRIES_PER_PROGRAM", 1)
    given_up = memorize(text)
    assert 0 < given_up.programs < settled.programs
    assert given_up.lower < given_up.upper


def test_an_impossible_dimension_is_refused() -> None:
    sentence = "max_dimension: expected at least 3, which 'abacabad' needs, got 2; allow more"
    with pytest.raises(ValueError, match=sentence):
        memorize("abacabad", max_dimension=2)


@pytest.mark.slow
def test_binary_words_of_period_16_are_all_answered() -> None:
    """A sample of 300, none of which is given up."""
    generator = np.random.default_rng(0)
    for number in generator.integers(1, 2**16 - 1, 300):
        memorization = memorize(f"{number:016b}")
        assert memorization.lower == memorization.upper
        assert repeats(memorization.generator, memorization.word, 48)
