"""Randomized positions: in training, sinusoids of positions drawn from a longer range."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding
from lengthwise.ops.sinusoids import sinusoids_at


@POSITIONS.register("randomized")
class RandomizedPositions(PositionEncoding):
    """x_t + PE(p_t) with p_0 < p_1 < ..., in training T of the numbers 0 ... `max_positions` - 1, drawn for each batch.

    Without a generator, as in evaluation, p_t = t. Otherwise a prefix would not have the same positions in every string
    of up to `max_positions` symbols. The encoding has no parameters.

    Raises:
        ValueError: a string is longer than the range.

    Source: Ruoss et al., "Randomized positional encodings boost length generalization of transformers" (ACL 2023),
        and their code, which draws one sample for each batch, from 2,048 positions.
    Differs from the source: it also draws in evaluation, as a model does here if its `drawing` has a generator.
    """

    @property
    def max_length(self) -> int:
        return self.sizes.max_positions

    def add(self, states: Float[Tensor, "B T D"], generator: torch.Generator | None = None) -> Float[Tensor, "B T D"]:
        length, longest = states.shape[1], self.sizes.max_positions
        if length > longest:
            raise ValueError(
                f"length: expected at most {longest} positions, of which this model draws, got {length}; make it with "
                "more model.position_range"
            )
        if generator is None:
            positions = torch.arange(length)
        else:
            # A sorted random subset keeps the order of positions, but not their distances.
            positions = torch.randperm(longest, generator=generator)[:length].sort().values
        return states + sinusoids_at(positions, states.shape[2]).to(states)
