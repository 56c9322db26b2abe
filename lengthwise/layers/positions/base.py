"""The contract of position encodings, and their registry."""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.registry import Registry
from lengthwise.validation import check_divisor, check_kind


class PositionSizes(NamedTuple):
    """The sizes of an encoding: width D, heads H, layers L with separate weights, and `max_positions`.

    `max_positions` is the size of a table or of a range. Encodings that work for any length ignore it.
    """

    d_model: int
    num_heads: int
    num_layers: int
    max_positions: int


Heads = Float[Tensor, "B H T E"]
"""The queries, keys or values of each string, head and position."""

Query = Float[Tensor, "B H 1 E"]
"""The query of each string and head at one position, or the result of this query's attention."""

Scores = Float[Tensor, "B H T T"]
"""The score of each pair of a query and a key."""


class CausalAttention:
    """Attention of one layer at one length: softmax(q_i . k_j / sqrt(E)) over keys j <= i, with E numbers per head.

    Subclasses make queries, keys or scores depend on positions. Queries, keys and values are [B, H, T, E].
    """

    def attend(self, query: Heads, key: Heads, value: Heads) -> Heads:
        """Return the result of attention at every position."""
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    def attend_at(self, query: Query, key: Heads, value: Heads, positions: Int64[Tensor, " B"]) -> Query:
        """Return the result of `attend` at one position of each string, given only the query of this position."""
        seen = torch.arange(key.shape[2], device=key.device) <= positions[:, None, None, None]
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen)

    def scores(self, query: Heads, key: Heads) -> Scores:
        """Return the scores that softmax receives for keys j <= i, by definition; scores of later keys are unused."""
        scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        return scores

    def scores_of_pairs(self, query: Heads, key: Heads) -> Scores:
        """Return the results of `scores`; an encoding with slow `scores` overrides this method with faster code."""
        return self.scores(query, key)


CAUSAL = CausalAttention()
"""Attention that distinguishes positions only by its causal mask."""


class PositionEncoding(nn.Module, ABC):
    """The way in which a transformer distinguishes positions.

    `add` changes the inputs of the transformer, and `attention` changes the attention of its layers. By default, both
    change nothing, and an encoding has no parameters. An encoding is built as ``Encoding(sizes)``. Results at position
    t must not depend on later positions. In evaluation, they must also not depend on the length.
    """

    name: ClassVar[str]
    size_setting: ClassVar[Literal["", "learned_positions", "position_range"]] = ""
    """The transformer's setting that sets `max_positions`, or an empty string if the encoding ignores
    `max_positions`."""

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__()
        check_kind("sizes", sizes, PositionSizes, "a PositionSizes")
        check_divisor("num_heads", sizes.num_heads, sizes.d_model)
        self.sizes = sizes

    @property
    def window(self) -> int | None:
        """Return the number of most recent positions that each layer sees, or None for all."""
        return None

    @property
    def max_length(self) -> int | None:
        """Return the largest length that the encoding supports, or None if it supports any length."""
        return None

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw all parameters again."""

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        """Return the inputs with their positions encoded; in training, an encoding may draw from `generator`."""
        return states

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        """Return the attention of each layer; a model calls this method once per forward pass.

        Only the shape, dtype and device of `states` are used.
        """
        return [CAUSAL] * self.sizes.num_layers


POSITIONS: Registry[type[PositionEncoding]] = Registry(
    "position encoding", "lengthwise.layers.positions", base=PositionEncoding
)
