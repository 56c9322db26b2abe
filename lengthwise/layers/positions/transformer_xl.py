"""Transformer-XL's relative positions: scores that depend on both the distance and the query."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.positions.base import (
    POSITIONS,
    CausalAttention,
    Heads,
    PositionEncoding,
    PositionSizes,
    Query,
    Scores,
)
from lengthwise.ops.sinusoids import distance_sinusoids

MAX_ELEMENTS_PER_CHUNK = 1 << 22
"""The largest number of scores that are computed at once. This limit is the fastest for 64 strings of 100 to 500
symbols. Larger parts use memory that the operating system clears each time, and compute more scores that are masked.
Smaller parts need more calls.
"""


@POSITIONS.register("xl")
class TransformerXLPositions(PositionEncoding):
    """Scores ((q_i + u_h) . k_j + (q_i + v_h) . W_R R_{i-j}) / sqrt(E), with sinusoids R of the distance; for any T.

    u and v [H, E] are learned and shared by all layers. Each layer learns its own map W_R [D, D]. All are initially
    drawn from N(0, 0.02^2).

    Source: Dai et al., "Transformer-XL: attentive language models beyond a fixed-length context" (ACL 2019), section
        3.3, and their code, which has the sines of R first, then the cosines.
    Differs from the source: it has no recurrence over segments. The code of Delétang et al. (ICLR 2023), a baseline of
        Chi et al. (2023), has its own u and v in each layer, and attention to both sides.
    """

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        head_shape = (sizes.num_heads, sizes.d_model // sizes.num_heads)
        self.u = nn.Parameter(torch.empty(head_shape))
        self.v = nn.Parameter(torch.empty(head_shape))
        width = sizes.d_model
        self.maps = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(sizes.num_layers))

    def reset_parameters(self, generator: torch.Generator) -> None:
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02, generator=generator)

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        sinusoids = distance_sinusoids(*states.shape[1:]).flip(0).to(states)
        return [XLAttention(self.u, self.v, _heads(linear(sinusoids), self.sizes.num_heads)) for linear in self.maps]


class XLAttention(CausalAttention):
    """Attention with the scores of `TransformerXLPositions`.

    `falling` contains each head's part of the vectors W_R R_d for distances d = T - 1, ..., 1, 0, in this order. R_d
    are the sinusoids of distance d, and W_R is the layer's learned map.
    """

    def __init__(self, u: Float[Tensor, "H E"], v: Float[Tensor, "H E"], falling: Float[Tensor, "H T E"]) -> None:
        self.u = u[:, None]
        self.v = v[:, None]
        self.falling = falling

    def attend(self, query: Heads, key: Heads, value: Heads) -> Heads:
        batch_size, num_heads, length, _ = query.shape
        size = max(1, MAX_ELEMENTS_PER_CHUNK // (batch_size * num_heads * length))
        parts = [self._part(query[:, :, start : start + size], key, value, start) for start in range(0, length, size)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    def attend_at(self, query: Query, key: Heads, value: Heads, positions: Int64[Tensor, " B"]) -> Query:
        length = key.shape[2]
        distance = positions[:, None] - torch.arange(length, device=key.device)
        distance_scores = self._distance_scores(query, self.falling)
        column = (length - 1 - distance.clamp(min=0))[:, None, None].expand_as(distance_scores)
        bias = distance_scores.gather(-1, column).masked_fill((distance < 0)[:, None, None], -torch.inf)
        return F.scaled_dot_product_attention(query + self.u, key, value, attn_mask=bias)

    def scores(self, query: Heads, key: Heads) -> Scores:
        """Return the scores by definition: each pair of positions gets a vector for its distance, [H, T, T, E]."""
        positions = torch.arange(query.shape[2], device=query.device)
        distance = (positions[:, None] - positions).clamp(min=0)
        relative = self.falling.flip(1)[:, distance]
        distance_scores = ((query + self.v)[..., None, :] * relative).sum(-1)
        scores: Tensor = super().scores(query + self.u, key) + distance_scores / query.shape[-1] ** 0.5
        return scores

    def scores_of_pairs(self, query: Heads, key: Heads) -> Scores:
        return super().scores(query + self.u, key) + self._shifted_scores(query, query.shape[2])

    def _part(self, query: Float[Tensor, "B H N E"], key: Heads, value: Heads, start: int) -> Float[Tensor, "B H N E"]:
        """Return the attention of N queries, beginning at `start`."""
        count = query.shape[2]
        stop = start + count
        # The shift leaves numbers of other rows at later keys, which are masked here.
        mask = query.new_full((count, stop), -torch.inf).triu(1 + start)
        return F.scaled_dot_product_attention(
            query + self.u,
            key[:, :, :stop],
            value[:, :, :stop],
            attn_mask=self._shifted_scores(query, stop) + mask,
        )

    def _shifted_scores(self, query: Float[Tensor, "B H N E"], stop: int) -> Float[Tensor, "B H N M"]:
        """Return the part of scores that depends on the distance, for queries at the last N of M = `stop` positions.

        Scores of keys after the query are arbitrary. Columns of the scores belong to falling distances, so row n must
        move N - 1 - n columns to the left. No gather is needed for this. A column is added in front, and the matrix is
        flattened into one list. The first N numbers of the list are dropped. The rest is cut into rows that are one
        number shorter than before.
        """
        count = query.shape[2]
        distance_scores = self._distance_scores(query, F.pad(self.falling[:, -stop:], (0, 0, 1, 0)))
        return torch.unflatten(distance_scores.flatten(-2)[..., count:], -1, (count, stop))

    def _distance_scores(
        self, query: Float[Tensor, "B H N E"], falling: Float[Tensor, "H M E"]
    ) -> Float[Tensor, "B H N M"]:
        """Return the part of the scores that depends on the distance."""
        scores: Tensor = ((query + self.v) / query.shape[-1] ** 0.5) @ falling.transpose(-1, -2)
        return scores


def _heads(states: Float[Tensor, "T D"], num_heads: int) -> Float[Tensor, "H T E"]:
    return torch.unflatten(states, -1, (num_heads, -1)).transpose(0, 1)
