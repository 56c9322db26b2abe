"""A layer of the linear recurrence x_t = A_t x_{t-1} + v_t, whose block-diagonal A_t is computed from the input."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.initialization import draw_linears
from lengthwise.ops.column_norm import (
    checked_power,
    clamped_columns,
    reflections,
    rescaled_blocks,
    stochastic_columns,
    unit_columns,
)
from lengthwise.ops.shapes import check_tensors
from lengthwise.validation import check_choice, check_divisor, check_sizes

Columns = Literal["stochastic", "reflected", "clamped", "rescaled", "unit"]
"""The kind of constraint on the columns of transition matrices (see `BlockLinearLayer`)."""

InputMap = Literal["two-layer", "linear"]
"""The kind of map from a symbol's features to the symbol's input v (see `BlockLinearLayer`)."""

FirstState = Literal["learned", "zero"]
"""The kind of state before the first symbol: learned, or zero."""

HARDENED = ("stochastic", "reflected")
"""The kinds of columns that become discrete at temperature 0. `"stochastic"` columns become one-hot vectors, and each
`"reflected"` block becomes the identity or a reflection. Layers of these kinds have v = 0."""


def num_transition_features(d_model: int, block_dim: int, columns: Columns) -> int:
    """Return the number of features that determine a symbol's transition matrix A."""
    check_choice("columns", columns, get_args(Columns))
    check_divisor("block_dim", block_dim, d_model)
    return d_model + d_model // block_dim if columns == "reflected" else d_model * block_dim


def num_symbol_features(d_model: int, block_dim: int, columns: Columns) -> int:
    """Return the number of features of a symbol that a `BlockLinearLayer` without hidden units reads."""
    return num_transition_features(d_model, block_dim, columns) + (0 if columns in HARDENED else d_model)


NORMALIZED = {"clamped": clamped_columns, "rescaled": rescaled_blocks, "unit": unit_columns}


class BlockLinearLayer(nn.Module):
    """The transitions A(e), inputs v(e) and first state of x_t = A x_{t-1} + v, in N blocks of S x S.

    With `hidden` units, a symbol's features e have width D = N S. Then A(e) = columns(W_2 ReLU(W_1 e)) and
    v(e) = W_4 ReLU(W_3 e), each with biases. Without `hidden` units, e has more features. `columns` is then applied to
    the first D S features (to the first D + N with `"reflected"` columns), and the result is A(e). If v is not 0, D
    more features follow, which are v(e).

    `columns` is one of these:

    - `"stochastic"`: each column is a distribution at `temperature`, v = 0, and the first state is N distributions.
    - `"reflected"`: each block is the identity or a reflection, and v = 0. At a `temperature` above 0, the block is
      between these two matrices (`reflections`).
    - `"clamped"`: columns have a p-norm of at most 1.
    - `"unit"`: columns have p-norm 1.
    - `"rescaled"`: each column's mean is subtracted, and each block is divided by the largest norm of its columns.

    `input_map` is `"two-layer"`, as above, or `"linear"`, which is v(e) = B e without a bias. `first_state` is
    `"learned"` or `"zero"`. `"stochastic"` and `"reflected"` columns accept neither `"linear"` nor `"zero"`.

    Source: Fan et al. (2024), eq. (5)-(6) (`"clamped"` columns and a `"linear"` input map), and the published code
        (`"rescaled"`, `"two-layer"`, `"learned"`, and the hidden layer that computes A).
    Differs from the source: eq. (5) names no first state, and `"zero"` is our choice. `"stochastic"` is ours.
        `"reflected"` and `"unit"` come from other papers (see `reflections` and `unit_columns`).

    Raises:
        ValueError: `columns`, `input_map` or `first_state` is unknown, `block_dim` does not divide `d_model`, or p is
            below 1 although the columns have p-norms.
    """

    temperature: Tensor
    first_state: Tensor

    def __init__(
        self,
        *,
        d_model: int,
        block_dim: int,
        columns: Columns,
        p: float,
        hidden: int,
        input_map: InputMap = "two-layer",
        first_state: FirstState = "learned",
    ) -> None:
        super().__init__()
        for argument, value, kind in (
            ("columns", columns, Columns),
            ("input_map", input_map, InputMap),
            ("first_state", first_state, FirstState),
        ):
            check_choice(argument, value, get_args(kind))
        check_divisor("block_dim", block_dim, d_model)
        if columns in NORMALIZED:
            checked_power(p)
        if hidden != 0:
            check_sizes(hidden=hidden)
        self.blocks = (d_model // block_dim, block_dim)
        self.columns, self.p = columns, p
        self.num_features = d_model if hidden else num_symbol_features(d_model, block_dim, columns)
        self.transition_map = nn.Sequential()
        if hidden:
            size = num_transition_features(d_model, block_dim, columns)
            self.transition_map.extend([nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, size)])
        self.input_map: nn.Sequential | None = None
        self.holds_inputs = not hidden and columns not in HARDENED
        if hidden and columns not in HARDENED:
            maps = [nn.Linear(d_model, d_model), nn.ReLU(), nn.Linear(d_model, d_model)]
            self.input_map = nn.Sequential(
                *maps if input_map == "two-layer" else [nn.Linear(d_model, d_model, bias=False)]
            )
        if first_state == "zero":
            self.register_buffer("first_state", torch.zeros(self.blocks), persistent=False)
        else:
            self.first_state = nn.Parameter(torch.empty(self.blocks))
        # A buffer is saved with the weights, so a trained layer keeps its last temperature.
        self.register_buffer("temperature", torch.tensor(1.0))

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw maps of n inputs uniformly within 1 / sqrt(n) of 0, and the first state from N(0, 1).

        The temperature becomes 1.
        """
        draw_linears(self, generator)
        if isinstance(self.first_state, nn.Parameter):
            nn.init.normal_(self.first_state, generator=generator)
        self.temperature.fill_(1.0)

    def transitions(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M N S S"]:
        check_tensors(features=features)
        if not features.ndim or features.shape[-1] != self.num_features:
            got = list(features.shape)
            raise ValueError(
                f"features: expected shape [..., {self.num_features}], got {got}; give vectors of {self.num_features} "
                "numbers"
            )
        if self.columns == "reflected":
            return reflections(
                self.transition_map(features).unflatten(-1, (self.blocks[0], -1)), float(self.temperature)
            )
        if self.holds_inputs:
            features = features[..., : -self.first_state.numel()]
        blocks = self.transition_map(features).unflatten(-1, (*self.blocks, self.blocks[1]))
        if self.columns == "stochastic":
            return stochastic_columns(blocks, float(self.temperature))
        return NORMALIZED[self.columns](blocks, self.p)

    def inputs(self, features: Float[Tensor, "*M D"]) -> Float[Tensor, "*M N S"]:
        if self.holds_inputs:
            return torch.unflatten(features[..., -self.first_state.numel() :], -1, self.blocks)
        if self.input_map is None:
            return features.new_zeros(*features.shape[:-1], *self.blocks)
        return torch.unflatten(self.input_map(features), -1, self.blocks)

    def initial_state(self, batch_size: int) -> Float[Tensor, "B N S"]:
        first: Tensor = self.first_state
        if self.columns == "stochastic":
            first = stochastic_columns(first[..., None], float(self.temperature))[..., 0]
        return first.expand(batch_size, -1, -1)
