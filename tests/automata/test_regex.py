"""Regular expressions, against Python's `re` and automata-lib."""

import itertools
import re

import numpy as np
import pytest
from automata.fa import dfa, nfa
from automaton_strategies import all_strings, oracle
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import regex_syntax
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.regex_syntax import SPECIAL

atoms = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^b]", "()", "[^abc]"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


def assert_like_python(pattern: str, alphabet: tuple[str, ...]) -> None:
    language = dfa_from_regex(pattern, alphabet)
    compiled = re.compile(pattern)
    for length in range(1, 5):
        strings = all_strings(len(alphabet), length)
        texts = ["".join(alphabet[v] for v in string) for string in strings.tolist()]
        assert language.accepts(strings).tolist() == [compiled.fullmatch(text) is not None for text in texts]
    assert bool(language.accepting[0]) == (compiled.fullmatch("") is not None)


@given(patterns)
def test_matches_what_python_matches(pattern: str) -> None:
    assert_like_python(pattern, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("pattern", "num_states"),
    [
        ("a{0,300}", 302),
        ("(a?){300}", 302),
        ("(a*){1000}", 1),
        ("(" * 50 + "a" + ")+" * 50, 2),
        ("((((a?){5}){5}){5}){3}", 377),
    ],
)
def test_long_patterns_take_no_time(pattern: str, num_states: int) -> None:
    assert dfa_from_regex(pattern, sorted({c for c in pattern if c in "abc"})).num_states == num_states


@pytest.mark.parametrize("pattern", ["(a|b)*abb", "(a|b)*a(a|b){3}", "((ab)*c)*", "a?b+c{2,4}", "(a*b*)*"])
def test_is_the_smallest_automaton_for_all_lengths(pattern: str) -> None:
    ours = dfa_from_regex(pattern, "abc")
    theirs = dfa.DFA.from_nfa(nfa.NFA.from_regex(pattern, input_symbols=set("abc")), minify=True)
    assert oracle(ours) == theirs
    complete = dfa.DFA.to_complete(theirs) if theirs.allow_partial else theirs
    assert ours.num_states == len(complete.states)


def test_special_characters_are_symbols_when_escaped() -> None:
    for character in SPECIAL + "-":
        for pattern in (rf"x\{character}", rf"x[\{character}]", rf"x[^\{character}]"):
            assert_like_python(pattern, ("x", character))
    assert_like_python(r"\[\^*[a\^]", ("[", "a", "^"))
    assert dfa_from_regex(r"\[\^").accepts(np.array([[0, 1], [1, 0]])).tolist() == [True, False]
    assert dfa_from_regex(r"(\(\))*").symbols == ("(", ")")


