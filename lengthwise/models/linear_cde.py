"""Structured linear controlled differential equations: transitions that follow the input."""

from collections.abc import Sequence
from types import MappingProxyType

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.layers.linear_cde import LinearCDELayer, Structure
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.models.base import MODELS, Width, check_divides_width
from lengthwise.models.capabilities import HasPenalty
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN

LOW_RANK: tuple[Structure, ...] = ("low-rank", "low-rank-product")
"""The structures that have a rank."""


class LinearCDEConfig(StackedConfig):
    """Width D, number of layers, and the structure of A: blocks, or a diagonal plus a matrix of low rank.

    - `structure`: `"block"` has blocks of size `block_dim`. The matrix of low rank is, with `"low-rank"`, a sum of
      products of rank `rank`, one for each number of the input. With `"low-rank-product"`, as in the published code, it
      is one product whose factors depend on the input.
    - `norm_penalty`: training adds this number times the size of A to the loss.
    """

    used_with = MappingProxyType({"block_dim": ("structure", ("block",)), "rank": ("structure", LOW_RANK)})

    structure: Structure = "block"
    block_dim: Width = 4
    rank: Width = 4
    norm_penalty: float = Field(1e-3, ge=0, le=1e3, allow_inf_nan=False)

    @model_validator(mode="after")
    def _parts_fit(self) -> "LinearCDEConfig":
        if self.structure == "block":
            check_divides_width("block_dim", self.block_dim, self.d_model)
        elif self.rank > self.d_model:
            raise ValueError(f"rank: expected at most d_model={self.d_model}, got {self.rank}; more adds nothing")
        return self


@MODELS.register("linear-cde")
class LinearCDE(HasPenalty, StackedRNN):
    """h_t = c_t (I + A(u_t)) h_{t-1}, A(u) of blocks (BD-SLiCE) or a diagonal plus low rank (DPLR-SLiCE).

    A(u) is linear in u, except with structure `"low-rank-product"`: there, as in the published code, it multiplies two
    factors that are each linear in u. Published scores of DPLR-SLiCE belong to that structure.

    On long strings only a penalty keeps states from growing. The factor c_t preserves their direction, which is all
    that later norms pass on, and keeps their largest number at 2^30 or below (`LinearCDELayer`). The penalty is the
    published one, the sum of `LinearCDELayer.norm_of_a` over the layers.

    Source: Walker et al., "Structured linear CDEs: maximally expressive and parallel-in-time sequence models" (NeurIPS
        2025).
    Differs from the source: see `LinearCDELayer`. Structures with a dense block next to a diagonal, sparse structures
        and those with Hadamard matrices are missing. Embedding, read-out and the norm before each layer are as in
        `StackedRNN`, instead of a tanh layer after it.
    """

    Config = LinearCDEConfig
    config: LinearCDEConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        config = self.config
        return [
            LinearCDELayer(
                d_model=config.d_model, structure=config.structure, block_dim=config.block_dim, rank=config.rank
            )
        ]

    def penalty(self) -> Float[Tensor, ""]:
        norms = [layer.norm_of_a() for layer in self.layers if isinstance(layer, LinearCDELayer)]
        return self.config.norm_penalty * torch.stack(norms).sum()
