"""The selective state-space layers of Mamba and Mamba-2, whose decays depend on the input."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears, draw_steps, draw_uniformly
from lengthwise.layers.recurrent_layer import Features, RecurrentLayer, Rows, State, Table, TabledLayer, at_rows
from lengthwise.layers.short_convolution import convolution_of
from lengthwise.ops.outer_products import outer_products
from lengthwise.ops.selective_scan import Eigenvalues, decays_of, selective_scan
from lengthwise.validation import check_choice, check_divisor, check_kind, check_sizes


class SelectiveLayer(RecurrentLayer):
    """The common parts of Mamba's layers: a recurrence of 2 D channels with real decays, whose output y is gated.

    The output of the layer is W_out(y * SiLU(z)). Subclasses compute y and z.

    Decays are exp(s r) in [0, 1], or 2 exp(s r) - 1 in [-1, 1] if `eigenvalues` is `"signed"`. The step s > 0 depends
    on the input, and the rate r < 0 is learned. The state before the first symbol is 0, or learned if `learned_start`.
    With `conv` above 0, a convolution of this width with biases precedes the recurrence.

    Source: Grazzi, Siems, Zela, Franke, Hutter and Pontil, "Unlocking state-tracking in linear RNNs through negative
        eigenvalues" (ICLR 2025), section 4, for signed decays.
    Differs from the source: the state before the first symbol can be learned.

    Raises:
        ValueError: `eigenvalues` is neither `"positive"` nor `"signed"`.
    """

    def __init__(
        self,
        *,
        d_model: int,
        d_state: int,
        state_shape: tuple[int, ...],
        num_convolved: int,
        conv: int = 0,
        eigenvalues: Eigenvalues = "positive",
        learned_start: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(d_model=d_model, d_state=d_state)
        check_choice("eigenvalues", eigenvalues, get_args(Eigenvalues))
        check_kind("learned_start", learned_start, bool, "True or False")
        self.d_model = d_model
        self.width = 2 * d_model
        self.d_state = d_state
        self.eigenvalues = eigenvalues
        self.convolution = convolution_of(num_convolved, conv)
        self.convolution_bias = nn.Parameter(torch.empty(num_convolved)) if conv else None
        self.sizes = [math.prod(state_shape), self.convolution.state_size if self.convolution else 0]
        self.state_size = sum(self.sizes)
        self.start = nn.Parameter(torch.empty(state_shape)) if learned_start else None
        self.state_shape = state_shape
        self.output_map = nn.Linear(self.width, d_model, bias=False)

    @abstractmethod
    def decays(self, features: Float[Tensor, "B T D"]) -> Tensor:
        """Return the decays at every position, [B, T, ...]."""

    @abstractmethod
    def step_bias(self) -> Tensor:
        """Return the parameter that is added to a step before the softplus."""

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw matrices of n inputs uniformly within 1 / sqrt(n) of 0, and step sizes log-uniformly from 0.001 to 0.1.

        If the state before the first symbol is learned, it is drawn from N(0, 1).
        """
        draw_linears(self, generator)
        draw_steps(self.step_bias(), generator)
        if self.start is not None:
            nn.init.normal_(self.start, generator=generator)
        if self.convolution is not None and self.convolution_bias is not None:
            self.convolution.reset_parameters(generator)
            draw_uniformly([self.convolution_bias], self.convolution.width, generator)

    def initial_state(self, like: Float[Tensor, "B D"]) -> Float[Tensor, "B Z"]:
        if self.start is None:
            return super().initial_state(like)
        return torch.cat([self.start.flatten().expand(len(like), -1), like.new_zeros(len(like), self.sizes[1])], 1)

    def convolved(
        self, x: Float[Tensor, "B T X"], recent: Float[Tensor, "B _"]
    ) -> tuple[Float[Tensor, "B T X"], Float[Tensor, "B _"]]:
        """Return SiLU(x), or SiLU(conv(x)) if `conv` is above 0, and the last inputs, which the next call needs."""
        if self.convolution is not None and self.convolution_bias is not None:
            x, recent = self.convolution(x, recent)
            x = x + self.convolution_bias
        return F.silu(x), recent


