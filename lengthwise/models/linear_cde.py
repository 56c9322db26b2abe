"""Structured linear controlled differential equations: linear recurrences whose transitions depend on the input."""

from collections.abc import Sequence
from types import MappingProxyType

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.layers.linear_cde import LinearCDELayer, Structure
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.models.base import MODELS, Width
from lengthwise.models.capabilities import HasPenalty
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN
from lengthwise.validation import check_divisor

LOW_RANK: tuple[Structure, ...] = ("low-rank", "low-rank-product")
"""The structures of the matrix A that use the setting `rank`."""


class LinearCDEConfig(StackedConfig):
    """The settings of a `LinearCDE`: width D, number of layers, and the structure of the matrix A.

    - `structure`: `"block"` has blocks of size `block_dim`. `"low-rank"` is a diagonal plus a sum of matrices of rank
      `rank`, one for each number of the input. `"low-rank-product"`, as in the published code, is a diagonal plus a
      single product whose two factors depend on the input.
    - `norm_penalty`: training adds this number times the norm of A to the loss.
    """

    used_with = MappingProxyType({"block_dim": ("structure", ("block",)), "rank": ("structure", LOW_RANK)})

    structure: Structure = "block"
    block_dim: Width = 4
    rank: Width = 4
    norm_penalty: float = Field(1e-3, ge=0, le=1e3, allow_inf_nan=False)

    @model_validator(mode="after")
    def _parts_fit(self) -> "LinearCDEConfig":
        if self.structure == "block":
            check_divisor("block_dim", self.block_dim, self.d_model)
        elif self.rank > self.d_model:
            raise ValueError(f"rank: expected at most d_model={self.d_model}, got {self.rank}; lower rank")
        return self


@MODELS.register("linear-cde")
class LinearCDE(HasPenalty, StackedRNN):
    """h_t = c_t (I + A(u_t)) h_{t-1}, where A(u) has blocks (BD-SLiCE) or is diagonal plus low-rank (DPLR-SLiCE).

    Here h_t is the state, and u_t is the input of the layer. A(u) is linear in u, except with structure
    `"low-rank-product"`. As in the published code, this structure multiplies two factors that are each linear in u.
    Published scores of DPLR-SLiCE belong to this structure.

    Only a penalty keeps states from growing on long strings. The factor c_t limits the largest number of a state to
    2^30 and preserves the state's direction. The norms after the layer keep only the direction (`LinearCDELayer`). As
    in the published code, the penalty is `norm_penalty` times the sum of `LinearCDELayer.norm_of_a` over the layers.

    Source: Walker et al., "Structured linear CDEs: maximally expressive and parallel-in-time sequence models" (NeurIPS
        2025).
    Differs from the source: see `LinearCDELayer`. Three structures are missing: a dense block next to a diagonal,
        sparse matrices, and Hadamard matrices. Embedding, read-out and the norm before each layer are as in
        `StackedRNN`. The source has a tanh layer after each layer instead of a norm before it.
    """

    Config = LinearCDEConfig
    config: LinearCDEConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        return [LinearCDELayer(**self.config.for_layer(LinearCDELayer))]

    def penalty(self) -> Float[Tensor, ""]:
        norms = [layer.norm_of_a() for layer in self.layers if isinstance(layer, LinearCDELayer)]
        return self.config.norm_penalty * torch.stack(norms).sum()
