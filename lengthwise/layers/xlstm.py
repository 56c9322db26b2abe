"""The two layers of xLSTM: sLSTM, whose output is fed back, and mLSTM, a matrix memory without feedback."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, Rows, State, Table, TabledLayer, at_rows
from lengthwise.layers.short_convolution import convolution_of
from lengthwise.ops.mlstm import mlstm
from lengthwise.ops.slstm import MINIMUM, slstm
from lengthwise.validation import check_divisor, check_sizes

MAP_WIDTH = 4
"""The size of a block in the block-diagonal maps that compute the queries, keys and values of mLSTM."""


class SLSTMLayer(RecurrentLayer):
    r"""The layer of sLSTM, whose gates are (i, f, z, o)_t = W u_t + R h_{t-1} + b.

    c = sigmoid(f) c' + e^i tanh(z), n = sigmoid(f) n' + e^i, h = sigmoid(o) c / n, where c' and n' are the previous
    values. The output is a group norm of h with one group for each head. R is block-diagonal with one block for each
    head. The state is h, c / n and log n (`lengthwise.ops.slstm`). With `conv` above 0, i and f are computed from
    SiLU(conv(u)) instead of u.

    Source: Beck et al., "xLSTM: extended long short-term memory" (NeurIPS 2024), section 2.2, and its code.
    Differs from the source: W is dense, whereas the code has a block for each head. The norm has a bias, and the
        convolution has no bias. Every layer starts with the biases of the code's first layer.
    """

    def __init__(self, *, d_model: int, num_heads: int, conv: int = 0) -> None:
        super().__init__()
        check_divisor("num_heads", num_heads, d_model)
        self.d_model = d_model
        self.num_heads, self.width = num_heads, d_model // num_heads
        self.convolution = convolution_of(d_model, conv)
        self.sizes = [3 * d_model, self.convolution.state_size if self.convolution else 0]
        self.state_size = sum(self.sizes)
        self.input_map = nn.Linear(d_model, 4 * d_model)
        self.feedback = nn.Parameter(torch.empty(4, num_heads, self.width, self.width))
        self.norm = nn.GroupNorm(num_heads, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the input map W from N(0, 2 / (5 D)), and set the feedback R to 0.

        Biases of the gate f fall from 5 at a head's first unit to -7 at its last unit. All other biases become 0.
        """
        draw_by_inputs(self.input_map.weight, self.input_map.in_features, generator)
        nn.init.zeros_(self.feedback)
        nn.init.zeros_(self.input_map.bias)
        share = torch.arange(self.width) / max(1, self.width - 1)
        with torch.no_grad():
            self.input_map.bias.unflatten(0, (4, self.num_heads, self.width))[1] = 5 - 12 * share**0.3
        self.norm.reset_parameters()
        if self.convolution is not None:
            self.convolution.reset_parameters(generator)

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        """Return the state with h = 0, c / n = 0 and `MINIMUM` for log n."""
        nothing = torch.zeros_like(like)
        return torch.cat([nothing, nothing, nothing + MINIMUM, like.new_zeros(len(like), self.sizes[1])], 1)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        before, recent = state.split(self.sizes, 1)
        if self.convolution is None:
            gates = self.input_map(features)
        else:
            smoothed, recent = self.convolution(features, recent)
            parts = zip(
                (F.silu(smoothed), features), self.input_map.weight.chunk(2), self.input_map.bias.chunk(2), strict=True
            )
            gates = torch.cat([F.linear(made_of, weight, bias) for made_of, weight, bias in parts], -1)
        gates = gates.unflatten(-1, (4, self.num_heads, self.width))
        units = before.unflatten(1, (3, self.num_heads, self.width)).unbind(1)
        outputs, *after = slstm(gates, self.feedback, *units)
        normed = self.norm(outputs.flatten(2).flatten(0, 1)).unflatten(0, outputs.shape[:2])
        return normed, torch.cat([torch.stack(after, 1).flatten(1), recent], 1)


