"""Liquid-S4: S4 whose transitions depend on the input."""

from typing import ClassVar

from lengthwise.layers.state_space import LiquidS4Layer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StateSpaceRNN


@MODELS.register("liquid-s4")
class LiquidS4(StateSpaceRNN):
    """S4 with transitions A + diag(B u_t) that depend on the input, eq. (4) of Fan et al. (2024).

    Here A and B are the matrices of S4, and u_t is the input of the layer.

    Nothing keeps the norm of transitions below 1, so states may overflow on long strings. The answers to such strings
    are then wrong.

    Source: Hasani et al., "Liquid structural state-space models" (ICLR 2023).
    Differs from the source: see `LiquidS4Layer`; embedding and read-out are as in `StackedRNN`.
    """

    positions_per_chunk: ClassVar[int] = 64
    layer_kinds = (LiquidS4Layer,)
