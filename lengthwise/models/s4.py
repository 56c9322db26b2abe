"""S4: a structured state-space model."""

from lengthwise.layers.state_space import S4Layer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StateSpaceRNN


@MODELS.register("s4")
class S4(StateSpaceRNN):
    """A linear recurrence in each channel, with a gate in each layer.

    The recurrence's matrix does not depend on the input, and is initialized as HiPPO-LegS.

    Source: Gu, Goel and Re, "Efficiently modeling long sequences with structured state spaces" (ICLR 2022).
    Differs from the source: see `S4Layer`. Embedding and read-out are as in `StackedRNN`. Dropout is absent.
    """

    layer_kinds = (S4Layer,)
