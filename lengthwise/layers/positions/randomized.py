"""Randomized positions: in training, positions are drawn from a longer range and encoded by sinusoids."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.ops.sinusoids import sinusoids_at


@POSITIONS.register("randomized")
class RandomizedPositions(PositionEncoding):
    """x_t + PE(p_t) with the sinusoids of `position_sinusoids` at increasing positions p_0 < p_1 < ...

    In training, the positions are T of the numbers 0 ... `max_positions` - 1, drawn for each batch. Without a
    generator, as in evaluation, p_t = t. In evaluation, drawn positions would give one prefix different answers in
    different strings. The encoding has no parameters.

    Raises:
        ValueError: a string has more than `max_positions` symbols.

    Source: Ruoss et al., "Randomized positional encodings boost length generalization of transformers" (ACL 2023), and
        their code, which draws one sample for each batch, from 2,048 positions.
    Differs from the source: the source also draws in evaluation. Here, only a copy that the model's method `drawing`
        has made draws in evaluation.
    """

    size_setting = "position_range"

    @property
    def max_length(self) -> int:
        return self.sizes.max_positions

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        length, longest = states.shape[1], self.sizes.max_positions
        if length > longest:
            raise ValueError(
                f"length: expected at most {longest}, because this model draws from {longest} positions, got {length}; "
                "make the model with a larger model.position_range"
            )
        if generator is None:
            positions = torch.arange(length)
        else:
            # A sorted random subset keeps the order of positions, but not their distances.
            positions = torch.randperm(longest, generator=generator)[:length].sort().values
        return states + sinusoids_at(positions, states.shape[2]).to(states)
