"""Fixed sinusoids, added to the inputs."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.ops.sinusoids import position_sinusoids


@POSITIONS.register("sinusoidal")
class SinusoidalPositions(PositionEncoding):
    """x_t + PE(t), t = 0 ... T - 1, with the sinusoids of `position_sinusoids`. The encoding works for any T.

    Source: Vaswani et al., "Attention is all you need" (NeurIPS 2017), section 3.5.
    Differs from the source: inputs are not multiplied by sqrt(D).
    """

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        return states + position_sinusoids(*states.shape[1:]).to(states)