class MLSTMLayer(TabledLayer):
    r"""The layer of mLSTM: a matrix memory for each of H heads at twice the width of the features, a skip, and a gate.

    (x, z) = W u and c = SiLU(conv(x)). Queries and keys are computed from c, and values from x, by block-diagonal maps
    with blocks of 4 x 4. The gates i and f of a head are linear in queries, keys and values. `lengthwise.ops.mlstm`
    computes h, with keys divided by the square root of a head's width. The output is W_out ((norm(h) + skip * c) *
    SiLU(z)), where each head is normalized by itself.

    Source: Beck et al., "xLSTM: extended long short-term memory" (NeurIPS 2024), section 2.3, and its code.
    Differs from the source: as in `lengthwise.ops.mlstm`. The convolution has no bias, and the norm has a bias. The
        code always has a convolution. Without a convolution, c is SiLU(x) here.
    """

    def __init__(self, *, d_model: int, num_heads: int, conv: int = 0, num_blocks: int = 1) -> None:
        """Make the layer of a model with `num_blocks` blocks; the more blocks, the smaller W_out is initially."""
        super().__init__()
        check_sizes(d_model=d_model, num_blocks=num_blocks)
        inner = 2 * d_model
        if inner % MAP_WIDTH:
            raise ValueError(f"d_model: expected an even number, for blocks of 4 x 4, got {d_model}; add 1")
        check_divisor("num_heads", num_heads, inner, "2 d_model")
        self.d_model = d_model
        self.num_heads = num_heads
        self.width = inner // num_heads
        self.num_blocks = num_blocks
        self.convolution = convolution_of(inner, conv)
        recent = self.convolution.state_size if self.convolution else 0
        self.sizes = [num_heads * self.width * (self.width + 1), num_heads, recent]
        self.state_size = sum(self.sizes)
        self.input_map = nn.Linear(d_model, 2 * inner, bias=False)
        self.maps = nn.Parameter(torch.empty(3, inner // MAP_WIDTH, MAP_WIDTH, MAP_WIDTH))
        self.gates = nn.Linear(3 * inner, 2 * num_heads)
        self.norm = nn.GroupNorm(num_heads, inner)
        self.skip = nn.Parameter(torch.empty(inner))
        self.output_map = nn.Linear(inner, d_model, bias=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the output map W_out from N(0, 4 / (D n^2)), where n is the number of blocks of the model.

        The input map W and the 4 x 4 blocks are drawn from N(0, 2 / (5 D)). Weights of gates become 0. Biases of the
        gate i are drawn from N(0, 0.01), and biases of the gate f rise from 3 to 6 along the heads.
        """
        d_model = self.input_map.in_features
        for weight in (self.input_map.weight, self.maps):
            draw_by_inputs(weight, d_model, generator)
        nn.init.normal_(self.output_map.weight, std=2 / self.num_blocks / math.sqrt(d_model), generator=generator)
        nn.init.zeros_(self.gates.weight)
        with torch.no_grad():
            i, f = self.gates.bias.chunk(2)
            i.normal_(0, 0.1, generator=generator)
            f.copy_(torch.linspace(3, 6, self.num_heads))
        self.norm.reset_parameters()
        nn.init.ones_(self.skip)
        if self.convolution is not None:
            self.convolution.reset_parameters(generator)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        x, z = self.input_map(features).chunk(2, -1)
        c, recent = x, state.split(self.sizes, 1)[2]
        if self.convolution is not None:
            c, recent = self.convolution(x, recent)
        return self._remembered(self._memory_inputs(x, F.silu(c), z), state, recent)

    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        if self.convolution is not None:
            # A convolution mixes neighbors, so its results differ between positions with the same row.
            return self.forward(F.embedding(rows, table), state)
        x, z = self.input_map(table).chunk(2, -1)
        return self._remembered(at_rows(self._memory_inputs(x, F.silu(x), z), rows), state, state[:, :0])

    def _memory_inputs(
        self, x: Float[Tensor, "*M E"], c: Float[Tensor, "*M E"], z: Float[Tensor, "*M E"]
    ) -> tuple[Tensor, ...]:
        """Return queries, keys, values, the gates i and f, skip * c and SiLU(z)."""
        q, k, v = (
            torch.einsum("...gi,gij->...gj", made_of.unflatten(-1, (-1, MAP_WIDTH)), maps).flatten(-2)
            for made_of, maps in zip((c, c, x), self.maps, strict=True)
        )
        gates = self.gates(torch.cat([q, k, v], -1))
        return q, k * self.width**-0.5, v, gates, self.skip * c, F.silu(z)

    def _remembered(self, memory_inputs: Sequence[Tensor], state: Tensor, recent: Tensor) -> tuple[Features, State]:
        *vectors, gates, skipped, gate = memory_inputs
        i, f = gates.chunk(2, -1)
        q, k, v = (each.unflatten(-1, (self.num_heads, self.width)) for each in vectors)
        sums, stabilizer, _ = state.split(self.sizes, 1)
        sums = sums.unflatten(1, (self.num_heads, self.width, self.width + 1))
        h, sums, stabilizer = mlstm(i, f, k, v, q, sums, stabilizer)
        normed = self.norm(h.flatten(2).flatten(0, 1)).unflatten(0, h.shape[:2])
        outputs: Tensor = self.output_map((normed + skipped) * gate)
        return outputs, torch.cat([sums.flatten(1), stabilizer, recent], 1)


def draw_by_inputs(weight: Tensor, num_inputs: int, generator: torch.Generator) -> None:
    """Draw the weights of a map with n = `num_inputs` inputs from N(0, 2 / (5 n))."""
    nn.init.normal_(weight, std=math.sqrt(2 / (5 * num_inputs)), generator=generator)
