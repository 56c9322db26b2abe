import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, dfas, oracle
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton

pytestmark = checked_strategies

BINARY = ("a", "b")
FLIP = Semiautomaton(np.array([[0, 1], [1, 0]]), BINARY)
ODD = DFA(FLIP, 0, np.array([False, True]))


@given(dfas(), st.integers(0, 4))
def test_accepts_as_the_oracle_does(dfa: DFA, length: int) -> None:
    strings = all_strings(len(dfa.symbols), length)
    accepted = dfa.accepts(strings)
    judge = oracle(dfa)
    for string, verdict in zip(strings.tolist(), accepted.tolist(), strict=True):
        assert verdict == judge.accepts_input("".join(dfa.symbols[symbol] for symbol in string))
    np.testing.assert_array_equal(dfa.complement().accepts(strings), ~accepted)


@given(dfas())
def test_minimise_finds_the_oracles_smallest_automaton(dfa: DFA) -> None:
    smallest = dfa.minimise()
    # The oracle may drop the sink of a minimal automaton; completing it makes the state counts comparable.
    expected = oracle(dfa).minify().to_complete()
    assert smallest.num_states == len(expected.states)
    assert oracle(smallest) == oracle(dfa)


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_boolean_operations_agree_with_the_oracle(first: DFA, second: DFA) -> None:
    left, right = oracle(first), oracle(second)
    assert oracle(first.product(second, np.logical_and)) == left & right
    assert oracle(first.product(second, np.logical_or)) == left | right
    assert oracle(first.product(second, np.logical_xor)) == left ^ right
    assert oracle(first.product(second, np.greater)) == left - right


@given(dfas(symbols=BINARY), dfas(symbols=BINARY))
def test_counterexamples_are_shortest(first: DFA, second: DFA) -> None:
    difference = oracle(first) ^ oracle(second)
    found = first.difference_string(second)
    assert first.equivalent(second) == difference.isempty() == (found is None)
    if found is not None:
        assert difference.accepts_input("".join(found))
        assert len(found) == difference.minimum_word_length()


@given(dfas(), st.integers(0, 9))
def test_count_agrees_with_the_oracle(dfa: DFA, length: int) -> None:
    assert dfa.count(length) == oracle(dfa).count_words_of_length(length)


def test_count_is_exact_where_floats_are_not() -> None:
    assert ODD.count(3_000) == 2**2_999


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"accepting: wanted one entry for each of the 2 states, got shape \(3,\)"):
        DFA(FLIP, 0, np.array([True, False, True]))
    with pytest.raises(ValueError, match=r"start: wanted a state in 0\.\.1, got 7"):
        DFA(FLIP, 7, np.array([True, False]))
    with pytest.raises(ValueError, match=r"length: wanted a number of symbols, 0 or more, got -1"):
        ODD.count(-1)
    with pytest.raises(ValueError, match=r"other: wanted a machine over the symbols"):
        ODD.equivalent(DFA(Semiautomaton(FLIP.table, ("0", "1")), 0, np.array([False, True])))
