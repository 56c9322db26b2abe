"""A learned table of positions, added to the inputs."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding, PositionSizes


@POSITIONS.register("learned")
class LearnedPositions(PositionEncoding):
    """x_t + P_t with a learned table P [max_positions, D], which is initially drawn from N(0, 0.02^2).

    Raises:
        ValueError: a string is longer than the table.

    Source: Radford et al., "Language models are unsupervised multitask learners" (2019), and their code.
    Differs from the source: no difference.
    """

    size_setting = "learned_positions"

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.table = nn.Parameter(torch.empty(sizes.max_positions, sizes.d_model))

    @property
    def max_length(self) -> int:
        return len(self.table)

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.table, std=0.02, generator=generator)

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        length = states.shape[1]
        # Longer strings have no encoding. Reusing encodings would give wrong answers without a warning.
        if length > len(self.table):
            raise ValueError(
                f"length: expected at most {len(self.table)} positions, the number of learned encodings, got {length}; "
                "make the model with a larger model.learned_positions, or with model.positions=sinusoidal instead"
            )
        return states + self.table[:length]
