"""Regular expressions of automata, against Python's `re` and automata-lib."""

import re

import automata.fa.dfa as automata_lib
import numpy as np
import pytest
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA
from automaton_strategies import all_strings, checked_strategies, dfas, oracle
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton
from lengthwise.automata.library import bounded_dyck
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.regex_syntax import EMPTY, Node, SymbolSet
from lengthwise.automata.state_elimination import _depth, choice, concatenation, pattern_text, regex_from_dfa, star

pytestmark = [checked_strategies, pytest.mark.unchecked]


@given(dfas())
def test_python_matches_what_is_accepted(dfa: DFA) -> None:
    pattern = regex_from_dfa(dfa)
    for length in range(5):
        strings = all_strings(len(dfa.symbols), length)
        matched = [bool(re.fullmatch(pattern, "".join(dfa.symbols[v] for v in string))) for string in strings]
        assert matched == dfa.accepts(strings).tolist(), pattern


EXPRESSIONS = st.recursive(
    st.sampled_from([(SymbolSet(frozenset(symbol)), symbol) for symbol in "ab"] + [(EMPTY, "()")]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(
            lambda pairs: (concatenation(node for node, _ in pairs), "".join(f"({text})" for _, text in pairs))
        ),
        st.lists(inner, min_size=2, max_size=3).map(
            lambda pairs: (choice(node for node, _ in pairs), "|".join(f"({text})" for _, text in pairs))
        ),
        inner.map(lambda pair: (star(pair[0]), f"({pair[1]})*")),
        inner.map(lambda pair: (concatenation([pair[0], star(pair[0])]), f"({pair[1]})+")),
    ),
    max_leaves=8,
)
"""Expressions made by the functions that simplify, and their texts without simplification."""


@given(EXPRESSIONS)
def test_simplified_expressions_match_the_same(pair: tuple[Node, str]) -> None:
    node, plain = pair
    assert dfa_from_regex(pattern_text(node), "ab").equivalent(dfa_from_regex(plain, "ab")), pattern_text(node)


@given(dfas(symbols=("a", "b")))
def test_automata_lib_reads_the_same_language(dfa: DFA) -> None:
    pattern = regex_from_dfa(dfa)
    if pattern in ("", "[^ab]"):
        return  # it reads no expression that is empty, and no class that is
    theirs = automata_lib.DFA.from_nfa(NFA.from_regex(pattern, input_symbols={"a", "b"}))
    assert theirs == oracle(dfa), pattern


@given(dfas(symbols=("a", "b")))
def test_expressions_are_no_longer_than_those_of_automata_lib(dfa: DFA) -> None:
    """And its own expressions are read here as the language that they are of."""
    theirs = GNFA.from_dfa(oracle(dfa.minimize())).to_regex()
    if not theirs:
        return  # of the empty language it gives none, and nothing of the empty string
    assert dfa_from_regex(theirs, "ab").equivalent(dfa)
    assert len(regex_from_dfa(dfa)) <= 1.5 * len(theirs) + 8


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("(a|b)*abb", "(b*a)+bb"),
        ("(0|1(01*0)*1)*", "(1(01*0)*1|0)*"),
        ("(aa)*", "(aa)*"),
        ("(abc)+", "(abc)+"),
        ("a{2,4}", "aa(aa?)?"),
        ("(a|b|c)*", "[abc]*"),
        ("a(b|c)*d|a", "a([bc]*d)?"),
        ("", ""),
    ],
)
def test_small_languages_have_small_expressions(pattern: str, expected: str) -> None:
    named = "".join(sorted(set(pattern) & set("abcd01"))) or "a"
    assert regex_from_dfa(dfa_from_regex(pattern, named)) == expected


A, B, C = (SymbolSet(frozenset(symbol)) for symbol in "abc")
AB = concatenation([A, B])


