"""Local attention: each layer sees only the last few positions."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS
from lengthwise.layers.positions.bias import DistanceBias


@POSITIONS.register("local")
class LocalAttention(DistanceBias):
    """Scores q_i . k_j / sqrt(E) if i - j < w, else -inf, with a window of w = `max_positions` positions.

    After L layers, an answer depends only on the last L (w - 1) + 1 positions. Within a window, only the causal mask
    distinguishes positions. The encoding has no parameters and works for any T.

    Source: Beltagy et al., "Longformer: the long-document transformer" (2020), section 3.1, sliding window; as a
        recency bias for regular languages: Chi et al. (2023), section 2.2.
    Differs from the source: attention is causal, and the scores of all pairs are computed.
    """

    size_setting = "position_range"

    @property
    def window(self) -> int:
        return self.sizes.max_positions

    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        bias = torch.zeros(distance.shape, device=distance.device).masked_fill(distance >= self.window, -torch.inf)
        return bias.expand(self.sizes.num_heads, *distance.shape)
