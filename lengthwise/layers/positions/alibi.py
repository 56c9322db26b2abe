"""ALiBi: scores fall linearly with the distance, with a separate slope for each head."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS
from lengthwise.layers.positions.bias import DistanceBias
from lengthwise.validation import check_sizes


@POSITIONS.register("alibi")
class ALiBi(DistanceBias):
    """Scores q_i . k_j / sqrt(E) - m_h (i - j), with the slopes m_h of `alibi_slopes`.

    The encoding has no parameters and works for any T.

    Source: Press et al., "Train short, test long: attention with linear biases enables input length extrapolation"
        (ICLR 2022), section 3.
    Differs from the source: no difference.
    """

    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        dtype = torch.float32 if distance.device.type == "mps" else torch.float64  # MPS lacks float64
        slopes = torch.tensor(alibi_slopes(self.sizes.num_heads), dtype=dtype, device=distance.device)
        falling: Tensor = torch.tensordot(slopes, distance.to(dtype), 0)
        return -falling


def alibi_slopes(num_heads: int) -> list[float]:
    """Return the slopes m_h, h = 1 ... H, which are 2^{-8h/H} if H is a power of two.

    Otherwise, let P be the largest power of two below H. Then the slopes are all slopes for P heads, followed by every
    second slope for 2 P heads until there are H slopes.

    Raises:
        ValueError: H is below 1.

    Example:
        >>> alibi_slopes(4)
        [0.25, 0.0625, 0.015625, 0.00390625]
        >>> alibi_slopes(3)
        [0.0625, 0.00390625, 0.25]

    Source: Press et al. (2022), section 3, and their code for other numbers of heads.
    Differs from the source: no difference.
    """
    check_sizes(num_heads=num_heads)
    below = 1 << (num_heads.bit_length() - 1)
    if below == num_heads:
        return [2.0 ** (-8 * head / num_heads) for head in range(1, num_heads + 1)]
    return alibi_slopes(below) + alibi_slopes(2 * below)[::2][: num_heads - below]
