"""S4: a structured state-space model."""

from collections.abc import Sequence

from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer
from lengthwise.layers.state_space import S4Layer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StackedRNN, StateSpaceConfig


@MODELS.register("s4")
class S4(StackedRNN):
    """A linear recurrence in each channel, with a gate in each layer.

    The recurrence's matrix does not depend on the input, and is initialized as HiPPO-LegS.

    Source: Gu, Goel and Re, "Efficiently modeling long sequences with structured state spaces" (ICLR 2022).
    Differs from the source: see `S4Layer`. Embedding and read-out are as in `StackedRNN`. Dropout is absent.
    """

    Config = StateSpaceConfig
    config: StateSpaceConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        width = self.config.d_model
        return [Gated(S4Layer(d_model=width, d_state=self.config.d_state), d_model=width)]
