"""Rotary positions: queries and keys are rotated by their positions."""

from collections.abc import Sequence

import torch
from jaxtyping import Complex, Float, Int64
from torch import Tensor

from lengthwise.layers.positions.base import (
    POSITIONS,
    CausalAttention,
    Heads,
    PositionEncoding,
    PositionSizes,
    Query,
    Scores,
)
from lengthwise.ops.sinusoids import position_angles


@POSITIONS.register("rotary")
class RotaryPositions(PositionEncoding):
    """Scores q_i^T R_{i-j} k_j / sqrt(E): numbers 2m and 2m + 1 of a head are rotated by t 10000^{-2m/E} at position t.

    So scores depend only on differences of positions. The encoding has no parameters and works for any T.

    Raises:
        ValueError: a head has an odd number of units, but units are rotated in pairs.

    Source: Su et al., "RoFormer: enhanced transformer with rotary position embedding" (2021), section 3.2.
    Differs from the source: no difference.
    """

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        if sizes.d_model // sizes.num_heads % 2:
            raise ValueError(
                f"num_heads: expected heads of an even number of units for rotary positions, got d_model="
                f"{sizes.d_model} in {sizes.num_heads} heads; choose another d_model or num_heads"
            )

    def attention(self, states: Float[Tensor, "B T D"]) -> Sequence[CausalAttention]:
        angles = position_angles(states.shape[1], self.sizes.d_model // self.sizes.num_heads)
        # Angles are float64, because float32 has too few digits for late positions.
        turns = torch.polar(torch.ones_like(angles), angles)
        dtype = torch.complex128 if states.dtype == torch.float64 else torch.complex64
        rotated = RotatedAttention(turns.to(states.device, dtype))
        return [rotated] * self.sizes.num_layers


class RotatedAttention(CausalAttention):
    """Attention with rotated queries and keys: pairs of numbers are complex numbers, multiplied by e^{i angle}."""

    def __init__(self, turns: Complex[Tensor, "T F"]) -> None:
        self.turns = turns

    def attend(self, query: Heads, key: Heads, value: Heads) -> Heads:
        return super().attend(_rotate(query, self.turns), _rotate(key, self.turns), value)

    def attend_at(self, query: Query, key: Heads, value: Heads, positions: Int64[Tensor, " B"]) -> Query:
        turned = _rotate(query, self.turns[positions][:, None, None])
        return super().attend_at(turned, _rotate(key, self.turns), value, positions)

    def scores(self, query: Heads, key: Heads) -> Scores:
        """Return the scores by definition; a rotation is a matrix [E, E] of diagonal blocks (cos, -sin; sin, cos)."""
        cosines, sines = self.turns.real, self.turns.imag
        blocks = torch.stack([torch.stack([cosines, -sines], -1), torch.stack([sines, cosines], -1)], -2)
        rotations = torch.stack([torch.block_diag(*position_blocks) for position_blocks in blocks])
        query, key = ((rotations @ states[..., None]).squeeze(-1) for states in (query, key))
        return super().scores(query, key)

    def scores_of_pairs(self, query: Heads, key: Heads) -> Scores:
        return super().scores(_rotate(query, self.turns), _rotate(key, self.turns))


def _rotate(states: Float[Tensor, "B H N E"], turns: Complex[Tensor, "*_ F"]) -> Float[Tensor, "B H N E"]:
    pairs = torch.view_as_complex(states.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turns).flatten(-2)
