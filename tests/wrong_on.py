"""Nets that are right on every string except on a few, which are listed or of one kind."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.models.base import ModelConfig, RecurrentModel, SequenceModel
from lengthwise.models.machine import TransducerModel
from lengthwise.tasks.base import RegularTask


def wrong_on(task: RegularTask, *strings: Sequence[int]) -> TransducerModel:
    """A machine that answers exactly these strings wrongly, each by the next class."""
    right = task.transducer
    # The states are those of the right machine, and one for each prefix of a string, [prefix].
    prefixes = sorted({tuple(string[:end]) for string in strings for end in range(len(string) + 1)}, key=len)
    number = {prefix: right.num_states + index for index, prefix in enumerate(prefixes)}
    table, outputs = right.semiautomaton.table.tolist(), right.outputs.tolist()
    for prefix in prefixes:
        state = int(right.semiautomaton.final_states(np.array([prefix], dtype=np.int64), right.start)[0])
        row = [
            number.get((*prefix, symbol), right.semiautomaton.table[state, symbol]) for symbol in range(len(table[0]))
        ]
        is_wrong = prefix in {tuple(string) for string in strings}
        table.append(row)
        outputs.append((right.outputs[state] + is_wrong) % len(task.classes))
    machine = Transducer(Semiautomaton(np.array(table), task.symbols), number[()], np.array(outputs))
    return TransducerModel(machine, task.classes)


class Streamed(RecurrentModel):
    """The same machine, symbol by symbol."""

    def __init__(self, inner: TransducerModel) -> None:
        super().__init__()
        self.inner, self.readout = inner, inner.readout

    def reset_parameters(self, generator):
        """There are none."""

    def initial_state(self, batch_size):
        return torch.full((batch_size, 1), float(self.inner.machine.start))

    def step(self, token, state):
        table = torch.from_numpy(self.inner.machine.semiautomaton.table.copy())
        state = table[state[:, 0].long(), token][:, None].float()
        return self.readout(state), state


class Lead(nn.Module):
    """Logits of class 1, from a sign and its size."""

    def forward(self, states):
        lead = states[..., 0] * states[..., 1]
        return torch.stack([-lead, lead], -1)


class WrongNearPattern(SequenceModel):
    """Is the last symbol b? The lead falls with the agreement of the first symbols with a random pattern.

    The answer is wrong from `threshold` on; the agreement is a sum of 60 signs, about 0 for most strings.
    """

    def __init__(self, threshold: int) -> None:
        super().__init__()
        self.config, self.readout, self.threshold = ModelConfig(), Lead(), threshold
        generator = torch.Generator().manual_seed(5)
        self.register_buffer("pattern", 2.0 * torch.randint(2, (60,), generator=generator) - 1)

    def reset_parameters(self, generator):
        """There are none."""

    def states(self, inputs):
        signs = 2.0 * inputs - 1
        length = min(inputs.shape[1], len(self.pattern))
        agreement = (signs[:, :length] * self.pattern[:length]).cumsum(1)
        agreement = torch.cat([agreement, agreement[:, -1:].expand(-1, inputs.shape[1] - length)], 1)
        return torch.stack([signs, self.threshold - agreement - 0.5], -1)

    def forward(self, inputs):
        return self.readout(self.states(inputs))

    def last_state(self, inputs):
        return self.states(inputs)[:, -1]
