"""Laws of tree machines' tables: those of monoids obey them, planted faults are counted."""

from itertools import product

import numpy as np
from automaton_strategies import checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata.monoid_laws import monoid_laws
from lengthwise.automata.tree_machine import TreeMachine, tree_machine

pytestmark = checked_strategies


@given(transducers(symbols=("a", "b"), max_states=3), st.integers(2, 4))
def test_monoids_obey_them(transducer, chunk: int) -> None:
    machine = tree_machine(transducer, min(chunk, 2 + (len(transducer.outputs) < 3)))
    laws = monoid_laws(machine)
    count, parts = machine.num_classes, machine.chunk_size
    assert laws == (True, count**3 + (count**parts if parts > 2 else 0), 0)


@st.composite
def tree_machines(draw: st.DrawFn) -> TreeMachine:
    count, parts = draw(st.integers(1, 3)), draw(st.integers(2, 3))
    entries = draw(st.lists(st.integers(-1, count - 1), min_size=count**parts, max_size=count**parts))
    leaves = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2))
    return TreeMachine(("a",), np.array(leaves), np.array(entries).reshape((count,) * parts), np.zeros(count, int))


@given(tree_machines())
def test_counts_are_those_of_the_definition(machine: TreeMachine) -> None:
    table, parts, pad = machine.table.tolist(), machine.chunk_size, int(machine.leaves[0])

    def window(*classes: int) -> int:
        entry = table
        for k in classes:
            if k < 0:
                return -1
            entry = entry[k]
        return entry

    def times(a: int, b: int) -> int:
        return window(*(pad,) * (parts - 2), a, b)

    every = range(machine.num_classes)
    pairs = [(times(times(a, b), c), times(a, times(b, c))) for a, b, c in product(every, repeat=3)]
    if parts > 2:
        pairs += [(times(times(a, b), c), window(a, b, c)) for a, b, c in product(every, repeat=3)]
    decided = [(one, other) for one, other in pairs if one >= 0 and other >= 0]
    around = [(window(*(pad,) * i, k, *(pad,) * (parts - 1 - i)), k) for k in every for i in range(parts)]
    is_identity = all(actual in (k, -1) for actual, k in around)
    assert monoid_laws(machine) == (is_identity, len(decided), sum(one != other for one, other in decided))
