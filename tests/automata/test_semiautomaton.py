from typing import Any

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, semiautomata
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton, Transducer, semiautomaton
from lengthwise.automata.lookup import StateLookup
from lengthwise.automata.semiautomaton import MAX_LOOPED_STRINGS, explore

pytestmark = checked_strategies

FLIP = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))


@given(semiautomata(), st.integers(0, 4), st.data())
def test_run_follows_the_table(machine: Semiautomaton, length: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, machine.num_states - 1))
    strings = all_strings(machine.num_symbols, length)
    states = machine.run(strings, start)
    for string, reached in zip(strings.tolist(), states.tolist(), strict=True):
        state = start
        for symbol, after in zip(string, reached, strict=True):
            state = int(machine.table[state, symbol])
            assert state == after
    final = machine.final_states(strings, start)
    np.testing.assert_array_equal(final, states[:, -1] if length else np.full(1, start))
    many = np.concatenate([strings] * (1 + MAX_LOOPED_STRINGS))
    np.testing.assert_array_equal(machine.final_states(many, start), np.concatenate([final] * (1 + MAX_LOOPED_STRINGS)))


@given(semiautomata(), st.data())
def test_shortest_string_is_the_first_of_the_shortest(machine: Semiautomaton, data: st.DataObject) -> None:
    target = data.draw(st.integers(0, machine.num_states - 1))
    actual = machine.shortest_string(0, np.arange(machine.num_states) == target)
    reached = {(): 0}
    layers = [reached]
    for _ in range(machine.num_states - 1):
        reached = {
            (*string, symbol): int(machine.table[state, index])
            for string, state in reached.items()
            for index, symbol in enumerate(machine.symbols)
        }
        layers.append(reached)
    hits = [string for layer in layers for string, state in layer.items() if state == target]
    assert actual == (hits[0] if hits else None)
    assert (target in machine.reachable(0)) == bool(hits)


