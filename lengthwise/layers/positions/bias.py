"""Encodings that add a bias to the scores of attention."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.layers.positions.base import CausalAttention, Heads, PositionEncoding, Query, Scores

MAX_QUERIES = 128
"""The largest number of queries in a part of the attention, which is computed part by part. A part computes scores
between all its queries and all keys up to its last query, so scores above the diagonal are wasted. With a single part,
almost half of all scores are wasted. Smaller parts waste fewer scores, but starting more parts takes more time."""

MAX_ELEMENTS_PER_CHUNK = 1 << 22
"""The largest number of scores of one string in a part, unless a single query has more. With 4 heads, this number
allows fewer than `MAX_QUERIES` queries in strings longer than 8,192 symbols."""


class ScoreBias(PositionEncoding):
    """Scores q_i . k_j / sqrt(E) + b_h(i, j), with a function b_h for each head h.

    A subclass defines `pairs`. The method `attention` gives all layers the same biases. In strings of at most
    `MAX_QUERIES` symbols, the biases of all pairs, [H, T, T], are computed once per forward pass.
    """

    @abstractmethod
    def pairs(self, query: Int64[Tensor, "*#N"], key: Int64[Tensor, "*#N"]) -> Float[Tensor, "H *N"]:
        """Return the bias b_h(i, j) of each head h for pairs of positions i >= j, by definition."""

    def rows(self, start: int, stop: int, like: Tensor) -> Float[Tensor, "H N M"]:
        """Return the biases of queries `stop` - 1 ... `start`, last first, with keys 0 ... `stop` - 1.

        Keys after the query have -inf. The result has the type and the device of `like`.
        """
        keys = torch.arange(stop, device=like.device)
        return self.causal_pairs(keys[start:].flip(0)[:, None], keys[None]).to(like)

    def causal_pairs(self, query: Int64[Tensor, "*#N"], key: Int64[Tensor, "*#N"]) -> Float[Tensor, "H *N"]:
        """Return the biases of any pairs of positions, which are -inf for keys after the query."""
        return self.pairs(query, torch.minimum(query, key)).masked_fill(key > query, -torch.inf)

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        return [BiasedAttention(self, states)] * self.sizes.num_layers


class DistanceBias(ScoreBias):
    """A bias b_h(i - j) that depends only on the distance, so it is computed for T distances instead of T^2 pairs."""

    @abstractmethod
    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        """Return the bias b_h(n) of each head h for distances n >= 0."""

    def pairs(self, query: Int64[Tensor, "*#N"], key: Int64[Tensor, "*#N"]) -> Float[Tensor, "H *N"]:
        return self.by_distance(query - key)

    def rows(self, start: int, stop: int, like: Tensor) -> Float[Tensor, "H N M"]:
        return windows(self.by_distance(torch.arange(stop - 1, -1, -1, device=like.device)).to(like), stop - start)


def windows(falling: Float[Tensor, "H M"], num_rows: int) -> Float[Tensor, "H N M"]:
    """Return the biases of the last N = `num_rows` of M queries, the last query first, with all M keys.

    `falling` contains the biases of distances M - 1 ... 0. Keys after the query have -inf. Each row is a window of one
    vector, which contains the given biases and then -inf. A row begins one entry later than the row before. So the rows
    are views, which take neither computation nor memory.

    Example:
        >>> windows(torch.tensor([[2.0, 1.0, 0.0]]), 2)
        tensor([[[2., 1., 0.],
                 [1., 0., -inf]]])
    """
    return F.pad(falling, (0, num_rows - 1), value=-torch.inf).unfold(1, falling.shape[1], 1)


class BiasedAttention(CausalAttention):
    """Attention with the biases of an encoding, for states of one length and type."""

    def __init__(self, encoding: ScoreBias, states: Float[Tensor, "B T D"]) -> None:
        length = states.shape[1]
        self.encoding = encoding
        is_small = length <= MAX_QUERIES
        # All layers read these biases in the order of the queries. One reversed copy costs less than views in each
        # layer.
        self.whole = encoding.rows(0, length, states).flip(1)[None] if is_small else None

    def attend(self, query: Heads, key: Heads, value: Heads) -> Heads:
        if self.whole is not None:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=self.whole)
        return torch.cat(list(self._parts(query, key, value)), 2)

    def attend_at(self, query: Query, key: Heads, value: Heads, positions: Int64[Tensor, " B"]) -> Query:
        bias = self.encoding.causal_pairs(positions[:, None], torch.arange(key.shape[2], device=key.device)[None])
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias.to(query).transpose(0, 1)[:, :, None])

    def scores(self, query: Heads, key: Heads) -> Scores:
        positions = torch.arange(query.shape[2], device=query.device)
        earlier = torch.minimum(positions[:, None], positions)
        return super().scores(query, key) + self.encoding.pairs(positions[:, None], earlier).to(query)

    def _parts(self, query: Heads, key: Heads, value: Heads) -> Iterator[Float[Tensor, "B H _ E"]]:
        _, num_heads, length, _ = query.shape
        size = max(1, min(MAX_QUERIES, MAX_ELEMENTS_PER_CHUNK // (num_heads * length)))
        for start in range(0, length, size):
            stop = min(start + size, length)
            # Reversing the queries costs less than copying the biases into the order of positions.
            attended = F.scaled_dot_product_attention(
                query[:, :, start:stop].flip(2),
                key[:, :, :stop],
                value[:, :, :stop],
                attn_mask=self.encoding.rows(start, stop, query)[None],
            )
            yield attended.flip(2)
