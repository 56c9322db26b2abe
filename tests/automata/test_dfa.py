import json
import re

import numpy as np
import pytest
from automata.fa import dfa as automata_lib
from automata.fa import nfa
from automaton_strategies import all_strings, checked_strategies, dfas, oracle
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton
from lengthwise.automata.dfa import dfa_from_automata_lib

pytestmark = checked_strategies

BINARY = ("a", "b")
FLIP = Semiautomaton(np.array([[0, 1], [1, 0]]), BINARY)
ODD = DFA(FLIP, 0, np.array([False, True]))


@given(dfas(), st.integers(0, 4))
def test_accepts_as_the_oracle_does(dfa: DFA, length: int) -> None:
    strings = all_strings(len(dfa.symbols), length)
    accepted = dfa.accepts(strings)
    grade = oracle(dfa)
    for string, verdict in zip(strings.tolist(), accepted.tolist(), strict=True):
        assert verdict == grade.accepts_input("".join(dfa.symbols[symbol] for symbol in string))
    np.testing.assert_array_equal(dfa.complement().accepts(strings), ~accepted)


@given(dfas())
def test_minimize_finds_the_oracles_smallest_automaton(dfa: DFA) -> None:
    smallest = dfa.minimize()
    # The oracle may drop the sink of a minimal automaton; completing it makes the state counts comparable.
    expected = oracle(dfa).minify().to_complete()
    assert smallest.num_states == len(expected.states)
    assert oracle(smallest) == oracle(dfa)


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_boolean_operations_agree_with_the_oracle(first: DFA, second: DFA) -> None:
    left, right = oracle(first), oracle(second)
    assert oracle(first & second) == left & right
    assert oracle(first | second) == left | right
    assert oracle(first - second) == left - right


def inside(dfa: DFA, length: int = 7) -> set[str]:
    """The accepted strings of up to this length, with symbols by name."""
    strings = [string for size in range(length + 1) for string in all_strings(len(dfa.symbols), size)]
    return {"".join(dfa.symbols[v] for v in string) for string in strings if dfa.accepts(string[None])[0]}


@given(dfas(symbols=BINARY), dfas(symbols=BINARY[::-1]))
def test_operators_are_the_operations_on_sets_of_strings(first: DFA, second: DFA) -> None:
    left, right = inside(first), inside(second)
    every = inside(first) | inside(~first)
    for combined, expected in (
        (first & second, left & right),
        (first | second, left | right),
        (first - second, left - right),
        (~first, every - left),
    ):
        assert inside(combined) == expected
        assert combined.symbols == first.symbols
    assert (first & second).num_states == (first & second).minimize().num_states


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_operators_obey_the_laws_of_sets(first: DFA, second: DFA) -> None:
    assert (~(first & second)).equivalent(~first | ~second)
    assert (first - second).equivalent(first & ~second)
    assert (first <= second) == (~second <= ~first) == first.equivalent(first & second)
    assert (first >= second) == (second <= first)


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_the_excess_string_is_the_first_of_the_shortest(first: DFA, second: DFA) -> None:
    """Two automata of up to 7 states differ on a string of up to 13 symbols, mostly on one of up to 7."""
    excess, outside = first.excess_string(second), inside(first) - inside(second)
    assert (first <= second) == (excess is None)
    if outside:
        assert excess == tuple(min(outside, key=lambda text: (len(text), text)))
    elif excess is not None:
        assert len(excess) > 7


def test_operators_need_automata_over_the_same_symbols() -> None:
    ternary = DFA(Semiautomaton(np.array([[0, 0, 0]]), ("a", "b", "c")), 0, np.array([True]))
    sentence = (
        "expected the same symbols in both machines, got 'c' only in the second machine; .* machine \\(with_symbols\\)"
    )
    for operation in (DFA.__and__, DFA.__or__, DFA.__sub__, DFA.__le__):
        with pytest.raises(ValueError, match=sentence):
            operation(ODD, ternary)
        assert operation(ODD, "b*") is NotImplemented
    assert inside(ternary & ODD.with_symbols("abc"), 4) == inside(ODD, 4)


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_counterexamples_are_shortest(first: DFA, second: DFA) -> None:
    difference = oracle(first) ^ oracle(second)
    actual = first.difference_string(second)
    assert first.equivalent(second) == difference.isempty() == (actual is None)
    if actual is not None:
        assert difference.accepts_input("".join(actual))
        assert len(actual) == difference.minimum_word_length()


