"""torch's own gated cells as layers."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_uniformly
from lengthwise.layers.recurrent_layer import BoundedLayer
from lengthwise.ops.intervals import Intervals


class GRULayer(BoundedLayer):
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

    @in_full_precision
    def forward(
        self, features: Float[Tensor, "B T D"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B Z"]]:
        outputs, after = self.cell(features, state[None].contiguous())
        return outputs, after[0]

    def bounds(self, features: Intervals, state: Intervals) -> tuple[Intervals, Intervals]:
        after = gru_bounds(self.cell, 0, features, state)
        return after, after


class LSTMLayer(BoundedLayer):
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

    @in_full_precision
    def forward(
        self, features: Float[Tensor, "B T D"], state: Float[Tensor, "B Z"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B Z"]]:
        hidden, cell = (part[None].contiguous() for part in state.chunk(2, 1))
        outputs, after = self.cell(features, (hidden, cell))
        return outputs, torch.cat([part[0] for part in after], 1)

    def bounds(self, features: Intervals, state: Intervals) -> tuple[Intervals, Intervals]:
        output, content = lstm_bounds(self.cell, 0, features, *state.split(self.d_model))
        return output, Intervals.joined([output, content])


def rnn_bounds(core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals) -> Intervals:
    """h' = f(W x + U h + b), where f is the core's nonlinearity."""
    from_features, from_hidden = gates_of(core, layer, features, hidden)
    total = from_features[0] + from_hidden[0]
    return total.tanh() if core.nonlinearity == "tanh" else total.relu()


def gru_bounds(core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals) -> Intervals:
    """r, z = sigmoid(W x + U h + b); n = tanh(W x + b + r (U h + b)); h' = (1 - z) n + z h."""
    from_features, from_hidden = gates_of(core, layer, features, hidden)
    reset, update = ((one + another).sigmoid() for one, another in zip(from_features[:2], from_hidden[:2], strict=True))
    new = (from_features[2] + reset * from_hidden[2]).tanh()
    return new.mixed(hidden, update)


def lstm_bounds(
    core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals, content: Intervals
) -> tuple[Intervals, Intervals]:
    """i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b); c' = f c + i g, h' = o tanh(c'): h' and c'."""
    gates = [one + another for one, another in zip(*gates_of(core, layer, features, hidden), strict=True)]
    enter, forget, leave = (gates[index].sigmoid() for index in (0, 1, 3))
    content = forget * content + enter * gates[2].tanh()
    return leave * content.tanh(), content


def gates_of(
    core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals
) -> tuple[list[Intervals], list[Intervals]]:
    """Bounds on W x + b and on U h + b in one of a core's layers, gate by gate."""
    images = []
    for kind, values in (("ih", features), ("hh", hidden)):
        bias = core.get_parameter(f"bias_{kind}_l{layer}") if core.bias else None
        image = values.linear(core.get_parameter(f"weight_{kind}_l{layer}"), bias)
        images.append(image.split(core.hidden_size))
    return images[0], images[1]
