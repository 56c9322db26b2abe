"""Expressions over words mean what expressions over characters mean, under a bijection of the symbols."""

import numpy as np
import pytest
from automaton_strategies import checked_strategies, dfas
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton
from lengthwise.automata.regex import dfa_from_regex, named_symbols
from lengthwise.automata.state_elimination import regex_from_dfa

pytestmark = checked_strategies

WORDS = {"a": "DATA", "b": "log-in", "c": "v1.0|{^}"}
ESCAPED = {"a": "DATA", "b": "log-in", "c": r"v1\.0\|\{\^\}"}
blanks = st.sampled_from([" ", "  ", "\t"])


@st.composite
def classes(draw: st.DrawFn) -> tuple[str, str]:
    letters = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
    start = draw(st.sampled_from(["[", "[^"]))
    return f"{start}{''.join(letters)}]", f"{start} {draw(blanks).join(ESCAPED[letter] for letter in letters)}]"


@st.composite
def joined(draw: st.DrawFn, parts: list[tuple[str, str]]) -> tuple[str, str]:
    if draw(st.booleans()):
        return "".join(part[0] for part in parts), draw(blanks).join(part[1] for part in parts)
    return f"({'|'.join(part[0] for part in parts)})", f"({'| '.join(part[1] for part in parts)} )"


@st.composite
def repeated(draw: st.DrawFn, inner: tuple[str, str]) -> tuple[str, str]:
    sign, blank = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}"])), draw(st.sampled_from(["", " "]))
    return f"({inner[0]}){sign}", f"( {inner[1]}){blank}{sign}"


letters = st.sampled_from("abc").map(lambda letter: (letter, ESCAPED[letter]))
signed = st.tuples(letters, st.sampled_from("*+?")).map(lambda pair: (pair[0][0] + pair[1], pair[0][1] + pair[1]))
pairs = st.recursive(
    st.one_of(letters, signed, classes(), st.just((".", ".")), st.just(("()", "( )"))),
    lambda inner: st.one_of(st.lists(inner, min_size=2, max_size=3).flatmap(joined), inner.flatmap(repeated)),
    max_leaves=6,
)
"""The same expression over characters and over words."""


def in_words(dfa: DFA) -> DFA:
    words = tuple(WORDS[symbol] for symbol in dfa.symbols)
    return DFA(Semiautomaton(dfa.semiautomaton.table, words), dfa.start, dfa.accepting)


@given(pairs)
def test_words_are_characters_under_another_name(pair: tuple[str, str]) -> None:
    characters = dfa_from_regex(pair[0], "abc")
    words = dfa_from_regex(pair[1], list(WORDS.values()), "words")
    assert words.symbols == tuple(WORDS.values())
    assert words.to_json() == in_words(characters).to_json()
    assert sorted(named_symbols(pair[1], "words")) == sorted(WORDS[letter] for letter in named_symbols(pair[0]))


@given(dfas(symbols=("a", "b", "c")))
def test_expressions_that_are_computed_are_read_again(dfa: DFA) -> None:
    language = in_words(dfa)
    assert dfa_from_regex(regex_from_dfa(language), language.symbols, "words").equivalent(language)


def test_expressions_are_plain() -> None:
    language = dfa_from_regex("CONNECT (DATA|log-in ACK)* CLOSE?|.{2}", tokens="words")
    assert language.symbols == ("ACK", "CLOSE", "CONNECT", "DATA", "log-in")
    computed = regex_from_dfa(dfa_from_regex("CONNECT (DATA|log-in  ACK)* CLOSE?", tokens="words"))
    assert computed == "CONNECT (log-in ACK | DATA)* CLOSE?"
    # Words of one character each are characters, also in the expression.
    assert regex_from_dfa(dfa_from_regex("a (b c)*", tokens="words")) == "a(bc)*"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("GET )", r"expected a symbol or the end at position 5 of 'GET \)', got '\)'; open a group before it"),
        ("GET (PUT", "expected a closing \\) at position 9 of .*, got the end; close the group"),
        ("GET{1 0}", "expected } at position 7 of .*, got '0'; give bounds as"),
        ("[ ]", "expected a symbol of the class at position 3 of .*, got ']'; write"),
        (
            r"\d+",
            r"a special character after \\ at position 2 of .*, got 'd'; write the words themselves, bet",
        ),
        (r"GET\ PUT", r"after \\ at position 5 of .*, got ' '; leave the blank out, because no word contains one"),
        ("GET\\", "expected a symbol or a group at position 5 of .*, got the end; complete the pattern"),
        ("^GET", r"got '\^'; leave out \^, because the whole string is matched, or write \\\^ for the symbol"),
        (" * GET", r"got '\*'; write \\\* for the symbol"),
    ],
)
def test_errors_give_positions(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^pattern: .*{message}"):
        dfa_from_regex(pattern, tokens="words")


@pytest.mark.parametrize(
    ("alphabet", "message"),
    [
        (
            ["GET", "GET"],
            "expected distinct words without blanks, got 'GET' twice; give each symbol one word of its own",
        ),
        (["GET", "P T"], "expected distinct words without blanks, got 'P T'; give each symbol one word of its own"),
        (["PUT", "HEAD"], "expected the symbols of 'GET', got 'PUT HEAD', without 'GET'; add the missing symbols"),
    ],
)
def test_alphabets_are_words(alphabet: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^alphabet: {message}$"):
        dfa_from_regex("GET", alphabet, "words")
    with pytest.raises(ValueError, match=r"^alphabet: expected distinct words .*, got 'P T'"):
        regex_from_dfa(DFA(Semiautomaton(np.array([[0, 0]]), ("P T", "b")), 0, np.array([True])))
