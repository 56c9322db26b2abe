"""S5: a state-space model in which all channels share one system."""

from collections.abc import Sequence

from lengthwise.layers.linear_recurrence import S5Layer
from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StackedRNN, StateSpaceConfig


@MODELS.register("s5")
class S5(StackedRNN):
    """A diagonal linear recurrence with constant transitions for all channels together, and a gate after each layer.

    Source: Smith, Warrington and Linderman, "Simplified state space layers for sequence modeling" (ICLR 2023).
    Differs from the source: see `S5Layer`; the gate is `Gated`, with a map to twice the width; embedding and read-out
        are as in `StackedRNN`.
    """

    Config = StateSpaceConfig
    config: StateSpaceConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        width = self.config.d_model
        return [Gated(S5Layer(d_model=width, d_state=self.config.d_state), d_model=width)]
