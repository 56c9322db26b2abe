"""Models that a certificate must not be fooled by, each a `SequenceModel`, and a task for them."""

import math

import numpy as np
import torch
from table_model import PaddedTree
from torch import nn

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.models.base import ModelConfig, SequenceModel, TreeModel
from lengthwise.ops.tree import Tree
from lengthwise.tasks.regular.parity import Parity


class MultiplesOf3(Parity):
    """Is the number of b a multiple of 3? On the strings of `Parity`: 1 and 2 are told apart by what follows only."""

    name = "multiples-of-3"

    @property
    def transducer(self) -> Transducer:
        return Transducer(Semiautomaton(np.array([[0, 1], [1, 2], [2, 0]]), ("a", "b")), 0, np.array([1, 0, 0]))

    def solve(self, inputs):
        return (inputs.cumsum(1) % 3 == 0).long()

    def baseline(self, length: int) -> float:
        """Of all strings those with 0, 3, 6, ... of b, or the others."""
        multiples = sum(math.comb(length, count) for count in range(0, length + 1, 3)) / 2**length
        return max(multiples, 1 - multiples)


class WithoutTree(SequenceModel):
    """The same answers, from a model that cannot be taken apart."""

    name = "wrapped"
    Config = ModelConfig

    def __init__(self, inner: SequenceModel) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.inner = inner
        self.readout = inner.readout

    def reset_parameters(self, generator):
        self.inner.reset_parameters(generator)

    def forward(self, inputs):
        return self.inner(inputs)

    def last_state(self, inputs):
        return self.inner.last_state(inputs)

    def last(self, inputs):
        return self.inner.last(inputs)


class Wrapped(WithoutTree, TreeModel):
    """A model around another one, whose tree stays in sight."""

    @property
    def tree(self):
        return self.inner.tree


class LabelsChange(Wrapped):
    """From strings of `length` symbols on the classes change places."""

    def __init__(self, inner: SequenceModel, length: int) -> None:
        super().__init__(inner)
        self.length = length

    def forward(self, inputs):
        logits = self.inner(inputs)
        late = torch.arange(1, inputs.shape[1] + 1) >= self.length
        return torch.where(late[:, None], logits.roll(1, -1), logits)

    def last(self, inputs):
        logits = self.inner.last(inputs)
        return logits.roll(1, -1) if inputs.shape[1] >= self.length else logits


class WrongInBatches(Wrapped):
    """Right wherever a string of `length` symbols or more is alone."""

    def __init__(self, inner: SequenceModel, length: int) -> None:
        super().__init__(inner)
        self.length = length

    def last(self, inputs):
        logits = self.inner.last(inputs)
        return logits if len(inputs) == 1 or inputs.shape[1] < self.length else logits.roll(1, -1)


class Attention(SequenceModel):
    """A start symbol, one head of uniform attention, one layer of ReLU without biases: parity of up to `most` b.

    Attention gives k / (T + 1) and 1 / (T + 1) for k b among T symbols. A ReLU layer without biases then computes
    z(k) / (T + 1) for any piecewise linear z, here the zigzag that is -1 at even and 1 at odd numbers up to `most`.
    """

    name = "attention"
    Config = ModelConfig

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.embedding = nn.Embedding(3, 2)
        self.hidden = nn.Linear(2, maximum + 1, bias=False)
        self.readout = nn.Linear(maximum + 1, 2, bias=False)
        turns = torch.arange(maximum)
        slopes = torch.where(turns % 2 == 0, 4.0, -4.0) - 2.0 * (turns == 0)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]))
            self.hidden.weight.copy_(torch.stack([torch.ones(maximum + 1), -torch.arange(-1.0, maximum)], 1))
            self.hidden.weight[0] = torch.tensor([0.0, 1.0])
            self.readout.weight.copy_(torch.cat([-torch.ones(1), slopes]) * torch.tensor([[-1.0], [1.0]]))

    def reset_parameters(self, generator):
        for parameter in self.parameters():
            nn.init.normal_(parameter, generator=generator)

    def _states(self, inputs):
        started = nn.functional.pad(inputs + 1, (1, 0))
        counts = self.embedding(started).double().cumsum(1)
        means = counts / torch.arange(1, started.shape[1] + 1)[:, None]
        return torch.relu(self.hidden(means[:, 1:].to(self.hidden.weight.dtype)))

    def forward(self, inputs):
        return self.readout(self._states(inputs))

    def last_state(self, inputs):
        return self._states(inputs)[:, -1]


class CountingLayer:
    """A merge that adds."""

    def window_bias(self):
        return torch.zeros(1, 2)

    def normalize(self, states):
        return states

    def query(self, normed):
        return torch.zeros_like(normed).unsqueeze(-2)

    def key_value(self, normed):
        return torch.zeros_like(normed).unsqueeze(-2), normed.unsqueeze(-2)

    def output(self, newest, attended):
        return 2 * attended


class Multiples(nn.Module):
    """Is a number a multiple of another?"""

    def __init__(self, divisor: int) -> None:
        super().__init__()
        self.divisor = divisor

    def forward(self, states):
        rest = states[..., 0] % self.divisor
        return torch.stack([(rest != 0).float(), (rest == 0).float()], -1)


class Counter(PaddedTree):
    """Its state is the number of b: no finite machine, though what it answers depends on a remainder."""

    name = "counter"

    def __init__(self, divisor: int) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.readout = Multiples(divisor)

    @property
    def tree(self):
        return Tree(torch.tensor([[0.0], [0.0], [1.0]]), [CountingLayer()], 2)


class DoublingLayer(CountingLayer):
    """A merge that keeps the first number of the newest part, and adds the second of all."""

    def output(self, newest, attended):
        return torch.cat([newest[..., :1], 2 * attended[..., 1:]], -1)


class Turns(nn.Module):
    """The sign of the first number, until the second is above 1."""

    def forward(self, states):
        sign = states[..., 0] * torch.where(states[..., 1] > 1, -1.0, 1.0)
        return torch.stack([-sign, sign], -1)


class Doubling(PaddedTree):
    """Says whether the last symbol is b, up to about `length` symbols, with which an idle number of its state grows."""

    name = "doubling"

    def __init__(self, length: int) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.length = length
        self.readout = Turns()

    @property
    def tree(self):
        return Tree(torch.tensor([[-1.0, 0.0], [-1.0, 1 / self.length], [1.0, 1 / self.length]]), [DoublingLayer()], 2)
