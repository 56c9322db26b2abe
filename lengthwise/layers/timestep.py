"""Gains and gates of a looped layer: either functions of the loop's number, or the same in all loops."""

from abc import ABC, abstractmethod
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.transformer_layer import Scales
from lengthwise.ops.sinusoids import Time, check_count, timestep_sinusoids
from lengthwise.validation import check_choice, check_sizes

NUM_FREQUENCIES = 256
"""The number of sines and cosines that encode a loop's number, for every width of the model."""


Gates = Literal["closed", "open"]
"""The value of gates at the start of training. `"closed"` gates are 0, so a loop does nothing. `"open"` gates are 1."""


class LoopScales(nn.Module, ABC):
    """The gains and gates of every loop. Initially, gains are 1, and gates are 0 (`"closed"`) or 1 (`"open"`)."""

    gates: Gates = "closed"

    @abstractmethod
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    @abstractmethod
    def raw(self, num_loops: int) -> Float[Tensor, "R 4 D"]:
        """Return, for R loops, the gains minus 1, then the gates minus their initial value (0 or 1)."""

    def forward(self, num_loops: int) -> list[Scales]:
        """Return the gains and gates of each loop; all loops are computed at once."""
        check_count("num_loops", num_loops)
        gains, gates = self.raw(num_loops).chunk(2, 1)
        if self.gates == "open":
            gates = 1 + gates
        return [Scales(*gain, *gate) for gain, gate in zip((1 + gains).unbind(0), gates.unbind(0), strict=True)]


class TimestepScales(LoopScales):
    """Gains and gates that are functions of the timestep encoding. More loops need no more parameters.

    Loop r = 0, 1, ... has sinusoids e(r) of 256 numbers (`lengthwise.ops.sinusoids`), and the encoding TE(r) = W_2
    SiLU(W_1 e(r) + b_1) + b_2. Gains a and gates g satisfy (a_1 - 1, a_2 - 1, g_1, g_2)(r) = W SiLU(TE(r)) + b, where W
    and b start at 0. The weights and biases are 5 D^2 + 262 D parameters. With time `"fraction"`, r / R replaces r, so
    the net can recognize the last of any number of loops. With gates `"open"`, g_1 - 1 and g_2 - 1 replace g_1 and g_2.

    Source: Xu and Sato (2024), section 4.2, and their code.
    Differs from the source: time `"fraction"` and gates `"open"` are ours. The size of e(r), 256 for every D, is from
        the code.
    """

    def __init__(self, *, d_model: int, time: Time = "index", gates: Gates = "closed") -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        check_choice("time", time, get_args(Time))
        check_choice("gates", gates, get_args(Gates))
        self.time, self.gates = time, gates
        self.encoding = nn.Sequential(nn.Linear(NUM_FREQUENCIES, d_model), nn.SiLU(), nn.Linear(d_model, d_model))
        self.heads = nn.Linear(d_model, 4 * d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_linears(self.encoding, generator)
        # With zeros, all loops start with the same gains and gates.
        nn.init.zeros_(self.heads.weight)
        nn.init.zeros_(self.heads.bias)

    def raw(self, num_loops: int) -> Float[Tensor, "R 4 D"]:
        sinusoids = timestep_sinusoids(num_loops, NUM_FREQUENCIES, self.time).to(self.heads.weight)
        return torch.unflatten(self.heads(F.silu(self.encoding(sinusoids))), -1, (4, -1))


class ConstantScales(LoopScales):
    """Learned gains and gates that all loops share: the baseline for the timestep encoding.

    Source: ours. The published looped model without the encoding is not a baseline for the encoding alone. It also
        differs in the norm for decision trees, and in the norm and the activation for dynamic programming.
    """

    def __init__(self, *, d_model: int, gates: Gates = "closed") -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        check_choice("gates", gates, get_args(Gates))
        self.gates = gates
        self.shared = nn.Parameter(torch.empty(4, d_model))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.zeros_(self.shared)

    def raw(self, num_loops: int) -> Float[Tensor, "R 4 D"]:
        return self.shared.expand(num_loops, -1, -1)
