"""Machines with a planted fault, and what machines and nets answer to short strings."""

from collections.abc import Iterator
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from automaton_strategies import all_strings

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.conventions import BAR, IGNORE, NUM_SPECIAL
from lengthwise.extraction.base import Extraction, Machine
from lengthwise.models import SequenceModel
from lengthwise.ops.answers import answers_of
from lengthwise.tasks.base import MachineTask

T = TypeVar("T")

MAX_STRINGS = 128
"""Strings of one length."""

MAX_WRONG = 8
"""Wrong machines of one extraction."""


@cache
def short_strings(task: MachineTask) -> list[torch.Tensor]:
    """Return strings of each short length: all of them if they are few, otherwise some of one shape."""
    if isinstance(task.reference, Transducer):
        size = len(task.symbols)
        return [torch.from_numpy(all_strings(size, n)) for n in range(1, 7) if size**n <= MAX_STRINGS]
    batches = []
    for length in filter(task.is_legal_length, range(1, 12)):
        inputs = task.sample(MAX_STRINGS, length, torch.Generator().manual_seed(length)).inputs
        bars = (inputs == BAR).int().argmax(1)
        batches.append(inputs[(bars == bars[0]) & (inputs >= 0).all(1)])
    return batches


@torch.no_grad()
def net_answers(model: SequenceModel, task: MachineTask) -> torch.Tensor:
    """Return the final answers to all short strings."""
    return torch.cat([answers_of(model.last(strings)) for strings in short_strings(task)])


def machine_answers(machine: Machine, task: MachineTask) -> torch.Tensor:
    """Return the final answers to all short strings."""
    return torch.cat([torch.from_numpy(_answers(machine, strings.numpy())) for strings in short_strings(task)])


def _answers(machine: Machine, strings: np.ndarray) -> np.ndarray:
    if isinstance(machine, TreeMachine):
        return machine.answers(strings)
    if isinstance(machine, Transducer):
        return machine.run(strings)[:, -1]
    bar = int((strings[0] == BAR).argmax())
    return machine.run(strings[:, :bar] - NUM_SPECIAL, strings[:, bar + 1 : -1] - NUM_SPECIAL)


def differ(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Check whether a string has two different answers, neither of which is `IGNORE`."""
    return bool(((ours != theirs) & (ours != IGNORE) & (theirs != IGNORE)).any())


def wrong_tables(machine: Machine) -> Iterator[Machine]:
    """Yield the machine with one wrong entry of its table, for all entries that a string may need."""
    if isinstance(machine, GridMachine):
        for index in np.ndindex(machine.table.shape[:4]):
            table = machine.table.copy()
            table[index] = (table[index] + 1) % machine.table.shape[:2]
            yield GridMachine(machine.symbols, table, machine.top, machine.left, machine.numbers, machine.per_row)
        return
    table = machine.table if isinstance(machine, TreeMachine) else machine.semiautomaton.table
    for index in zip(*np.nonzero(table >= 0), strict=True):
        wrong = table.copy()
        wrong[index] = (wrong[index] + 1) % len(machine.outputs)
        yield _changed(machine, wrong, machine.outputs)


def wrong_outputs(machine: Machine) -> Iterator[Machine]:
    """Yield the machine with one wrong output; a rule's outputs are its numbers."""
    outputs = machine.numbers if isinstance(machine, GridMachine) else machine.outputs
    for index in np.flatnonzero(outputs != IGNORE):
        wrong = outputs.copy()
        wrong[index] += 1 if wrong[index] == 0 else -1
        if isinstance(machine, GridMachine):
            rule = (machine.symbols, machine.table, machine.top, machine.left)
            yield GridMachine(*rule, wrong, machine.per_row)
        else:
            table = machine.table if isinstance(machine, TreeMachine) else machine.semiautomaton.table
            yield _changed(machine, table, wrong)


def _changed(machine: TreeMachine | Transducer, table: np.ndarray, outputs: np.ndarray) -> Machine:
    if isinstance(machine, TreeMachine):
        return TreeMachine(machine.symbols, machine.leaves, table, outputs)
    return Transducer(Semiautomaton(table, machine.symbols), machine.start, outputs)


def wrong_extractions(extraction: Extraction, machines: Iterator[Machine], task: MachineTask) -> list[Extraction]:
    """Return the extraction with the machines that err on a short string, or some of them if there are many."""
    right = machine_answers(extraction.fine, task)
    wrong = [machine for machine in _spread(list(machines), 4 * MAX_WRONG) if _errs(machine, task, right)]
    classes = np.arange(len(extraction.classes))
    return [
        extraction._replace(machine=machine, fine=machine, classes=classes) for machine in _spread(wrong, MAX_WRONG)
    ]


def _errs(machine: Machine, task: MachineTask, right: torch.Tensor) -> bool:
    try:
        return differ(machine_answers(machine, task), right)
    except ValueError:  # a wrong class of a tree may lead to windows that its table lacks
        return False


def _spread(values: list[T], maximum: int) -> list[T]:
    return values[:: max(1, -(-len(values) // maximum))]