class MambaLayer(SelectiveLayer, TabledLayer):
    r"""Mamba, with P decays for each of 2 D channels: h_t = a_t h_{t-1} + s_t b_t x_t, y_t = <c_t, h_t> + d x_t.

    (x, z) = W_in u, and x becomes SiLU(conv(x)). A linear map of x gives a vector p of ceil(D / 16) numbers, and the
    vectors b and c of P numbers each. All channels share b and c. Steps are s = softplus(W_s p + bias). If
    `eigenvalues` is `"signed"`, only the decays a_t change, and the input term s_t b_t x_t does not.

    Source: Gu and Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023), section 3, and its
        code.
    Differs from the source: as in `SelectiveLayer`.
    """

    def __init__(self, *, d_model: int, d_state: int, **shared: Any) -> None:
        """Make the layer; `shared` are the settings `conv`, `eigenvalues` and `learned_start` of `SelectiveLayer`."""
        check_sizes(d_model=d_model, d_state=d_state)
        inner = 2 * d_model
        super().__init__(d_model=d_model, d_state=d_state, state_shape=(d_state, inner), num_convolved=inner, **shared)
        self.rank = math.ceil(d_model / 16)
        self.input_map = nn.Linear(d_model, 2 * self.width, bias=False)
        self.selection = nn.Linear(self.width, self.rank + 2 * d_state, bias=False)
        self.step_map = nn.Linear(self.rank, self.width)
        self.log_rate = nn.Parameter(torch.empty(d_state, self.width))
        self.skip = nn.Parameter(torch.empty(self.width))

    def step_bias(self) -> Tensor:
        return self.step_map.bias

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw as in `SelectiveLayer`; the P rates of a channel become -1, ..., -P, and the factors d of x become 1."""
        super().reset_parameters(generator)
        with torch.no_grad():
            self.log_rate.copy_(torch.arange(1.0, self.d_state + 1).log()[:, None].expand_as(self.log_rate))
        nn.init.ones_(self.skip)

    def selected(
        self, x: Float[Tensor, "*M E"]
    ) -> tuple[Float[Tensor, "*M E"], Float[Tensor, "*M P"], Float[Tensor, "*M P"]]:
        """Return the steps s and the vectors b and c of the recurrence, which are computed from x."""
        low, b, c = self.selection(x).split([self.rank, self.d_state, self.d_state], -1)
        return F.softplus(self.step_map(low)), b, c

    def decays(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B T P E"]:
        x, _ = self.input_map(features).chunk(2, -1)
        x, _ = self.convolved(x, x.new_zeros(len(x), self.sizes[1]))
        steps, _, _ = self.selected(x)
        return decays_of(-steps[:, :, None] * self.log_rate.exp(), self.eigenvalues)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        before, recent = state.split(self.sizes, 1)
        x, gate = self.input_map(features).chunk(2, -1)
        x, recent = self.convolved(x, recent)
        return self._scanned(self._scan_inputs(x, gate), before, recent, None)

    def through_rows(self, table: Table, rows: Rows, state: State) -> tuple[Features, State]:
        # A convolution mixes neighbors, so its results differ between positions with the same row.
        if self.convolution is not None:
            return self.forward(F.embedding(rows, table), state)
        before, recent = state.split(self.sizes, 1)
        x, gate = self.input_map(table).chunk(2, -1)
        made = self._scan_inputs(F.silu(x), gate)
        return self._scanned(at_rows(made, rows), before, recent, (made[0], rows))

    def _scan_inputs(self, x: Float[Tensor, "*M E"], gate: Float[Tensor, "*M E"]) -> tuple[Tensor, ...]:
        """Return the inputs of the scan, s, s x, b and c, followed by the skip d x and the gate SiLU(z)."""
        steps, b, c = self.selected(x)
        return steps, steps * x, b, c, self.skip * x, F.silu(gate)

    def _scanned(
        self,
        scan_inputs: Sequence[Tensor],
        before: Tensor,
        recent: Tensor,
        rows: tuple[Tensor, Tensor] | None,
    ) -> tuple[Features, State]:
        steps, values, b, c, skipped, gate = scan_inputs
        before = before.unflatten(1, self.state_shape)
        y, after = selective_scan(
            steps, -self.log_rate.exp(), values, b, c, before, eigenvalues=self.eigenvalues, rows=rows
        )
        outputs: Tensor = self.output_map((y + skipped) * gate)
        return outputs, torch.cat([after.flatten(1), recent], 1)


class Mamba2Layer(SelectiveLayer):
    r"""Mamba-2, with one decay for each of H heads: S_t = a_t S_{t-1} + s_t b_t x_t^T, y_t = S_t^T c_t + d x_t.

    A head has 2 D / H channels. (z, x, b, c, s) = W_in u. Then x, b and c become SiLU(conv(.)), and s becomes
    softplus(s + bias). All heads share b and c, which have P numbers each. The gate comes before the norm:
    W_out RMSNorm(y * SiLU(z)).

    Source: Dao and Gu, "Transformers are SSMs" (ICML 2024), section 7, and its code.
    Differs from the source: as in `MambaLayer`. The layer is given the number of heads. The source's code is given the
        number of channels of a head instead.
    """

    def __init__(self, *, d_model: int, d_state: int, num_heads: int, **shared: Any) -> None:
        """Make the layer; `shared` are the settings `conv`, `eigenvalues` and `learned_start` of `SelectiveLayer`."""
        check_sizes(d_model=d_model, d_state=d_state)
        check_divisor("num_heads", num_heads, 2 * d_model, "2 d_model")
        super().__init__(
            d_model=d_model,
            d_state=d_state,
            state_shape=(num_heads, d_state, 2 * d_model // num_heads),
            num_convolved=2 * d_model + 2 * d_state,
            **shared,
        )
        self.num_heads = num_heads
        self.input_map = nn.Linear(d_model, 2 * self.width + 2 * d_state + num_heads, bias=False)
        self.bias = nn.Parameter(torch.empty(num_heads))
        self.log_rate = nn.Parameter(torch.empty(num_heads))
        self.skip = nn.Parameter(torch.empty(num_heads))
        self.norm = nn.RMSNorm(self.width, eps=1e-5)

    def step_bias(self) -> Tensor:
        return self.bias

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw rates uniformly from -16 to -1; the factors d of x and the weights of the norm become 1."""
        super().reset_parameters(generator)
        with torch.no_grad():
            self.log_rate.uniform_(1, 16, generator=generator).log_()
        nn.init.ones_(self.skip)
        self.norm.reset_parameters()

    def selected(self, features: Float[Tensor, "B T D"]) -> tuple[Tensor, Tensor, Float[Tensor, "B T H"]]:
        """Return the gate's input z, one tensor with x, b and c before their convolution, and the steps s."""
        mixed = self.width + 2 * self.d_state
        gate, rest, steps = self.input_map(features).split([self.width, mixed, self.num_heads], -1)
        return gate, rest, F.softplus(steps + self.bias)

    def decays(self, features: Float[Tensor, "B T D"]) -> Float[Tensor, "B T H"]:
        _, _, steps = self.selected(features)
        return decays_of(-steps * self.log_rate.exp(), self.eigenvalues)

    def forward(self, features: Features, state: State) -> tuple[Features, State]:
        before, recent = state.split(self.sizes, 1)
        gate, mixed, steps = self.selected(features)
        mixed, recent = self.convolved(mixed, recent)
        x, b, c = mixed.split([self.width, self.d_state, self.d_state], -1)
        x = x.unflatten(-1, (self.num_heads, -1))
        y, after = outer_products(
            decays_of(-steps * self.log_rate.exp(), self.eigenvalues),
            b[:, :, None],
            steps[..., None] * x,
            c[:, :, None],
            before.unflatten(1, self.state_shape),
        )
        y = (y + self.skip[:, None] * x).flatten(2)
        return self.output_map(self.norm(y * F.silu(gate))), torch.cat([after.flatten(1), recent], 1)
