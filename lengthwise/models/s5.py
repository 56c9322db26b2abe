"""S5: a state-space model in which all channels share one system."""

from lengthwise.layers.linear_recurrence import S5Layer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StateSpaceRNN


@MODELS.register("s5")
class S5(StateSpaceRNN):
    """A diagonal linear recurrence with constant transitions for all channels together, and a gate after each layer.

    Source: Smith, Warrington and Linderman, "Simplified state space layers for sequence modeling" (ICLR 2023).
    Differs from the source: see `S5Layer`; the gate is `Gated`, with a map to twice the width; embedding and read-out
        are as in `StackedRNN`.
    """

    layer_kinds = (S5Layer,)
