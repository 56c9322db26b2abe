"""A net that computes a rule over the grid of two strings, written weight by weight."""

import torch

from lengthwise import make_model
from lengthwise.automata.grid_machine import GridMachine
from lengthwise.models.grid_recurrence import GridRecurrence
from lengthwise.tasks.base import MachineTask


def rule_net(machine: GridMachine, task: MachineTask, margin: float = 1.0) -> GridRecurrence:
    """A net at temperature 0 whose cells are the machine's, with a relation for each pair of letters."""
    size = max(machine.table.shape[:2])
    relations = len(machine.symbols) ** 2
    model = make_model("grid-recurrence", task, num_messages=size, num_relations=relations)
    model.set_progress(1.0)
    cell = model.cell
    with torch.no_grad():
        for logits in (cell.relations, cell.table, cell.top, cell.left, cell.per_class):
            logits.zero_()
        cell.relations += margin * torch.eye(relations).view_as(cell.relations)
        table = torch.tensor(machine.table).flatten(2, 3)
        cell.table[: len(table), : table.shape[1]] += margin * torch.nn.functional.one_hot(table, size)
        cell.top[machine.top] += margin
        cell.left[machine.left] += margin
        cell.per_class[: len(machine.numbers)] = torch.tensor(machine.numbers).float() + 0.3
        cell.per_row.fill_(machine.per_row - 0.4)
    return model
