import json

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given

from lengthwise.automata import Semiautomaton, Transducer

pytestmark = checked_strategies

BINARY = ("a", "b")


@given(transducers(symbols=BINARY))
def test_minimized_transducers_answer_alike_and_are_canonical(transducer: Transducer) -> None:
    smallest = transducer.minimize()
    strings = all_strings(2, 6)
    np.testing.assert_array_equal(smallest.run(strings), transducer.run(strings))
    assert smallest.outputs[0] == transducer.outputs[transducer.start]
    assert smallest.equivalent(transducer)
    again = smallest.minimize()
    np.testing.assert_array_equal(again.semiautomaton.table, smallest.semiautomaton.table)
    np.testing.assert_array_equal(again.outputs, smallest.outputs)


@given(transducers(symbols=BINARY), transducers(symbols=BINARY))
def test_equivalence_is_equality_of_minimized_machines(first: Transducer, second: Transducer) -> None:
    left, right = first.minimize(), second.minimize()
    same = np.array_equal(left.semiautomaton.table, right.semiautomaton.table) and np.array_equal(
        left.outputs, right.outputs
    )
    assert first.equivalent(second) == same


@given(transducers(symbols=BINARY), transducers(symbols=BINARY))
def test_difference_string_is_the_first_of_the_shortest(first: Transducer, second: Transducer) -> None:
    actual = first.difference_string(second)
    if first.outputs[first.start] != second.outputs[second.start]:
        assert actual == ()
        return
    longest = 7 if actual is None else len(actual)
    for length in range(1, longest + 1):
        strings = all_strings(2, length)
        differ = first.run(strings)[:, -1] != second.run(strings)[:, -1]
        if differ.any():
            assert actual == tuple(BINARY[symbol] for symbol in strings[differ.argmax()].tolist())
            return
    assert actual is None


def test_large_machines_are_compared_by_the_pairs_that_strings_lead_to() -> None:
    """The product of two rings of 20,000 states has 400 million pairs, of which strings lead to one in 20,000."""
    size = 20_000
    table = np.stack([(np.arange(size) + 1) % size, np.zeros(size, dtype=np.int64)], axis=1)
    first, second = (
        Transducer(Semiautomaton(table, BINARY), 0, (np.arange(size) >= size - count).astype(np.int64))
        for count in (1, 2)
    )
    assert first.equivalent(first)
    assert first.difference_string(second) == ("a",) * (size - 2)


@given(transducers())
def test_survives_json(transducer: Transducer) -> None:
    again = Transducer.from_json(json.loads(json.dumps(transducer.to_json())))
    assert (again.symbols, again.start) == (transducer.symbols, transducer.start)
    np.testing.assert_array_equal(again.semiautomaton.table, transducer.semiautomaton.table)
    np.testing.assert_array_equal(again.outputs, transducer.outputs)


def test_bad_input_is_refused() -> None:
    flip = Semiautomaton(np.array([[0, 1], [1, 0]]), BINARY)
    with pytest.raises(ValueError, match=r"start: expected a state in 0\.\.1, got -1"):
        Transducer(flip, -1, np.array([0, 1]))
    with pytest.raises(ValueError, match=r"outputs: expected one entry for each of the 2 states, got shape \(1,\)"):
        Transducer(flip, 0, np.array([0]))


@pytest.mark.unchecked
def test_answers_are_numbers() -> None:
    with pytest.raises(ValueError, match=r"^outputs: expected ids of answers, got numbers of type float64; number"):
        Transducer(Semiautomaton(np.array([[0]]), ("a",)), 0, np.array([0.5]))
