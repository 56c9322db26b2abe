"""Fast partition refinement and comparison: as their slow definitions find, in few steps."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest
from automaton_strategies import checked_strategies, semiautomata
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton, Transducer, refinement
from lengthwise.automata.labeled import LabeledMachine, difference
from lengthwise.automata.refinement import (
    coarsest_partition,
    coarsest_partition_by_rounds,
    first_difference,
    first_difference_of_all_pairs,
)

pytestmark = [checked_strategies, pytest.mark.unchecked]


def ring(size: int) -> Semiautomaton:
    return Semiautomaton((np.arange(size)[:, None] + 1) % size, ("a",))


@contextmanager
def counted_lines() -> Iterator[list[int]]:
    """Count the lines of `refinement` that run."""
    count = [0]

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        count[0] += event == "line"
        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        return local if frame.f_code.co_filename == refinement.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def blocks_as_sets(blocks: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(blocks == block).tolist()) for block in blocks}


@given(semiautomata(max_states=12), st.data())
def test_both_refinements_find_the_coarsest_partition(machine: Semiautomaton, data: st.DataObject) -> None:
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=machine.num_states, max_size=machine.num_states)))
    expected = blocks_as_sets(coarsest_partition_by_rounds(machine.table, labels))
    assert blocks_as_sets(coarsest_partition(machine.table, labels)) == expected
    by_halves = refinement._split_by_smaller_halves(machine.table, np.unique(labels, return_inverse=True)[1])
    assert blocks_as_sets(by_halves) == expected


@given(semiautomata(("a", "b")), semiautomata(("a", "b")), st.booleans(), st.data())
def test_both_searches_find_the_same_string(
    first: Semiautomaton, second: Semiautomaton, is_same: bool, data: st.DataObject
) -> None:
    second = first if is_same else second
    tables = [first.table.tolist(), second.table.tolist()]
    labels = [data.draw(st.lists(st.integers(0, 2), min_size=len(table), max_size=len(table))) for table in tables]
    labels = [labels[0], labels[0]] if is_same else labels
    starts = tuple(data.draw(st.integers(0, len(table) - 1)) for table in tables)
    for ignored in (None, 0):
        expected = first_difference_of_all_pairs(tables, starts, labels, ignored=ignored)
        assert first_difference(tables, starts, labels, ignored=ignored) == expected


@pytest.mark.parametrize("labels", ["one", "half", "random"])
def test_refinement_of_a_ring_takes_n_log_n_steps(labels: str) -> None:
    counts = []
    for size in (1_000, 4_000):
        of_kind = {
            "one": np.arange(size) == 0,
            "half": np.arange(size) < size // 2,
            "random": np.random.default_rng(0).random(size) < 0.5,
        }
        with counted_lines() as count:
            blocks = coarsest_partition(ring(size).table, of_kind[labels].astype(np.int64))
        assert blocks.max() + 1 == size
        counts.append(count[0])
    assert counts[1] < 4 * 1.5 * counts[0]  # quadratic: 16 times as many


def test_counters_are_compared_in_as_many_pairs_as_they_have_states() -> None:
    counters = [Transducer(ring(size), 0, np.zeros(size, dtype=np.int64)) for size in (600, 601)]
    with counted_lines() as count:
        assert counters[0].equivalent(counters[1])
    assert count[0] < 40 * (600 + 601)  # all pairs: 360,600
    with counted_lines() as count:
        assert difference(*(LabeledMachine(counter, ("x", "y")) for counter in counters)) is None
    assert count[0] < 45 * (600 + 601)


def test_a_start_without_an_answer_does_not_slow_the_search() -> None:
    tables = [[[1], *([1 + target] for [target] in ring(size).table.tolist())] for size in (600, 601)]
    with counted_lines() as count:
        assert first_difference(tables, (0, 0), [[7] + [0] * 600, [7] + [0] * 601], ignored=7) is None
    assert count[0] < 45 * (600 + 601)


def test_large_rings_are_minimized() -> None:
    size = 20_000
    dfa = DFA(ring(size), 0, np.arange(size) % (size // 2) == 0)
    assert dfa.minimize().num_states == size // 2
