"""torch's own gated cells as layers."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_uniformly
from lengthwise.layers.recurrent_layer import RecurrentLayer


class GRULayer(RecurrentLayer):
    """torch's gated recurrent unit.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder" (EMNLP 2014). Differs from the
        source: as torch does, the reset gate comes after the product with the state.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.state_size = d_model
        self.cell = nn.GRU(d_model, d_model, batch_first=True)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_uniformly(self.cell.parameters(), self.d_model, generator)

    def forward(
        self, features: Float[Tensor, "B T D"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B Z"]]:
        outputs, after = self.cell(features, state[None].contiguous())
        return outputs, after[0]


class LSTMLayer(RecurrentLayer):
    """torch's long short-term memory.

    Source: Hochreiter and Schmidhuber, "Long short-term memory" (Neural Computation, 1997). Differs from the source:
        as torch does, with forget gates.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.state_size = 2 * d_model
        self.cell = nn.LSTM(d_model, d_model, batch_first=True)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_uniformly(self.cell.parameters(), self.d_model, generator)

    def forward(
        self, features: Float[Tensor, "B T D"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B Z"]]:
        hidden, cell = (part[None].contiguous() for part in state.chunk(2, 1))
        outputs, after = self.cell(features, (hidden, cell))
        return outputs, torch.cat([part[0] for part in after], 1)