@given(dfas(), st.integers(0, 9))
def test_count_agrees_with_the_oracle(dfa: DFA, length: int) -> None:
    assert dfa.count(length) == oracle(dfa).count_words_of_length(length)


def test_count_is_exact_where_floats_are_not() -> None:
    assert ODD.count(3_000) == 2**2_999


@given(dfas())
def test_json_keeps_the_whole_machine(dfa: DFA) -> None:
    again = DFA.from_json(json.loads(json.dumps(dfa.to_json())))
    assert (again.symbols, again.start) == (dfa.symbols, dfa.start)
    np.testing.assert_array_equal(again.semiautomaton.table, dfa.semiautomaton.table)
    np.testing.assert_array_equal(again.accepting, dfa.accepting)


@given(dfas())
def test_automata_of_automata_lib_keep_their_language(dfa: DFA) -> None:
    for theirs in (oracle(dfa), oracle(dfa).minify(), oracle(dfa).to_partial()):
        assert dfa_from_automata_lib(theirs).equivalent(dfa)


def test_states_and_symbols_of_automata_lib_may_have_any_name() -> None:
    theirs = automata_lib.DFA(
        states={0, "on", (1, 2)},
        input_symbols={"é", "b"},
        transitions={0: {"b": "on"}, "on": {"é": (1, 2), "b": 0}, (1, 2): {}},
        initial_state=0,
        final_states={(1, 2)},
        allow_partial=True,
    )
    ours = dfa_from_automata_lib(theirs)
    assert ours.symbols == ("b", "é")
    for length in range(6):
        for string, accepted in zip(all_strings(2, length), ours.accepts(all_strings(2, length)), strict=True):
            assert accepted == theirs.accepts_input("".join("bé"[symbol] for symbol in string))


def test_what_is_no_dfa_of_automata_lib_is_refused() -> None:
    for other, name in ((nfa.NFA.from_regex("a*"), "NFA"), (FLIP, "Semiautomaton"), (None, "NoneType")):
        with pytest.raises(
            ValueError, match=f"machine: expected a DFA of automata-lib, got {name}; convert an NFA by DFA.from_nfa"
        ):
            dfa_from_automata_lib(other)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"transitions": [[0, 1], [1]]},
            "transitions: expected a next state for each of the 2 symbols, got 1 for state 1",
        ),
        (
            {"transitions": [[0, 1], [1, 2]]},
            "transitions: expected next states in 0..1, got 2 for state 1 and symbol 1",
        ),
        (
            {"transitions": [[0, 1], ["b", 0]]},
            "transitions: expected next states in 0..1, got 'b' for state 1 and symbol 0",
        ),
        ({"transitions": []}, "transitions: expected at least one state and one symbol, got 0 states and 2"),
        ({"accepting": [0, 5]}, "accepting: expected a state in 0..1, got 5; number the states from 0"),
        ({"start": 2}, "start: expected a state in 0..1, got 2; number the states from 0"),
        ({"alphabet": ["a", "a"]}, "symbols: expected 2 distinct non-empty strings, got ('a', 'a')"),
        ({"finals": [1]}, "content: expected the entries ['alphabet', 'transitions', 'accepting', 'start'], got ["),
    ],
)
def test_bad_json_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        DFA.from_json(ODD.to_json() | changes)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"accepting: expected one entry for each of the 2 states, got shape \(3,\)"):
        DFA(FLIP, 0, np.array([True, False, True]))
    with pytest.raises(ValueError, match=r"start: expected a state in 0\.\.1, got 7"):
        DFA(FLIP, 7, np.array([True, False]))
    with pytest.raises(ValueError, match=r"length: expected a whole number of symbols, at least 0, got -1"):
        ODD.count(-1)
    with pytest.raises(ValueError, match=r"other: expected a machine over the symbols"):
        ODD.equivalent(DFA(Semiautomaton(FLIP.table, ("0", "1")), 0, np.array([False, True])))


@pytest.mark.unchecked
def test_accepting_states_are_marked_by_booleans() -> None:
    with pytest.raises(ValueError, match=r"^accepting: expected Booleans, got an array of int64; mark every state"):
        DFA(FLIP, 0, np.array([0, 1]))
