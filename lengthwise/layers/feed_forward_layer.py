"""The feed-forward layer in a stack of recurrent layers. It has no memory."""

import torch
import torch.nn.functional as F
from torch import nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, State
from lengthwise.validation import check_sizes


class FeedForwardLayer(RecurrentLayer):
    """SwiGLU, y_t = W_o (SiLU(W_g z_t) * W_v z_t), position by position, without a state.

    W_g and W_v are [hidden, D], and W_o is [D, hidden]. The maps have no biases. If a published block has such a layer
    after its recurrence, `make_layers` of the model returns both layers.

    Source: Shazeer, "GLU variants improve Transformer" (2020), eq. (6), FFN_SwiGLU.
    Differs from the source: no difference.
    """

    def __init__(self, *, d_model: int, hidden: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, hidden=hidden)
        self.d_model = d_model
        self.state_size = 0
        self.gate = nn.Linear(d_model, hidden, bias=False)
        self.value = nn.Linear(d_model, hidden, bias=False)
        self.output = nn.Linear(hidden, d_model, bias=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw matrices with n inputs uniformly within 1 / sqrt(n) of 0."""
        draw_linears(self, generator)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        return self.output(F.silu(self.gate(features)) * self.value(features)), state
