"""What every position encoding promises, and the registry of encodings."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.registry import Registry


class PositionSizes(NamedTuple):
    """What an encoding is made for: width D, heads H, layers L with weights of their own, and `max_positions`.

    `max_positions` is the size of a table or of a range; encodings that any length has ignore it.
    """

    d_model: int
    num_heads: int
    num_layers: int
    max_positions: int


class CausalAttention:
    """Attention of one layer at one length: softmax(q_i . k_j / sqrt(E)) over keys j <= i, E numbers a head.

    Subclasses change queries, keys or scores by positions. Shapes: queries, keys and values [B, H, T, E].
    """

    def attend(
        self, query: Float[Tensor, "B H T E"], key: Float[Tensor, "B H T E"], value: Float[Tensor, "B H T E"]
    ) -> Float[Tensor, "B H T E"]:
        """What every position attends to."""
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    def attend_at(
        self,
        query: Float[Tensor, "B H 1 E"],
        key: Float[Tensor, "B H T E"],
        value: Float[Tensor, "B H T E"],
        positions: Int64[Tensor, " B"],
    ) -> Float[Tensor, "B H 1 E"]:
        """The same numbers as `attend` at one position of each row, whose query alone is given."""
        seen = torch.arange(key.shape[2], device=key.device) <= positions[:, None, None, None]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen)

    def scores(self, query: Float[Tensor, "B H T E"], key: Float[Tensor, "B H T E"]) -> Float[Tensor, "B H T T"]:
        """The definition: what the softmax over keys j <= i takes, pair by pair; later keys have any number."""
        scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        return scores


CAUSAL = CausalAttention()
"""Attention that sees positions only in that it is causal."""


class PositionEncoding(nn.Module, ABC):
    """How a transformer tells positions apart: `add` changes what is read in, `attention` what the layers attend to.

    Built as ``Encoding(sizes)``. By default both change nothing, and there are no parameters. Position t must not
    depend on what comes after it, and, in evaluation, not on the length.
    """

    name: ClassVar[str]

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__()
        self.sizes = sizes

    @property
    def window(self) -> int | None:
        """How many of the last positions each layer sees; None: all."""
        return None

    @property
    def max_length(self) -> int | None:
        """The number of positions that there are; None: any."""
        return None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        """What was read in, with its positions; a training step gives the generator of what it draws."""
        return states

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        """The attention of each layer, for states of this length, type and device: made once a forward pass."""
        return [CAUSAL] * self.sizes.num_layers


POSITIONS: Registry[type[PositionEncoding]] = Registry(
    "position encoding", "lengthwise.layers.positions", base=PositionEncoding
)
