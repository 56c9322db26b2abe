"""Comparison of a certificate's machine with the task: a proof that they agree, or a string on which they differ.

This module imports no torch.
"""

import numpy as np

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.automata.windows import MAX_MERGES
from lengthwise.certification.grids import GridMachineFields, first_grid_error
from lengthwise.certification.parts import TransducerFields, TreeMachineFields, refusal
from lengthwise.conventions import IGNORE


def machine_from_json(
    content: TreeMachineFields | TransducerFields | GridMachineFields,
) -> TreeMachine | Transducer | GridMachine:
    """Return the machine in JSON fields: a tree machine with `leaves`, a grid machine with `cells`, else a transducer.

    Raises:
        ValueError: the table has no rows, or a row of a wrong length. Or the table of a tree machine has more than
            20,000,000 entries.
    """
    if "cells" in content:
        return GridMachine.from_json(content)
    # Shapes are checked before arrays are made, since a file is not trusted: a small file could describe a huge table.
    width = content["chunk_size"] + 1 if "leaves" in content else len(content["symbols"])
    if {len(row) for row in content["table"]} != {width}:
        raise refusal(f"expected one or more rows of {width} numbers each, got other rows", "table")
    if "leaves" not in content:
        return Transducer.from_json(content)
    size = len(content["outputs"]) ** content["chunk_size"]
    if size > MAX_MERGES:
        raise refusal(f"expected a table of at most {MAX_MERGES:,} entries, got {size:,}", "machine")
    return TreeMachine.from_json(content)


def first_ungraded(task: Transducer) -> tuple[str, ...] | None:
    """Return a shortest nonempty string that a task's machine does not answer, or None."""
    without = task.outputs == IGNORE
    # The empty string is never graded, so the search begins in an extra state to which no edge leads.
    extended = Semiautomaton(np.vstack([task.semiautomaton.table, task.semiautomaton.table[task.start]]), task.symbols)
    return extended.shortest_string(task.num_states, np.append(without, False))


def first_error(
    machine: TreeMachine | Transducer | GridMachine, task: Transducer | GridMachine
) -> tuple[str, ...] | None:
    """Return a shortest string that the machine and the task answer differently; None proves that they agree.

    Only nonempty strings to which the task has an answer are compared. For grid machines, the string comes from a
    search, so it may not be the shortest.

    Raises:
        ValueError: the machines are too large or of different kinds, or neither a string nor a proof was found.
    """
    if isinstance(machine, GridMachine) and isinstance(task, GridMachine):
        grid_error = first_grid_error(machine, task)
        return None if grid_error is None else grid_error.symbols
    if isinstance(machine, GridMachine) or isinstance(task, GridMachine):
        given, needed = ("pairs of strings" if isinstance(each, GridMachine) else "strings" for each in (machine, task))
        raise ValueError(
            f"machine: expected a machine that reads {needed}, as the task does, got a machine that reads {given}; "
            "certify again"
        )
    if isinstance(machine, TreeMachine):
        return machine.difference_string(task)
    if (size := machine.num_states * task.num_states) > MAX_MERGES:
        raise ValueError(
            f"machine: expected at most {MAX_MERGES:,} pairs of states, got {size:,}; minimize the machine first"
        )
    product = machine.semiautomaton.product(task.semiautomaton)
    wrong = (task.outputs != IGNORE)[None, :] & (machine.outputs[:, None] != task.outputs[None, :])
    # The empty string is not supervised, so the search begins in an extra state, which counts as right.
    before = product.table[machine.start * task.num_states + task.start]
    extended = Semiautomaton(np.vstack([product.table, before]), product.symbols)
    return extended.shortest_string(product.num_states, np.append(wrong.ravel(), False))
