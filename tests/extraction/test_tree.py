"""Extraction from models whose machine is known."""

from itertools import product

import numpy as np
import pytest
import torch
from automaton_strategies import checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st
from table_model import table_model, with_separate_leaves

from lengthwise.automata import Semiautomaton, Transducer, library
from lengthwise.automata.tree_machine import TreeMachine, tree_machine
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.extraction.tree import extract_tree
from lengthwise.extraction.tree_traces import MAX_WORDS, power_trees
from lengthwise.models import make_model
from lengthwise.tasks import make_task

pytestmark = checked_strategies

small = transducers(symbols=("a", "b"), max_states=3)


def with_answers_from_zero(transducer: Transducer) -> Transducer:
    return Transducer(transducer.semiautomaton, transducer.start, transducer.outputs - transducer.outputs.min())


@given(small, st.integers(2, 3), st.floats(0, 0.2))
def test_finds_the_machine_that_is_there(transducer: Transducer, chunk: int, scatter: float) -> None:
    transducer = with_answers_from_zero(transducer.minimize())
    there = with_separate_leaves(tree_machine(transducer, chunk))
    extraction = extract_tree(table_model(there, scatter), there.symbols, radius=0.6)
    assert extraction.machine.difference_string(transducer) is None
    assert extraction.machine.num_classes <= there.num_classes + len(there.leaves)
    assert extraction.radius <= 0.5


@given(small, st.data())
def test_a_planted_fault_is_found_with_its_shortest_string(transducer: Transducer, data: st.DataObject) -> None:
    transducer = with_answers_from_zero(transducer.minimize())
    right = with_separate_leaves(tree_machine(transducer))
    table = right.table.copy()
    old, new = (data.draw(st.integers(0, right.num_classes - 1)) for _ in range(2))
    table[old, new] = data.draw(st.integers(0, len(right.outputs) - len(right.leaves) - 1))
    wrong = TreeMachine(right.symbols, right.leaves, table, right.outputs)
    extraction = extract_tree(table_model(wrong), wrong.symbols, radius=0.6)
    assert extraction.machine.difference_string(transducer) == wrong.difference_string(transducer)


def test_states_that_drift_are_not_finite() -> None:
    machine = with_separate_leaves(tree_machine(library.parity()))
    with pytest.raises(NotFinite, match=r"do not close within 40 classes of radius 0.6"):
        extract_tree(table_model(machine, drift=0.7), machine.symbols, radius=0.6, max_classes=40)


def test_only_windows_that_strings_show_are_merged() -> None:
    """Of the windows of leaves, those whose pads are in front."""
    machine = with_separate_leaves(tree_machine(library.cycle(3), 3))
    table = extract_tree(table_model(machine), machine.symbols, radius=0.6).fine.table
    merged = {tuple(window) for window in np.argwhere(table >= 0).tolist() if max(window) <= 3}
    quoted = {window for window in product(range(4), repeat=3) if 0 not in window[sum(part == 0 for part in window) :]}
    assert merged == quoted


def test_a_machine_that_needs_long_strings_is_told_apart() -> None:
    """It counts to 33 where the task counts to 34."""
    counters = []
    for size in (33, 34):
        table = np.stack([np.minimum(np.arange(size + 1) + 1, size), np.zeros(size + 1, dtype=np.int64)], axis=1)
        counters.append(Transducer(Semiautomaton(table, ("a", "b")), 0, (np.arange(size + 1) == size).astype(np.int64)))
    machine = with_separate_leaves(tree_machine(counters[0]))
    extraction = extract_tree(table_model(machine), ("a", "b"), radius=0.6, max_classes=2000)
    assert extraction.machine.difference_string(counters[0]) is None
    assert extraction.machine.difference_string(counters[1]) == ("a",) * 33


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"thickness": 2}, "got thickness 2"),
        ({"variant": "code"}, "and raw pads"),
        ({"lower_chunk_sizes": (4, 3)}, r"one chunk size .*, got \[4, 3\] at the lowest levels and 2 above; leave"),
    ],
)
def test_other_trees_are_refused(settings: dict, sentence: str) -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2, **settings)
    with pytest.raises(ValueError, match=sentence):
        extract_tree(model, task.symbols, radius=1.0)


def test_an_untrained_model_is_no_machine_of_its_task() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2)
    extraction = extract_tree(model, task.symbols, radius=20.0)
    assert extraction.machine.difference_string(task.transducer) is not None


@pytest.mark.parametrize(("chunk", "num_symbols"), [(2, 2), (2, 3), (3, 2)])
def test_trees_over_powers_are_those_over_the_strings(chunk: int, num_symbols: int) -> None:
    task = make_task("cycle-navigation") if num_symbols == 3 else make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2, chunk_size=chunk)
    trees = power_trees(model, num_symbols)
    assert [len(level.states) for level in trees.levels[:3]] == [num_symbols**chunk] + [num_symbols ** (chunk**2)] * 2
    assert len(trees.levels) == 60
    words = torch.cartesian_prod(*[torch.arange(num_symbols)] * chunk**2)
    with torch.no_grad():
        for level, strings in ((1, words), (2, words.repeat(1, chunk)), (3, words.repeat(1, chunk**2))):
            torch.testing.assert_close(trees.levels[level].states, model.last_state(strings), rtol=1e-4, atol=1e-4)


def test_of_many_words_some_are_spread_over_all() -> None:
    task = make_task("modular-arithmetic")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    assert len(task.symbols) ** 2 <= MAX_WORDS < len(task.symbols) ** 4
    trees = power_trees(model, len(task.symbols))
    assert len(trees.levels[1].windows) == MAX_WORDS
    assert trees.levels[1].windows[-1].tolist() == [len(trees.levels[0].states) - 1] * 2
