"""The absence of a position encoding."""

from lengthwise.layers.positions.base import POSITIONS, PositionEncoding


@POSITIONS.register("none")
class NoPositions(PositionEncoding):
    """No encoding. Only the causal mask distinguishes positions: position t, counted from 1, attends to t states.

    Source: Kazemnejad et al., "The impact of positional encoding on length generalization in transformers" (NeurIPS
        2023), section 2, NoPE.
    Differs from the source: no difference.
    """