def plus(node: Node) -> Node:
    return concatenation([node, star(node)])


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (concatenation([star(A), star(A)]), "a*"),
        (concatenation([star(A), plus(A)]), "a+"),
        (concatenation([plus(A), star(A)]), "a+"),
        (concatenation([plus(A), plus(A)]), "a+a+"),
        (concatenation([star(A), star(B)]), "a*b*"),
        (concatenation([choice([EMPTY, A]), star(A)]), "a*"),
        (concatenation([star(A), choice([EMPTY, A])]), "a*"),
        (concatenation([star(A), B, choice([EMPTY, A])]), "a*ba?"),
        (concatenation([A, star(A)]), "a+"),
        (concatenation([star(A), A]), "a+"),
        (concatenation([plus(A), A]), "a+a"),
        (concatenation([A, B, star(AB)]), "(ab)+"),
        (concatenation([B, B, star(AB)]), "bb(ab)*"),
        (concatenation([C, A, B, star(AB), B]), "c(ab)+b"),
        (concatenation([star(AB), A, B]), "(ab)+"),
        (concatenation([star(AB), A]), "(ab)*a"),
        (concatenation([star(AB), A, A, B]), "(ab)*aab"),
        (concatenation([EMPTY, A, EMPTY]), "a"),
        (concatenation([]), ""),
        (choice([A, B, A]), "[ab]"),
        (choice([A, star(A)]), "a*"),
        (choice([plus(AB), AB]), "(ab)+"),
        (choice([AB, concatenation([A, C])]), "a[bc]"),
        (choice([concatenation([B, A]), concatenation([C, A])]), "[bc]a"),
        (choice([AB, A]), "ab?"),
        (choice([AB, B]), "a?b"),
        (choice([AB, C]), "ab|c"),
        (choice([EMPTY, A]), "a?"),
        (choice([EMPTY, plus(A)]), "a*"),
        (choice([EMPTY, star(A)]), "a*"),
        (choice([EMPTY, AB, C]), "(ab|c)?"),
        (choice([EMPTY, star(A), B]), "a*|b"),
        (choice([EMPTY, concatenation([star(A), star(B)])]), "a*b*"),
        (choice([EMPTY, concatenation([star(A), B])]), "(a*b)?"),
        (choice([EMPTY]), ""),
        (star(EMPTY), ""),
        (star(star(A)), "a*"),
        (star(plus(A)), "a*"),
        (star(choice([EMPTY, A])), "a*"),
        (star(choice([star(AB), C])), "(ab|c)*"),
        (star(concatenation([star(A), star(B)])), "[ab]*"),
        (star(concatenation([star(A), B])), "(a*b)*"),
    ],
)
def test_identities_of_expressions_are_used(node: Node, expected: str) -> None:
    """As r r* = r+, r | r* = r*, r s | r t = r (s | t) and (r*)* = r*, where both sides are the same language."""
    assert pattern_text(node) == expected


def test_special_characters_are_escaped() -> None:
    dfa = dfa_from_regex(r"[\*\-\^]+\\")
    assert dfa_from_regex(regex_from_dfa(dfa)).equivalent(dfa)
    assert regex_from_dfa(dfa) == r"[\*\-\^]+\\"


def test_what_is_too_large_is_refused() -> None:
    chance = np.random.default_rng(0)
    machine = Semiautomaton(chance.integers(40, size=(40, 3)), tuple("abc"))
    with pytest.raises(ValueError, match=r"^machine: expected an expression with at most 2,000 symbols"):
        regex_from_dfa(DFA(machine, 0, np.arange(40) % 3 == 0))
    ring = Semiautomaton((np.arange(201)[:, None] + 1) % 201, ("a",))
    with pytest.raises(ValueError, match=r"^machine: expected a language that needs at most 200 states, got 201"):
        regex_from_dfa(DFA(ring, 0, np.arange(201) == 0))
    with pytest.raises(
        ValueError, match=r"^machine: expected an expression with at most 50 nested groups, got deeper nesting"
    ):
        regex_from_dfa(bounded_dyck(60))


@pytest.mark.parametrize("pattern", [r"\(\)", "[(]{3}", "a", "a(b(c|d))*(a)"])
def test_groups_are_counted_and_brackets_that_are_symbols_are_not(pattern: str) -> None:
    expected = {"a(b(c|d))*(a)": 2}.get(pattern, 0)
    assert _depth(pattern) == expected
