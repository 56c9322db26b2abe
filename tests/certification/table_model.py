"""A tree model that looks up a table: what extraction should find is known, and faults can be planted."""

from types import SimpleNamespace

import numpy as np
import torch

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.ops.tree_attention import Tree


class TableLayer:
    """Head j reads the j-th newest state, one-hot but for `scatter`; the last number counts levels by `drift`."""

    def __init__(self, machine: TreeMachine, scatter: float, drift: float) -> None:
        chunk = machine.chunk_size
        self.machine = machine
        self.width = machine.num_classes + 1
        self.bias = torch.where(torch.eye(chunk, dtype=torch.bool), 0.0, -1e9)
        self.scatter, self.drift = scatter, drift

    def normalise(self, states):
        return states

    def query(self, normed):
        return torch.zeros(*normed.shape[:-1], self.machine.chunk_size, self.width)

    def key_value(self, normed):
        copies = normed.unsqueeze(-2).expand(*normed.shape[:-1], self.machine.chunk_size, self.width)
        return torch.zeros_like(copies), copies

    def output(self, newest, attended):
        parts = attended.unflatten(-1, (self.machine.chunk_size, self.width))
        classes = parts[..., :-1].argmax(-1).flip(-1).numpy()
        merged = torch.from_numpy(self.machine.table[tuple(np.moveaxis(classes, -1, 0))])
        states = torch.nn.functional.one_hot(merged, self.width).float()
        waves = torch.sin(7 * parts.sum(-2) + torch.arange(self.width))
        states = states + self.scatter * waves / self.width**0.5
        states[..., -1] = parts[..., -1].amax(-1) + self.drift
        return states


def table_model(machine: TreeMachine, scatter: float = 0.0, drift: float = 0.0) -> SimpleNamespace:
    leaves = torch.eye(machine.num_classes + 1)[torch.tensor(machine.leaves)]
    layer = TableLayer(machine, scatter, drift)
    outputs = torch.tensor(machine.outputs - machine.outputs.min())

    def readout(states):
        return torch.nn.functional.one_hot(outputs[states[..., :-1].argmax(-1)], int(outputs.max()) + 1).float()

    return SimpleNamespace(tree=Tree(leaves, [layer], machine.chunk_size), readout=readout)
