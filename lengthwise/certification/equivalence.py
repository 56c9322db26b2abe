"""Equivalence of a machine in a certificate and its task, with a shortest difference. This module imports no torch."""

import numpy as np

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.automata.windows import MAX_MERGES
from lengthwise.certification.grids import GridMachineFields, first_grid_error
from lengthwise.certification.parts import TransducerFields, TreeMachineFields
from lengthwise.conventions import IGNORE


def machine_from_json(
    content: TreeMachineFields | TransducerFields | GridMachineFields,
) -> TreeMachine | Transducer | GridMachine:
    """Return a tree machine if the fields contain leaves, a grid machine if they contain cells, else a transducer.

    Raises:
        ValueError: the table is ragged, or has more than 20,000,000 entries.
    """
    if "cells" in content:
        return GridMachine.from_json(content)
    # Shapes are checked before arrays are made, because a file is not trusted: a small text could name a huge table.
    width = content["chunk_size"] + 1 if "leaves" in content else len(content["symbols"])
    if {len(row) for row in content["table"]} != {width}:
        raise ValueError(f"table: expected one row or more, each of {width} numbers, got other rows; certify again")
    if "leaves" not in content:
        return Transducer.from_json(content)
    size = len(content["outputs"]) ** content["chunk_size"]
    if size > MAX_MERGES:
        raise ValueError(f"machine: expected a table of at most {MAX_MERGES:,} entries, got {size:,}; certify again")
    return TreeMachine.from_json(content)


def first_ungraded(task: Transducer) -> tuple[str, ...] | None:
    """Return the shortest string of at least one symbol to which a task's machine has no answer, or None."""
    without = task.outputs == IGNORE
    # The empty string is never graded, so the search begins in an extra state, which no edge leads to.
    extended = Semiautomaton(np.vstack([task.semiautomaton.table, task.semiautomaton.table[task.start]]), task.symbols)
    return extended.shortest_string(task.num_states, np.append(without, False))


def first_error(
    machine: TreeMachine | Transducer | GridMachine, task: Transducer | GridMachine
) -> tuple[str, ...] | None:
    """Return the shortest supervised string that machine and task answer differently; None proves that they agree.

    For grid machines, the string comes from a search and may not be the shortest.

    Raises:
        ValueError: the machines are too large or of different kinds, or neither a string nor a proof was found.
    """
    if isinstance(machine, GridMachine) and isinstance(task, GridMachine):
        grid_error = first_grid_error(machine, task)
        return None if grid_error is None else grid_error.symbols
    if isinstance(machine, GridMachine) or isinstance(task, GridMachine):
        raise ValueError(
            "machine: expected a machine and a task that both read strings, or both pairs of strings, got one that "
            "reads strings and one that reads pairs; certify again"
        )
    if isinstance(machine, TreeMachine):
        return machine.difference_string(task)
    if (size := machine.num_states * task.num_states) > MAX_MERGES:
        raise ValueError(
            f"machine: expected at most {MAX_MERGES:,} pairs of states, got {size:,}; minimize the machine first"
        )
    product = machine.semiautomaton.product(task.semiautomaton)
    wrong = (task.outputs != IGNORE)[None, :] & (machine.outputs[:, None] != task.outputs[None, :])
    # The empty string is not supervised, so the search begins in an extra state, which has no answer.
    before = product.table[machine.start * task.num_states + task.start]
    extended = Semiautomaton(np.vstack([product.table, before]), product.symbols)
    return extended.shortest_string(product.num_states, np.append(wrong.ravel(), False))
