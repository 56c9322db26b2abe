"""KERPLE: biases that are conditionally positive definite kernels of the distance, with two parameters per head."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from lengthwise.layers.positions.base import POSITIONS, PositionSizes
from lengthwise.layers.positions.bias import DistanceBias

FLOOR = 0.01
"""The smallest value of a parameter that a bias uses; smaller parameters count as this number."""


class Kerple(DistanceBias):
    """The common parts of KERPLE's biases: positive numbers p_h and a_h of every head h, which all layers share.

    Initially, p_h is drawn from U(0, 2), and a_h from U(0, 1). The biases use values of at least 0.01. The gradient
    ignores this limit, so training can move a smaller parameter back above the limit.
    """

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.p = nn.Parameter(torch.empty(sizes.num_heads))
        self.a = nn.Parameter(torch.empty(sizes.num_heads))

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.uniform_(self.p, 0.0, 2.0, generator=generator)
        nn.init.uniform_(self.a, 0.0, 1.0, generator=generator)


@POSITIONS.register("kerple-log")
class KerpleLog(Kerple):
    """Scores q_i . k_j / sqrt(E) - p_h ln(1 + a_h (i - j)), with learned p_h, a_h > 0; for any T.

    Source: Chi et al., "KERPLE: kernelized relative positional embedding for length extrapolation" (NeurIPS 2022), the
        logarithmic variant, r_1 = p and r_2 = a, and their code.
    Differs from the source: the source's code overwrites parameters below the limit 0.01 (see `Kerple`). Here, they
        stay as they are.
    """

    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        p, a = (_limited(number, distance.ndim) for number in (self.p, self.a))
        return -p * torch.log1p(a * distance)


@POSITIONS.register("kerple-power")
class KerplePower(Kerple):
    """Scores q_i . k_j / sqrt(E) - a_h (i - j)^{p_h}, with learned a_h > 0 and 0 < p_h <= 2; for any T.

    Source: Chi et al., "KERPLE: kernelized relative positional embedding for length extrapolation" (NeurIPS 2022),
        the power variant, r_1 = a and r_2 = p, and their code.
    Differs from the source: the source's code overwrites parameters outside of the limits. Here, they stay as they are.
    """

    def by_distance(self, distance: Int64[Tensor, "*N"]) -> Float[Tensor, "H *N"]:
        p, a = _limited(self.p, distance.ndim, 2.0), _limited(self.a, distance.ndim)
        return -a * distance.to(p) ** p


def _limited(numbers: Float[Tensor, " H"], num_axes: int, maximum: float | None = None) -> Float[Tensor, "H *_"]:
    """Return numbers limited to `FLOOR` ... `maximum`, with the original numbers' gradient and `num_axes` new axes."""
    # A clamp alone has gradient 0 outside of its limits, so a parameter could never come back.
    limited = numbers + (numbers.clamp(FLOOR, maximum) - numbers).detach()
    return limited.view(-1, *(1,) * num_axes)
