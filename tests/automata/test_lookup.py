"""Look-ups against the machines that define them."""

import tracemalloc

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, semiautomata
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Semiautomaton, library, lookup
from lengthwise.automata.lookup import StateLookup, TreeLookup
from lengthwise.automata.tree_machine import TreeMachine, tree_machine

pytestmark = checked_strategies

seeds = st.integers(0, 10**6)


def random_machine(num_symbols: int, num_classes: int, chunk: int, seed: int) -> TreeMachine:
    """Any table: its merges are no products, so that a wrong bracketing shows."""
    generator = np.random.default_rng(seed)
    leaves = generator.integers(num_classes, size=num_symbols + 1)
    table = generator.integers(num_classes, size=(num_classes,) * chunk)
    return TreeMachine(tuple("abcde"[:num_symbols]), leaves, table, np.arange(num_classes))


def random_automaton(num_symbols: int, num_states: int, seed: int) -> Semiautomaton:
    table = np.random.default_rng(seed).integers(num_states, size=(num_states, num_symbols))
    return Semiautomaton(table, tuple("abcde"[:num_symbols]))


@pytest.mark.parametrize("num_symbols", [2, 3, 5])
@pytest.mark.parametrize("chunk", [2, 3, 4])
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (7, 2), (7, 5), (1024, 63), (7, 64), (7, 81), (1, 10_000)])
def test_whole_strings_have_the_class_that_the_machine_gives(num_symbols: int, chunk: int, shape: tuple) -> None:
    machine = random_machine(num_symbols, 7, chunk, seed=num_symbols)
    strings = np.random.default_rng(chunk).integers(-1, num_symbols, size=shape)
    np.testing.assert_array_equal(TreeLookup(machine).final_classes(strings), machine.final_classes(strings))


@given(st.integers(1, 300), st.integers(2, 3), st.integers(1, 200), st.integers(1, 9), seeds)
def test_any_number_of_classes_fits(count: int, chunk: int, length: int, batch: int, seed: int) -> None:
    """Above 255 classes a class no longer fits into a byte."""
    machine = random_machine(3, count if chunk == 2 else min(count, 60), chunk, seed)
    strings = np.random.default_rng(seed).integers(-1, 3, size=(batch, length))
    np.testing.assert_array_equal(TreeLookup(machine).final_classes(strings), machine.final_classes(strings))


@pytest.mark.parametrize("chunk", [2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 17, 63, 130])
def test_every_prefix_has_the_class_of_its_own_tree(chunk: int, length: int) -> None:
    machine = random_machine(3, 7, chunk, seed=length)
    strings = np.random.default_rng(chunk).integers(-1, 3, size=(7, length))
    np.testing.assert_array_equal(TreeLookup(machine).prefix_classes(strings), machine.prefix_classes(strings))


def test_all_prefixes_of_a_long_string_are_read() -> None:
    parity = library.parity()
    strings = np.random.default_rng(0).integers(2, size=(3, 10_000))
    classes = TreeLookup(tree_machine(parity, 3)).prefix_classes(strings)
    np.testing.assert_array_equal(classes, parity.run(strings))


@pytest.mark.parametrize("num_symbols", [2, 3, 5])
@pytest.mark.parametrize("num_states", [1, 4, 60, 300])
@pytest.mark.parametrize("shape", [(1, 0), (1, 1), (7, 2), (7, 63), (1024, 17), (1, 10_000), (5000, 9)])
def test_states_are_those_that_the_machine_reaches(num_symbols: int, num_states: int, shape: tuple) -> None:
    machine = random_automaton(num_symbols, num_states, seed=num_symbols)
    strings = np.random.default_rng(num_states).integers(num_symbols, size=shape)
    start = num_states // 2
    fast = StateLookup(machine, start)
    np.testing.assert_array_equal(fast.run(strings), machine.run(strings, start))
    np.testing.assert_array_equal(fast.final_states(strings), machine.final_states(strings, start))


@given(semiautomata(max_states=3), st.data())
def test_few_strings_are_composed(machine: Semiautomaton, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, machine.num_states - 1))
    strings = all_strings(machine.num_symbols, data.draw(st.integers(1, 5)))
    fast = StateLookup(machine, start)
    assert fast._composition is not None
    np.testing.assert_array_equal(fast.final_states(strings), machine.final_states(strings, start))


@pytest.mark.parametrize("symbols_per_chunk", [1, 3, 64, 1000])
def test_slabs_do_not_show(symbols_per_chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_SYMBOLS_PER_CHUNK", symbols_per_chunk)
    monkeypatch.setattr(lookup, "MAX_ROWS_PER_CHUNK", 4)
    generator = np.random.default_rng(symbols_per_chunk)
    for chunk in (2, 3):
        machine, automaton = random_machine(3, 5, chunk, seed=0), random_automaton(3, 50, seed=0)
        tree, states = TreeLookup(machine), StateLookup(automaton)
        for batch, length in ((1, 1), (5, 50), (9, 243)):
            strings = generator.integers(3, size=(batch, length))
            np.testing.assert_array_equal(tree.final_classes(strings), machine.final_classes(strings))
            np.testing.assert_array_equal(tree.prefix_classes(strings), machine.prefix_classes(strings))
            np.testing.assert_array_equal(states.run(strings), automaton.run(strings))
            np.testing.assert_array_equal(states.final_states(strings), automaton.final_states(strings))


def test_memory_does_not_grow_with_length() -> None:
    tree, states = TreeLookup(random_machine(2, 60, 2, seed=0)), StateLookup(random_automaton(2, 60, seed=0))
    for read, batch in ((tree.final_classes, 1), (states.final_states, 300)):
        peaks = []
        for length in (1 << 19, 1 << 22):
            strings = np.random.default_rng(0).integers(2, size=(batch, length // batch))
            tracemalloc.start()
            read(strings)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < 1.2 * peaks[0]


@given(st.integers(2, 3), st.integers(1, 40), seeds)
def test_gaps_are_errors_exactly_where_they_are_needed(chunk: int, length: int, seed: int) -> None:
    machine = random_machine(2, 4, chunk, seed)
    generator = np.random.default_rng(seed)
    table = np.where(generator.random(machine.table.shape) < 0.05, -1, machine.table)
    machine = TreeMachine(machine.symbols, machine.leaves, table, machine.outputs)
    strings = generator.integers(2, size=(5, length))
    fast = TreeLookup(machine)
    for name in ("final_classes", "prefix_classes"):
        try:
            expected = getattr(machine, name)(strings)
        except ValueError:
            with pytest.raises(ValueError, match="table: expected an entry for each window of string"):
                getattr(fast, name)(strings)
        else:
            np.testing.assert_array_equal(getattr(fast, name)(strings), expected)


@pytest.mark.parametrize("wrong", [2, 99, -2])
def test_foreign_symbols_are_refused(wrong: int) -> None:
    strings = np.array([[0, 1], [1, wrong]])
    tree, states = TreeLookup(tree_machine(library.parity())), StateLookup(library.parity().semiautomaton)
    for read in (tree.final_classes, tree.prefix_classes, states.run, states.final_states):
        with pytest.raises(ValueError, match="strings: expected"):
            read(strings)
    for read in (tree.final_classes, tree.prefix_classes):
        with pytest.raises(ValueError, match="expected non-empty strings"):
            read(strings[:, :0])
    for read in (states.run, states.final_states):
        with pytest.raises(ValueError, match=r"expected symbol ids in 0\.\.1, got -1 in row 0 at position 1"):
            read(np.array([[0, -1]]))
