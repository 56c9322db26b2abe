"""Tree machines: what they answer, and that comparisons with transducers hold for every length."""

import json

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.automata import Semiautomaton, Transducer, library
from lengthwise.automata.tree_machine import TreeMachine, tree_machine

pytestmark = checked_strategies

small = transducers(symbols=("a", "b"), max_states=3)
chunks = st.integers(2, 3)


@given(small, chunks, st.integers(1, 9))
@settings(max_examples=60)
def test_elements_of_the_monoid_answer_as_the_transducer(transducer: Transducer, chunk: int, length: int) -> None:
    machine = tree_machine(transducer, chunk)
    strings = all_strings(2, length)
    np.testing.assert_array_equal(machine.answers(strings), transducer.run(strings)[:, -1])
    assert machine.difference_string(transducer) is None


def first_difference(machine: TreeMachine, transducer: Transducer, up_to: int) -> tuple[str, ...] | None:
    """The definition: try every string."""
    for length in range(1, up_to + 1):
        strings = all_strings(len(machine.symbols), length)
        wanted = transducer.run(strings)[:, -1]
        wrong = np.flatnonzero((machine.answers(strings) != wanted) & (wanted != -100))
        if len(wrong):
            return tuple(machine.symbols[v] for v in strings[wrong[0]])
    return None


@given(small, chunks, st.data())
@settings(max_examples=100)
def test_a_wrong_entry_is_found_by_the_shortest_string(transducer: Transducer, chunk: int, data: st.DataObject) -> None:
    """Found exactly as by trying every string of up to 10 symbols; what is beyond these is at least really wrong."""
    right = tree_machine(transducer, chunk)
    table = right.table.copy()
    place = tuple(data.draw(st.integers(0, right.num_classes - 1)) for _ in range(chunk))
    table[place] = (table[place] + data.draw(st.integers(1, max(1, right.num_classes - 1)))) % right.num_classes
    machine = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    found, tried = machine.difference_string(transducer), first_difference(machine, transducer, 10)
    if tried is not None or found is None or len(found) <= 10:
        assert found == tried
    else:
        string = np.array([[machine.symbols.index(symbol) for symbol in found]])
        assert machine.answers(string)[0] != transducer.run(string)[0, -1]


def test_a_difference_at_length_37_is_found() -> None:
    """Two machines that count to 37 and to 38 differ on strings of 37 a's first."""
    counters = []
    for size in (37, 38):
        table = np.stack([np.minimum(np.arange(size + 1) + 1, size), np.zeros(size + 1, dtype=np.int64)], axis=1)
        counters.append(Transducer(Semiautomaton(table, ("a", "b")), 0, (np.arange(size + 1) == size).astype(np.int64)))
    assert tree_machine(counters[0]).difference_string(counters[1]) == ("a",) * 37
    assert tree_machine(counters[1]).difference_string(counters[0]) == ("a",) * 37


def test_nothing_is_asked_where_the_transducer_ignores() -> None:
    transducer = library.modular_arithmetic(3)
    machine = tree_machine(transducer)
    outputs = np.where(machine.outputs == -100, 1, machine.outputs)
    assert TreeMachine(machine.symbols, machine.leaves, machine.table, outputs).difference_string(transducer) is None


def test_a_class_that_drifts_with_depth_is_found() -> None:
    """Right for windows below level 5, wrong from there on: classes that count the level."""
    deep = 5
    codes = {(level, answer): level * 2 + answer for level in range(deep + 1) for answer in (0, 1)}
    table = np.full((len(codes),) * 2, -1)
    for (level, old), left in codes.items():
        for new in (0, 1):
            above = min(level + 1, deep)
            table[left, codes[level, new]] = codes[above, (old ^ new) if above < deep else 0]
    machine = TreeMachine(("a", "b"), np.array([0, 0, 1]), table, np.array([0, 1] * (deep + 1)))
    found = machine.difference_string(library.parity())
    assert found == (*"a" * 16, "b")  # the shortest string whose tree has five levels and an odd number of b


def test_a_missing_entry_is_named_with_a_string() -> None:
    right = tree_machine(library.parity())
    table = right.table.copy()
    table[1, 1] = -1
    machine = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    with pytest.raises(ValueError, match=r"no entry for the classes \[1, 1\], which 'bb' needs"):
        machine.difference_string(library.parity())
    with pytest.raises(ValueError, match=r"no entry for the classes \[1, 1\], which string 0 needs at level 1"):
        machine.answers(np.array([[1, 1]]))


def test_a_missing_window_of_pads_is_no_proof() -> None:
    """Classes 0 (pad), 1 and 2 (even, odd), 3 (pads merged once): without (3, 3) no string of nine symbols is known."""
    table = np.array([[3, 1, 2, -1], [-1, 1, 2, -1], [-1, 2, 1, -1], [-1, 1, 2, -1]])
    machine = TreeMachine(("a", "b"), np.array([0, 1, 2]), table, np.array([0, 0, 1, 0]))
    assert machine.answers(np.array([[0, 1, 1]])).tolist() == [0]
    with pytest.raises(ValueError, match=r"no entry for the classes \[-1, 2\]"):
        machine.answers(np.ones((1, 9), dtype=np.int64))
    with pytest.raises(ValueError, match=r"no entry for the classes \[-1, 1\]"):
        machine.difference_string(library.parity())


@given(small, chunks)
@settings(max_examples=30)
def test_survives_json(transducer: Transducer, chunk: int) -> None:
    machine = tree_machine(transducer, chunk)
    again = TreeMachine.from_json(json.loads(json.dumps(machine.to_json())))
    assert again.symbols == machine.symbols
    for one, other in ((again.leaves, machine.leaves), (again.table, machine.table), (again.outputs, machine.outputs)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("leaves", "table", "outputs", "sentence"),
    [
        ([0, 1], [[0, 1], [1, 0]], [0, 1], "leaves: wanted a class for the pad and each of 2 symbols"),
        ([0, 0, 1], [[0, 1]], [0, 1], "table: wanted one axis of 2 classes"),
        ([0, 0, 2], [[0, 1], [1, 0]], [0, 1], r"wanted classes in 0..1, or -1"),
        ([0, 0, 1], [[0, 1], [1, -2]], [0, 1], r"wanted classes in 0..1, or -1"),
    ],
)
def test_malformed_machines_are_refused(leaves: list, table: list, outputs: list, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TreeMachine(("a", "b"), np.array(leaves), np.array(table), np.array(outputs))


def test_strings_and_transducers_over_other_symbols_are_refused() -> None:
    machine = tree_machine(library.parity())
    with pytest.raises(ValueError, match="wanted at least one symbol each"):
        machine.answers(np.zeros((1, 0), dtype=np.int64))
    with pytest.raises(ValueError, match="wanted one over the symbols"):
        machine.difference_string(library.cycle(3))
