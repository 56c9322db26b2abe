"""Liquid-S4: S4 whose transitions depend on the input."""

from collections.abc import Sequence
from typing import ClassVar

from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer
from lengthwise.layers.state_space import LiquidS4Layer
from lengthwise.models.base import MODELS
from lengthwise.models.s4d import S4DConfig
from lengthwise.models.stacked_rnn import StackedRNN


@MODELS.register("liquid-s4")
class LiquidS4(StackedRNN):
    """S4D with transitions A + B u_t that depend on the input, eq. (4) of Fan et al. (2024).

    Nothing holds |A + B u_t| below 1: on long strings states may overflow, which is reported as a divergence.

    Source: Hasani et al., "Liquid structural state-space models" (ICLR 2023).
    Differs from the source: see `LiquidS4Layer`; embedding and read-out are those of `StackedRNN`.
    """

    positions_at_once: ClassVar[int] = 64
    Config = S4DConfig
    config: S4DConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        width = self.config.d_model
        layer = LiquidS4Layer(d_model=width, d_state=self.config.d_state, start=self.config.start)
        return [Gated(layer, d_model=width)]
