"""T5's biases: a learned number for each pair of a head and a bucket of distances."""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.positions.base import POSITIONS, PositionSizes
from lengthwise.layers.positions.bias import DistanceBias
from lengthwise.ops.shapes import check_tensors

NUM_BUCKETS = 32
"""The number of buckets of distances."""

NUM_EXACT = 16
"""The number of distances that have their own bucket. These are the distances 0 to 15."""

MAX_DISTANCE = 128
"""The distance at which the formula of the logarithmic buckets would reach `NUM_BUCKETS`."""


@POSITIONS.register("t5")
class T5Bias(DistanceBias):
    """Scores q_i . k_j / sqrt(E) + b_h(bucket(i - j)), with a learned table [H, 32] that all layers share; for any T.

    `t5_buckets` defines the buckets. The table is initially drawn from N(0, 1 / D).

    Source: Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer" (2020),
        section 2.1; the initialization of the table follows Hugging Face's port.
    Differs from the source: scores are divided by sqrt(E), as in all layers here; T5 does not divide them.
    """

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.table = nn.Parameter(torch.empty(sizes.num_heads, NUM_BUCKETS))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.table, std=self.sizes.d_model**-0.5, generator=generator)

    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        return self.table[:, t5_buckets(distance)]


def t5_buckets(distance: Int64[Tensor, "*N"]) -> Int64[Tensor, "*N"]:
    """Return the bucket of each distance n >= 0.

    The bucket is n if n < 16. Otherwise, it is 16 + floor(16 ln(n / 16) / ln(128 / 16)), but at most 31.

    Example:
        >>> t5_buckets(torch.tensor([0, 15, 16, 18, 19, 112, 113, 10_000]))
        tensor([ 0, 15, 16, 16, 17, 30, 31, 31])

    Source: Raffel et al. (2020), section 2.1, and their code, for causal attention.
    Differs from the source: only in the limits of buckets, which are computed in float64.
    """
    check_tensors(distance=distance)
    num_wide = NUM_BUCKETS - NUM_EXACT
    ratio = MAX_DISTANCE / NUM_EXACT
    wide = [math.ceil(NUM_EXACT * ratio ** (bucket / num_wide)) for bucket in range(num_wide)]
    # Distances are compared with integer limits, because float32 logarithms could round a distance to another bucket.
    limits = torch.tensor([*range(1, NUM_EXACT), *wide], device=distance.device)
    return torch.bucketize(distance, limits, right=True)