@given(semiautomata(symbols=("a", "b")), semiautomata(symbols=("a", "b")))
def test_product_runs_both(first: Semiautomaton, second: Semiautomaton) -> None:
    strings = all_strings(2, 5)
    both = first.product(second).run(strings)
    np.testing.assert_array_equal(both // second.num_states, first.run(strings))
    np.testing.assert_array_equal(both % second.num_states, second.run(strings))


def test_transition_matrix_counts_strings() -> None:
    machine = Semiautomaton(np.array([[0, 0, 1], [1, 0, 1]]), ("a", "b", "c"))
    matrix = machine.transition_matrix(np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(matrix, [[0.75, 0.25], [0.25, 0.75]])


def test_explore_numbers_states_breadth_first() -> None:
    machine, meaning = explore(("l", "r"), "", lambda path, symbol: (path + symbol)[-2:])
    assert meaning == ["", "l", "r", "ll", "lr", "rl", "rr"]
    assert machine.table[0].tolist() == [1, 2]


def test_machines_without_an_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semiautomaton, "MAX_TRANSITIONS", 10)
    assert explore(("l", "r"), 0, lambda state, symbol: (state + 1) % 5)[0].num_states == 5
    with pytest.raises(ValueError, match=r"^machine: expected at most 10 transitions, got more \(over 5 states and 2"):
        explore(("l", "r"), 0, lambda state, symbol: state + 1)


def test_the_table_is_a_read_only_copy() -> None:
    table = np.array([[0, 1], [1, 0]])
    machine = Semiautomaton(table, ("a", "b"))
    table[0, 0] = 1
    assert machine.table[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        machine.table[0, 0] = 1


@pytest.mark.parametrize(
    ("table", "symbols", "message"),
    [
        (np.zeros((0, 2), dtype=np.int64), ("a", "b"), r"table: expected a non-empty .* got shape \(0, 2\)"),
        ([[0, 1], [0]], ("a", "b"), "table: expected rows of the same length, got rows of different lengths; complete"),
        (np.array([[0, 2], [1, 0]]), ("a", "b"), r"next states in 0\.\.1, got 2 at state 0 and symbol 1"),
        (np.array([[0, 1], [1, -1]]), ("a", "b"), r"got -1 at state 1 and symbol 1"),
        (np.array([[0, 1], [1, 0]]), ("a",), r"symbols: expected 2 distinct non-empty strings, got \('a',\)"),
        (np.array([[0, 1], [1, 0]]), ("a", "a"), r"symbols: expected 2 distinct"),
        (np.array([[0, 1], [1, 0]]), ("a", ""), r"symbols: expected 2 distinct non-empty"),
    ],
)
def test_bad_machines_are_refused(table: Any, symbols: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Semiautomaton(table, symbols)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"strings: expected symbol ids in 0\.\.1, got 2 in row 1 at position 0"):
        FLIP.run(np.array([[0, 1], [2, 0]]))
    with pytest.raises(ValueError, match=r"strings: .* got -1 in row 0 at position 1"):
        FLIP.final_states(np.array([[0, -1]]))
    with pytest.raises(ValueError, match=r"strings: .* got -1 in row 0 at position 1"):
        FLIP.final_states(np.array([[0, -1]] * (1 + MAX_LOOPED_STRINGS)))
    with pytest.raises(ValueError, match=r"start: expected a state in 0\.\.1, got 2"):
        FLIP.run(np.array([[0]]), start=2)
    with pytest.raises(ValueError, match=r"other: expected a machine over the symbols \('a', 'b'\), got \('b', 'a'\)"):
        FLIP.product(Semiautomaton(FLIP.table, ("b", "a")))
    with pytest.raises(ValueError, match=r"targets: expected one entry for each of the 2 states, got shape \(3,\)"):
        FLIP.shortest_string(0, np.array([True, False, True]))


def test_machines_cannot_be_changed_from_outside() -> None:
    """Their arrays are copies of what was given, and read-only."""
    table, outputs, accepting = (
        FLIP.table.copy(),
        np.array([0, 1]),
        np.array([True, False]),
    )
    machine = Semiautomaton(table, ("a", "b"))
    transducer, dfa = Transducer(machine, 0, outputs), DFA(machine, 0, accepting)
    for given_array, kept in ((table, machine.table), (outputs, transducer.outputs), (accepting, dfa.accepting)):
        given_array[0] = given_array[1]
        assert (kept[0] != kept[1]).any()
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = kept[1]


@pytest.mark.parametrize("start", [-1, 2])
def test_a_search_or_run_begins_in_a_state(start: int) -> None:
    few, many = np.zeros((1, 1), dtype=np.int64), np.zeros((1 + MAX_LOOPED_STRINGS, 1), dtype=np.int64)
    for search in (
        lambda: FLIP.reachable(start),
        lambda: FLIP.shortest_string(start, np.array([True, False])),
        lambda: FLIP.quotient(start, np.array([0, 1])),
        lambda: FLIP.run(few, start),
        lambda: FLIP.final_states(few, start),
        lambda: FLIP.final_states(many, start),
        lambda: StateLookup(FLIP, start),
        lambda: DFA(FLIP, start, np.array([True, False])),
        lambda: Transducer(FLIP, start, np.array([0, 1])),
    ):
        with pytest.raises(ValueError, match=rf"^start: expected a state in 0\.\.1, got {start}; number the states"):
            search()


@pytest.mark.parametrize("start", [True, 0.0, 0.5, -1, 2])
def test_a_start_that_is_no_state_is_named(start: object) -> None:
    machine = Semiautomaton(np.array([[1], [0]]), ("a",))
    with pytest.raises(ValueError, match=r"start: expected a state in 0\.\.1, got"):
        machine.check_state(start)


@pytest.mark.unchecked
@pytest.mark.parametrize("kind", [DFA, Transducer])
def test_a_table_alone_is_not_a_semiautomaton(kind: type) -> None:
    with pytest.raises(ValueError, match=r"^semiautomaton: expected a Semiautomaton, got array"):
        kind(FLIP.table, 0, np.array([True, False]))
