"""The simple recurrent network of Elman."""

from collections.abc import Iterator, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_uniformly
from lengthwise.models.base import MODELS, Ids, Logits, ModelConfig, RecurrentModel, State, SymbolModel, Width
from lengthwise.models.capabilities import BoundsSteps, HasHiddenMatrices
from lengthwise.ops.intervals import Intervals

MAX_POSITIONS_PER_CHUNK = 1024
"""The largest number of positions whose states are in memory at once if only the last state is needed."""


class RNNConfig(ModelConfig):
    """The settings of an `RNN`: the width D of its state, and the activation of its recurrence."""

    d_model: Width = 64
    activation: Literal["tanh", "relu"] = "relu"


@MODELS.register("rnn")
class RNN(HasHiddenMatrices, BoundsSteps, SymbolModel, RecurrentModel):
    """Elman's simple recurrent network: x_t = f(W_h x_{t-1} + W_x e_t), logits W_o x_t + b_o.

    e_t is the one-hot vector of symbol t, f is ReLU or tanh, and x_0 is learned. `step` is the definition, and
    `forward` computes the same sums by `torch.nn.RNN`.

    Source: Elman, "Finding structure in time" (Cognitive Science, 1990).
    Differs from the source: the first state is learned, and the recurrence has no bias. Since e_t is one-hot, a bias
        would have the same effect as adding it to every column of W_x.
    """

    Config = RNNConfig
    config: RNNConfig
    readout: nn.Linear

    def build(self, vocab_size: int, num_classes: int) -> None:
        config = self.config
        self.recurrence = nn.RNN(
            vocab_size, config.d_model, nonlinearity=config.activation, bias=False, batch_first=True
        )
        self.first_state = nn.Parameter(torch.empty(config.d_model))
        self.readout = nn.Linear(config.d_model, num_classes)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again, uniformly within 1 / sqrt(D) of 0 for a state of width D."""
        draw_uniformly(self.parameters(), self.config.d_model, generator)

    @property
    def hidden_matrices(self) -> Sequence[nn.Parameter]:
        """Return the recurrent matrix W_h."""
        return [self.hidden_weight]

    @property
    def hidden_weight(self) -> nn.Parameter:
        """Return the recurrent matrix W_h, of shape [D, D] for a state of width D."""
        return self.recurrence.get_parameter("weight_hh_l0")

    @property
    def input_weight(self) -> nn.Parameter:
        """Return the input matrix W_x, of shape [D, V] for a state of width D and V symbols."""
        return self.recurrence.get_parameter("weight_ih_l0")

    def initial_state(self, batch_size: int) -> Float[Tensor, "B D"]:
        return self.first_state.expand(batch_size, -1)

    @in_full_precision
    def step(self, token: Ids, state: State) -> tuple[Logits, State]:
        self.check_step(token, state, self.recurrence.input_size)
        between = {"tanh": torch.tanh, "relu": torch.relu}[self.config.activation]
        state = between(state @ self.hidden_weight.T + self.input_weight.T[token])
        return self.readout(state), state

    def bounds_after(self, states: Intervals, token: Int64[Tensor, "*N"]) -> Intervals:
        inputs = Intervals.around(self.input_weight.T[token].to(states.low.dtype))
        between = Intervals.total((states, self.hidden_weight), (inputs, None))
        return between.tanh() if self.config.activation == "tanh" else between.relu()

    def states(self, inputs: Int64[Tensor, "B T"]) -> Iterator[Float[Tensor, "B _ D"]]:
        """Yield the states at every position, in chunks of positions."""
        self.check_inputs(inputs, self.recurrence.input_size)
        state = self.initial_state(len(inputs))
        for chunk in inputs.split(MAX_POSITIONS_PER_CHUNK, 1):
            one_hot = F.one_hot(chunk, self.recurrence.input_size).to(state.dtype)
            states = self._after(one_hot, state)
            state = states[:, -1]
            yield states

    @in_full_precision
    def _after(self, one_hot: Float[Tensor, "B _ V"], state: Float[Tensor, "B D"]) -> Float[Tensor, "B _ D"]:
        states: Tensor = self.recurrence(one_hot, state[None].contiguous())[0]
        return states
