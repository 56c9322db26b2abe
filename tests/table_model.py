"""A tree model that looks up a table: what extraction should find is known, and faults can be planted."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from lengthwise.automata.tree_machine import TreeMachine, tree_machine
from lengthwise.models.base import ModelConfig, TreeModel
from lengthwise.models.capabilities import AcceptsPads
from lengthwise.ops.tree import Tree
from lengthwise.ops.tree_attention import last_state, prefix_states
from lengthwise.tasks.base import RegularTask


class TableLayer:
    """Head j reads the j-th newest state, one-hot but for `scatter`; the last number counts levels by `drift`.

    From level `fault_level` on a window has the class that `fault` makes of the one in the table.
    """

    def __init__(
        self,
        machine: TreeMachine,
        scatter: float,
        drift: float,
        fault_level: int,
        fault: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        chunk = machine.chunk_size
        self.chunk = chunk
        self.table = torch.tensor(machine.table)
        self.width = machine.num_classes + 1
        self.scatter, self.drift = scatter, drift
        self.fault_level, self.fault = fault_level, fault

    def window_bias(self):
        return torch.where(torch.eye(self.chunk, dtype=torch.bool), 0.0, -1e9)

    def normalize(self, states):
        return states

    def query(self, normed):
        return normed.new_zeros(*normed.shape[:-1], self.chunk, self.width)

    def key_value(self, normed):
        copies = normed.unsqueeze(-2).expand(*normed.shape[:-1], self.chunk, self.width)
        return torch.zeros_like(copies), copies

    def output(self, newest, attended):
        parts = attended.unflatten(-1, (self.chunk, self.width))
        classes = parts[..., :-1].argmax(-1).flip(-1)
        merged = self.table[classes.unbind(-1)]
        count = parts[..., -1].amax(-1) + self.drift
        if self.drift:
            merged = torch.where(count > (self.fault_level - 0.5) * self.drift, self.fault(merged), merged)
        states = torch.nn.functional.one_hot(merged, self.width).to(attended)
        if self.scatter:
            waves = torch.sin(7 * parts.sum(-2) + torch.arange(self.width))
            states = states + self.scatter * waves / self.width**0.5
        states[..., -1] = count
        return states


class TableReadout(nn.Module):
    """Logits 1 for the answer of the class, 0 for the others."""

    def __init__(self, machine: TreeMachine, num_answers: int) -> None:
        super().__init__()
        answers = torch.tensor(machine.outputs)[:, None] == torch.arange(num_answers)
        self.register_buffer("logits", answers.float())

    def forward(self, states):
        return self.logits[states[..., :-1].argmax(-1)]


class PaddedTree(AcceptsPads, TreeModel):
    """A tree without parameters, whose first leaf is the pad's."""

    Config = ModelConfig

    def reset_parameters(self, generator):
        """There are none."""

    def forward(self, inputs):
        return self.readout(prefix_states(inputs + 1, self.tree))

    def last_state(self, inputs):
        return last_state(inputs + 1, self.tree)


class TableModel(PaddedTree):
    """As `TableLayer` says; every answer of the machine must be a class of the task, or 0 at unsupervised positions."""

    name = "table"

    def __init__(self, machine: TreeMachine, num_answers: int, layer: TableLayer) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.layer = layer
        self.readout = TableReadout(machine, num_answers)
        self.register_buffer("leaves", torch.eye(machine.num_classes + 1)[torch.tensor(machine.leaves)])

    @property
    def tree(self) -> Tree:
        return Tree(self.leaves, [self.layer], self.layer.chunk)


def with_separate_leaves(machine: TreeMachine) -> TreeMachine:
    """The same machine, but leaves are classes of their own, as states of a model's embedding are."""
    leaves, count = machine.leaves, machine.num_classes
    classes = np.concatenate([np.arange(count), leaves])
    table = machine.table[np.ix_(*[classes] * machine.chunk_size)]
    return TreeMachine(machine.symbols, np.arange(count, count + len(leaves)), table, machine.outputs[classes])


def right_machine(task: RegularTask, chunk_size: int = 2) -> TreeMachine:
    """The elements of the task's monoid, and leaves."""
    return with_separate_leaves(tree_machine(task.transducer.minimize(), chunk_size))


def table_model(
    machine: TreeMachine,
    scatter: float = 0.0,
    drift: float = 0.0,
    *,
    num_answers: int | None = None,
    fault_level: int = 10**6,
    fault: Callable[[torch.Tensor], torch.Tensor] = torch.clone,
) -> TableModel:
    count = num_answers or int(machine.outputs.max()) + 1
    return TableModel(machine, count, TableLayer(machine, scatter, drift, fault_level, fault))