@pytest.mark.parametrize(
    "pattern", ["[a-c]", "[^a-c]x", "[-a]", "[a-]", "[a-c-]", "[ac-d]+", r"[a\-c]", "a-c", "[a-a]", "[a-cc-d]*"]
)
def test_ranges_are_those_of_python(pattern: str) -> None:
    assert_like_python(pattern, ("-", "a", "b", "c", "d", "x"))


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (
            "^ab",
            r"at position 1 of '\^ab', got '\^'; leave out \^, .* matched, or write \\\^",
        ),
        ("ab$", r"at position 3 of 'ab\$', got '\$'; leave out \$, because the whole string is matched, or"),
        ("[c-a]", r"expected a range that rises, of at most 2,000 symbols at position 2 of '\[c-a\]', got 'c'"),
        ("[ -\uffff]", "expected a range that rises, of at most 2,000 symbols"),
    ],
)
def test_anchors_and_ranges_that_fall_are_named(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dfa_from_regex(pattern)


def test_the_alphabet_has_the_order_given() -> None:
    assert dfa_from_regex("ab", "cba").symbols == ("c", "b", "a")
    assert dfa_from_regex(r"b\^a").symbols == ("^", "a", "b")


@given(st.text(alphabet="abc-()[]{}|*+?.^$\\,12", max_size=14))
def test_any_text_is_a_pattern_or_refused_in_one_sentence(pattern: str) -> None:
    sentence = ""
    try:
        dfa_from_regex(pattern)
    except ValueError as error:
        sentence = str(error)
    assert re.fullmatch(r"((pattern|alphabet): [^\n]+)?", sentence)


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(a|b", "expected a closing ) at position 5 of '(a|b', got the end"),
        ("a)", "expected a symbol or the end at position 2 of 'a)', got ')'; open a group before it"),
        ("*a", r"expected a symbol or a group at position 1 of '*a', got '*'; write \* for the symbol"),
        ("a*?", "expected one repetition at a time at position 3 of 'a*?', got '?'; put the part with"),
        ("a{3,2}", "expected an upper bound of at least 3 at position 5 of 'a{3,2}', got '2'; swap the bounds"),
        ("a{x}", "expected a number at position 3 of 'a{x}', got 'x'; give bounds as {2}, {2,} or {2,3}"),
        ("a{2", "expected } at position 4 of 'a{2', got the end"),
        ("[ab", "expected a symbol of the class or its closing ] at position 4 of '[ab', got the end"),
        ("[]", "expected a symbol of the class at position 2 of '[]', got ']'"),
        ("a\\", "expected a symbol or a group at position 3"),
        (r"\d", r"expected a special character after \ at position 2 of '\\d', got 'd'; write [0-9] for the digits"),
        (r"a\w", r"got 'w'; write [A-Za-z0-9_] for letters, digits and _"),
        (r"[\s]", r"got 's'; write the blanks themselves, between [ and ]"),
        (r"\bab", r"got 'b'; leave out \b, because the whole string is matched"),
        (r"\x41", r"got 'x'; write the character itself"),
        (r"(a)\1", r"got '1'; write the group's pattern again, because patterns do not remember matches"),
        (r"a\@", "got '@'; write @ without the \\"),
        ("(" * 60 + "a" + ")" * 60, "nests groups more than 50 deep"),
        ("((a{99}){99}){99}", "has more than 2,000 symbols after its repetitions are expanded"),
        ("a{123456}", "has a repetition bound above 2,000"),
        ("(a|b)*a(a|b){15}", "needs more than 50,000 states before minimization; simplify the pattern"),
    ],
)
def test_errors_say_where(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        dfa_from_regex(pattern)


@pytest.mark.parametrize(
    ("pattern", "alphabet", "sentence"),
    [
        ("abc", "ab", "expected the symbols of 'abc', got 'ab', without 'c'; add"),
        ("a", "aa", "expected distinct single characters"),
        ("", None, "expected at least one symbol, got none, and pattern .. contains none; give an alphabet"),
        ("a", ["a", "bc"], "expected distinct single characters"),
    ],
)
def test_alphabets_that_clash_are_refused(pattern: str, alphabet, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dfa_from_regex(pattern, alphabet)


def test_repetitions_count() -> None:
    language = dfa_from_regex("(a|bb){2,3}")
    counts = [language.count(length) for length in range(8)]
    words = {"".join(w) for n in (2, 3) for w in itertools.product(("a", "bb"), repeat=n)}
    assert counts == [sum(len(word) == length for word in words) for length in range(8)]
    assert dfa_from_regex("a{40}").count(40) == 1


@pytest.mark.parametrize(
    "pattern",
    ["a((((){2000}){2000}){2000}){2000}", "a(((a{0}){2000}){2000}){2000}", "a((|){2000}){2000}", "a((|)+)*(){9,}"],
)
def test_repeats_of_nothing_take_no_time(pattern: str) -> None:
    """They would be written out 2,000 x 2,000 x ... times without a symbol that counts."""
    assert dfa_from_regex(pattern).equivalent(dfa_from_regex("a"))


def test_patterns_over_ascii_may_need_thousands_of_states() -> None:
    ascii_symbols = "".join(map(chr, range(32, 127)))
    language = dfa_from_regex(".*a.{11}", ascii_symbols)
    assert language.symbols == tuple(ascii_symbols)
    assert language.num_states == 4_096
    texts = ["x" * 7 + "a" + "?" * 11, "a" + "?" * 11, "a" * 13, "a" + "?" * 12, "a"]
    for text in texts:
        string = np.array([[ascii_symbols.index(symbol) for symbol in text]])
        assert language.accepts(string)[0] == bool(re.fullmatch(".*a.{11}", text))


def test_the_table_is_bounded() -> None:
    many = "a" + "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))
    with pytest.raises(
        ValueError, match=r"needs 4,096 states, each with transitions for 5,001 symbols: more than 10,000,000 tr"
    ):
        dfa_from_regex(".*a.{11}", many)


@given(patterns, st.permutations("abcde"))
def test_symbols_that_the_pattern_treats_alike_act_alike(pattern: str, symbols: list[str]) -> None:
    language = dfa_from_regex(pattern, symbols)
    assert language.minimize().to_json() == language.to_json()
    assert_like_python(pattern, tuple(symbols))


def test_patterns_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_syntax, "MAX_CHARACTERS", 5)
    assert dfa_from_regex("aaaaa").num_states == 7
    with pytest.raises(ValueError, match=r"^pattern: 'aaaaaa' has more than 5 characters; shorten it$"):
        dfa_from_regex("aaaaaa")
    monkeypatch.setattr(regex_syntax, "MAX_POSITIONS", 4)
    assert dfa_from_regex("aaaa").num_states == 6
    with pytest.raises(ValueError, match=r"^pattern: 'aaaaa' has more than 4 symbols; shorten it$"):
        dfa_from_regex("aaaaa")
