"""The layer of the log-depth recurrent unit: a binary operator on states, and a feed-forward block."""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.initialization import TRUNCATED, draw_truncated
from lengthwise.layers.tree_layers import FeedForward
from lengthwise.ops.tree import Merge
from lengthwise.validation import check_choice, check_sizes

Operator = Literal["mlp", "gated-sum", "linear"]

FEED_FORWARD_SCALE = 0.02
"""The ratio of the variance of a feed-forward block's weights to the variance of an operator's weights."""

MASKED_SCORE = -1e4
"""A score so low that its softmax weight next to other scores is exactly 0. The score is finite, so that in a window of
one part, a masked part still gets all weight."""


class MLPOperator(nn.Module):
    """The operator op(x, y) = L_3(L_1(w_x * x) + L_2(w_y * y)), with (w_x, w_y) = W_3 ReLU(W_2 ReLU(W_1 [x; y])).

    W_1 to W_3 map widths 2 D -> 2 D -> 4 D -> 2 D. All maps have biases, and L_1 to L_3 begin as the identity.

    Source: the code of Pert, Alrajeh and Russo (2026), arXiv 2605.26035.
    Differs from the source: no difference.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.gates = nn.ModuleList(
            [
                nn.Linear(2 * d_model, 2 * d_model),
                nn.Linear(2 * d_model, 4 * d_model),
                nn.Linear(4 * d_model, 2 * d_model),
            ]
        )
        self.from_older, self.from_newer, self.to_merged = (nn.Linear(d_model, d_model) for _ in range(3))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for linear in self.gates:
            _draw(linear, generator)  # type: ignore[arg-type]  # ModuleList forgets the type of its modules
        for linear in (self.from_older, self.from_newer, self.to_merged):
            nn.init.eye_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, older: Float[Tensor, "*N D"], newer: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        first, second, third = self.gates
        gate_older, gate_newer = third(F.relu(second(F.relu(first(torch.cat([older, newer], -1)))))).chunk(2, -1)
        merged: Tensor = self.to_merged(self.from_older(gate_older * older) + self.from_newer(gate_newer * newer))
        return merged


class GatedSum(nn.Module):
    """The operator op(x, y) = g * x + (1 - g) * y, with g = sigmoid(W [x; y] + b).

    Source: the code of Pert, Alrajeh and Russo (2026), arXiv 2605.26035.
    Differs from the source: no difference.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.gate = nn.Linear(2 * d_model, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        _draw(self.gate, generator)

    def forward(self, older: Float[Tensor, "*N D"], newer: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        gate = torch.sigmoid(self.gate(torch.cat([older, newer], -1)))
        return gate * older + (1 - gate) * newer


class LinearOperator(nn.Module):
    """The operator op(x, y) = W [x; y] + b.

    Source: the code of Pert, Alrajeh and Russo (2026), arXiv 2605.26035.
    Differs from the source: no difference.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        self.map = nn.Linear(2 * d_model, d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        _draw(self.map, generator)

    def forward(self, older: Float[Tensor, "*N D"], newer: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        merged: Tensor = self.map(torch.cat([older, newer], -1))
        return merged


_OPERATORS: dict[Operator, type[MLPOperator | GatedSum | LinearOperator]] = {
    "mlp": MLPOperator,
    "gated-sum": GatedSum,
    "linear": LinearOperator,
}


class LogDepthLayer(nn.Module):
    """A merge of two states: z = op(x, y), then LayerNorm(z + W_2 ReLU(W_1 z)), with x the older and y the newer state.

    The setting `operator` selects op: an `MLPOperator`, a `GatedSum` or a `LinearOperator`. A state of zeros means "no
    symbol". Two such states merge to zeros, so positions before a string stay zero at every level. The layer is a tree
    layer (`lengthwise.ops.tree.TreeLayer`) of two heads with constant scores. One head copies the newer state, the
    other head copies the older state, and `output` merges the copies. `merge` computes the equation directly.

    Source: Pert, Alrajeh and Russo (2026), arXiv 2605.26035, by its code's equations.
    Differs from the source: as far as we know, only in windows that contain only zeros, which no answer in the source
        reads.
    """

    def __init__(self, *, d_model: int, operator: Operator) -> None:
        super().__init__()
        check_sizes(d_model=d_model)
        check_choice("operator", operator, get_args(Operator))
        self.d_model = d_model
        self.operator = _OPERATORS[operator](d_model)
        self.feed_forward = FeedForward(d_model, 4 * d_model)
        self.norm = nn.LayerNorm(d_model)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw operator weights with variance 2 / (inputs + outputs).

        Feed-forward weights have 0.02 times this variance. L_1 to L_3 of an `MLPOperator` become the identity.
        """
        self.operator.reset_parameters(generator)
        for linear in (self.feed_forward.widen, self.feed_forward.narrow):
            _draw(linear, generator, FEED_FORWARD_SCALE)
        self.norm.reset_parameters()

    def merge(self, older: Float[Tensor, "*N D"], newer: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the state of a window of two states, by the equation in the docstring of `LogDepthLayer`."""
        mixed = self.operator(older, newer)
        merged = self.norm(mixed + self.feed_forward(mixed, F.relu))
        has_symbols = ((older != 0) | (newer != 0)).any(-1, keepdim=True)
        return torch.where(has_symbols, merged, torch.zeros_like(merged))

    def fused(self) -> Merge:
        """Return a `Merge` that calls `merge` directly, and so skips the attention heads that copy both states."""

        def merge(states: Tensor, windows: Int64[Tensor, "C M"] | None) -> Tensor:
            if windows is None:
                return self.merge(states[0], states[1])
            return self.merge(states.index_select(0, windows[0]), states.index_select(0, windows[1]))

        return merge

    def window_bias(self) -> Float[Tensor, "H C"]:
        eye = torch.eye(2, dtype=self.norm.weight.dtype, device=self.norm.weight.device)
        return (1 - eye) * MASKED_SCORE

    def normalize(self, states: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the states unchanged, because this layer normalizes its residual sums instead."""
        return states

    def query(self, normed: Float[Tensor, "*N D"]) -> Float[Tensor, "*N H E"]:
        """Return zeros as queries, because the scores of attention do not depend on the states here."""
        return torch.zeros_like(normed)[..., None, :].expand(*normed.shape[:-1], 2, self.d_model)

    def key_value(self, normed: Float[Tensor, "*N D"]) -> tuple[Float[Tensor, "*N H E"], Float[Tensor, "*N H E"]]:
        return self.query(normed), normed[..., None, :].expand(*normed.shape[:-1], 2, self.d_model)

    def output(self, newest: Float[Tensor, "*N D"], attended: Float[Tensor, "*N E"]) -> Float[Tensor, "*N D"]:
        newer, older = attended.chunk(2, -1)
        return self.merge(older, newer)


def _draw(linear: nn.Linear, generator: torch.Generator, scale: float = 1.0) -> None:
    """Draw weights of variance 2 scale / (inputs + outputs) from a truncated normal distribution; the bias is 0."""
    draw_truncated(linear, (2 * scale / (linear.in_features + linear.out_features)) ** 0.5 / TRUNCATED, generator)
