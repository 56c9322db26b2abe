"""Machines found by state merging (`merge_states`) and local search (`repair`), one for each of several settings."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lengthwise.automata.transducer import Transducer
from lengthwise.learning.prefix_tree import PrefixTree, prefix_tree
from lengthwise.learning.repair import repair
from lengthwise.learning.state_merging import SymbolBits, completed, machine_from, merge_states, partial_table
from lengthwise.tasks.given.examples import Examples

MAX_STATES = 40
"""The largest number of states after merging. Then `repair` can split states, and so exceed this number."""

MAX_ENTRIES = 50_000_000
"""The largest product of the strings' total length and the alphabet's size; a table of this size takes 400 MB."""

MAX_LEVELS = 2_000
"""The largest length of a string, in symbols. Each level of the prefix tree costs time, even with few strings."""

MIN_SECONDS = 20.0
"""The CPU seconds that are always allowed, whatever the budget.

These seconds are allowed for `merge_states` under the first setting, and for `repair` under each setting.
"""


class Setting(NamedTuple):
    """A setting of state merging: `noise` is the noise rate that is assumed for labels.

    With `with_symbols`, merges also depend on the symbols that follow a state.
    """

    noise: float
    with_symbols: bool

    def __str__(self) -> str:
        return f"states merged at noise {self.noise:.1%}{', also by next symbols' * self.with_symbols}"


LABELS_ALONE = tuple(Setting(noise, False) for noise in (0.001, 0.02, 0.05, 0.005, 0.1))
"""Settings for strings whose symbols do not depend on each other.

A low noise rate can leave too many states, which `repair` then merges.
"""

WITH_SYMBOLS = (*(Setting(noise, True) for noise in (0.01, 0.05, 0.002, 0.1)), Setting(0.02, False))
"""Settings for strings such as the traces of a protocol, in which only a few different symbols follow each state."""


class Merged(NamedTuple):
    """A machine that `merge_states` and `repair` found, and the CPU seconds that both took together."""

    machine: Transducer
    setting: Setting
    seconds: float


def merged_machines(examples: Examples, *, budget: float) -> Iterator[Merged]:
    """Yield a machine for each `Setting` until the budget is used up; the first setting is tried whatever the budget.

    Yield nothing if a string is too long (`MAX_LEVELS`), or the table of all prefixes too large (`MAX_ENTRIES`). The
    budget is in CPU seconds.
    """
    if int(examples.lengths.max()) > MAX_LEVELS or len(examples.ids) * len(examples.symbols) > MAX_ENTRIES:
        return
    started = time.process_time()
    tree = prefix_tree(examples)
    for index, setting in enumerate(WITH_SYMBOLS if do_symbols_depend(tree) else LABELS_ALONE):
        began = time.process_time()
        if index and began > started + budget:
            return
        deadline = began + MIN_SECONDS if index == 0 else started + budget
        hypothesis = merge_states(
            tree, setting.noise, with_symbols=setting.with_symbols, max_states=MAX_STATES, deadline=deadline
        )
        fitted = repair(
            tree, completed(partial_table(hypothesis)), deadline=max(deadline, time.process_time() + MIN_SECONDS)
        )
        # Only the transitions that examples take are known; `machine_from` gives the others a target.
        used = tree.are_used(fitted.states, len(fitted.table))
        machine = machine_from(np.where(used, fitted.table, -1), fitted.outputs, examples.symbols)
        yield Merged(machine, setting, time.process_time() - began)


def do_symbols_depend(tree: PrefixTree) -> bool:
    """Return whether a code for the symbols takes fewer bits if the code is conditioned on the preceding symbol."""
    inner = np.flatnonzero(tree.parents > 0)
    pairs = np.zeros((tree.num_symbols, tree.num_symbols), np.int64)
    np.add.at(pairs, (tree.symbols[tree.parents[inner]], tree.symbols[inner]), tree.visits[inner])
    bits = SymbolBits(tree.num_symbols, int(pairs.sum()))
    return float(bits(pairs).sum()) < float(bits(pairs.sum(0)[None])[0])


def unseen_transitions(machine: Transducer, examples: Examples) -> list[tuple[int, str]]:
    """Return the state and the symbol of each transition that no example takes and that begins in a reachable state."""
    tree = prefix_tree(examples)
    table = machine.semiautomaton.table
    used = tree.are_used(tree.states(table, machine.start), len(table))
    reachable = set(machine.semiautomaton.reachable(machine.start).tolist())
    return [(state, machine.symbols[v]) for state, v in np.argwhere(~used).tolist() if state in reachable]
