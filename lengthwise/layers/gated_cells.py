"""Recurrent layers of torch's gated cells."""

from typing import Literal

import torch
from torch import Tensor, nn

from lengthwise.devices import in_full_precision
from lengthwise.layers.initialization import draw_uniformly
from lengthwise.layers.recurrent_layer import BoundedLayer, Features, State
from lengthwise.ops.intervals import Intervals
from lengthwise.validation import check_sizes


class GRULayer(BoundedLayer):
    """torch's gated recurrent unit: h_t = (1 - z_t) n_t + z_t h_{t-1}, elementwise; the output is h_t.

    Gates are r_t, z_t = sigmoid(W u_t + U h_{t-1} + b). The new part is n_t = tanh(W u_t + b + r_t (U h_{t-1} + c)).
    Each of r, z and n has its own W, U and biases.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder" (EMNLP 2014).
    Differs from the source: as in torch, the reset gate multiplies U h + c, not h.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.d_model = d_model
        self.state_size = d_model
        self.cell = nn.GRU(d_model, d_model, batch_first=True)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_uniformly(self.cell.parameters(), self.d_model, generator)

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        # torch's kernels for GPUs reject states that are not contiguous.
        outputs, after = self.cell(features, state[None].contiguous())
        return outputs, after[0]

    def bounds(self, features: Intervals, state: Intervals) -> tuple[Intervals, Intervals]:
        after = gru_bounds(self.cell, 0, features, state)
        return after, after


class LSTMLayer(BoundedLayer):
    """torch's long short-term memory: c_t = f_t c_{t-1} + i_t g_t, elementwise; the output is h_t = o_t tanh(c_t).

    Gates are i_t, f_t, o_t = sigmoid(W u_t + U h_{t-1} + b), and the new content is g_t = tanh(W u_t + U h_{t-1} + b).
    Each of i, f, o and g has its own W, U and b. The state is the pair (h_t, c_t).

    Source: Hochreiter and Schmidhuber, "Long short-term memory" (Neural Computation, 1997).
    Differs from the source: as in torch, it has forget gates.
    """

    def __init__(self, *, d_model: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.d_model = d_model
        self.state_size = 2 * d_model
        self.cell = nn.LSTM(d_model, d_model, batch_first=True)

    def reset_parameters(self, generator: torch.Generator) -> None:
        draw_uniformly(self.cell.parameters(), self.d_model, generator)

    @in_full_precision
    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        hidden, cell = (part[None].contiguous() for part in state.chunk(2, 1))
        outputs, after = self.cell(features, (hidden, cell))
        return outputs, torch.cat([part[0] for part in after], 1)

    def bounds(self, features: Intervals, state: Intervals) -> tuple[Intervals, Intervals]:
        output, content = lstm_bounds(self.cell, 0, features, *state.split(self.d_model))
        return output, Intervals.joined([output, content])


def rnn_bounds(core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals) -> Intervals:
    """Return bounds on h' = f(W x + U h + b), where f is the `nonlinearity` of torch's RNN, tanh or ReLU."""
    total = Intervals.total(*_terms(core, "ih", layer, features), *_terms(core, "hh", layer, hidden))
    return total.tanh() if core.nonlinearity == "tanh" else total.relu()


def gru_bounds(core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals) -> Intervals:
    """Return bounds on h' = (1 - z) n + z h.

    The gates are r, z = sigmoid(W x + U h + b), and the new part is n = tanh(W x + b + r (U h + c)), as in `GRULayer`.
    """
    gates, last = slice(2 * core.hidden_size), slice(2 * core.hidden_size, None)
    # One `total` bounds the errors of both products together, because kernels may add their terms in any order.
    both = Intervals.total(*_terms(core, "ih", layer, features, gates), *_terms(core, "hh", layer, hidden, gates))
    reset, update = both.sigmoid().split(core.hidden_size)
    scaled = reset * Intervals.total(*_terms(core, "hh", layer, hidden, last))
    new = Intervals.total(*_terms(core, "ih", layer, features, last), (scaled, None)).tanh()
    return new.mixed(hidden, update)


def lstm_bounds(
    core: nn.RNNBase, layer: int, features: Intervals, hidden: Intervals, content: Intervals
) -> tuple[Intervals, Intervals]:
    """Return bounds on h' = o tanh(c') and c' = f c + i g.

    The gates are i, f, o = sigmoid(W x + U h + b), and the new content is g = tanh(W x + U h + b).
    """
    total = Intervals.total(*_terms(core, "ih", layer, features), *_terms(core, "hh", layer, hidden))
    gates = total.split(core.hidden_size)
    enter, forget, leave = (gates[index].sigmoid() for index in (0, 1, 3))
    content = forget * content + enter * gates[2].tanh()
    return leave * content.tanh(), content


def _terms(
    core: nn.RNNBase, kind: Literal["ih", "hh"], layer: int, values: Intervals, rows: slice = slice(None)
) -> list[tuple[Intervals, Tensor | None]]:
    """Return W x and b if `kind` is "ih", or U h and b if it is "hh", as terms for `Intervals.total`.

    `rows` selects some rows of W or U and of b, for example the rows of one gate. Without biases, b is left out.
    """
    bias = core.get_parameter(f"bias_{kind}_l{layer}")[rows].to(values.low.dtype) if core.bias else None
    product = (values, core.get_parameter(f"weight_{kind}_l{layer}")[rows])
    return [product] if bias is None else [product, (Intervals.around(bias), None)]
