"""Models of somebody else's, whose methods do not fit together, are refused before they are trained or certified."""

import math

import pytest
import torch
from last_symbol import LastSymbol
from torch import nn

from lengthwise import RecurrentModel, certify
from lengthwise.models.consistency import check_consistent

TASK = LastSymbol()


class Own(RecurrentModel):
    """The last symbol, as a state of two numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(2))
        self.readout = nn.Linear(2, 2)
        with torch.no_grad():
            self.readout.weight.copy_(4 * torch.eye(2))
            self.readout.bias.zero_()

    def reset_parameters(self, generator):
        pass

    def initial_state(self, batch_size):
        return torch.zeros(batch_size, 2)

    def step(self, token, state):
        state = self.weight[token]
        return self.readout(state), state


class Negated(Own):
    def step(self, token, state):
        logits, state = super().step(token, state)
        return -logits, state


class NoNumber(Own):
    def step(self, token, state):
        logits, state = super().step(token, state)
        return math.nan * logits, state


class OnlyLogits(Own):
    def step(self, token, state):
        return super().step(token, state)[0]


class Three(Own):
    def step(self, token, state):
        return (*super().step(token, state), None)


class OfLastPosition(Own):
    def forward(self, inputs):
        return super().forward(inputs)[:, -1]


class OfFirstPosition(Own):
    def last_state(self, inputs):
        return next(iter(self.states(inputs)))[:, 0]


class OfAllPositions(Own):
    def last_state(self, inputs):
        return torch.cat(list(self.states(inputs)), 1)


class Pair(Own):
    def initial_state(self, batch_size):
        return torch.zeros(batch_size, 2), torch.zeros(batch_size, 2)


class Unread(Own):
    def __init__(self) -> None:
        super().__init__()
        self.head = self.readout
        self.readout = None


FAULTS = {
    Negated: r"Negated\.step: expected the logits of forward at the same position, got different logits",
    NoNumber: r"NoNumber\.step: expected the logits of forward",
    OnlyLogits: r"OnlyLogits\.step: expected a tuple of logits \[B, Y\] and the next state .*, got Tensor; return",
    Three: r"Three\.step: expected a tuple of logits \[B, Y\] and the next state \[B, D\], got a tuple of 3",
    OfLastPosition: r"OfLastPosition\.forward: expected logits of shape .*, an answer to each prefix, got \[3, 2\]",
    OfFirstPosition: r"OfFirstPosition\.last_state: expected the logits of forward at the same position, got different",
    OfAllPositions: r"OfAllPositions\.last_state: expected logits \[B, Y\] from readout, here \[3, 2\], got",
    Pair: r"Pair\.initial_state: expected states \[B, D\], here \[3, any\], got tuple",
    Unread: r"Unread\.readout: expected a module that maps states \[B, D\] to logits \[B, Y\], got none",
}


def test_a_model_whose_methods_agree_is_taken() -> None:
    check_consistent(Own(), TASK)


@pytest.mark.parametrize("kind", FAULTS)
def test_methods_that_do_not_fit_together_are_named(kind: type[Own]) -> None:
    with pytest.raises(ValueError, match=FAULTS[kind]):
        certify(kind(), TASK)
