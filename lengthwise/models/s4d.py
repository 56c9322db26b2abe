"""S4D: S4 with a diagonal transition matrix."""

from collections.abc import Sequence

from lengthwise.layers.recurrent_layer import Gated, RecurrentLayer
from lengthwise.layers.state_space import Eigenvalues, S4DLayer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StackedRNN, StateSpaceConfig


class S4DConfig(StateSpaceConfig):
    """The settings of an `S4D`: width D, layers, state size P, and initial eigenvalues `"legs"`, `"lin"` or `"inv"`."""

    start: Eigenvalues = "legs"


@MODELS.register("s4d")
class S4D(StackedRNN):
    """S4 with diagonal matrices: a diagonal linear recurrence with constant transitions in every channel.

    Source: Gu et al., "On the parameterization and initialization of diagonal state space models" (NeurIPS 2022).
    Differs from the source: embedding and read-out are as in `StackedRNN`. Dropout is absent.
    """

    Config = S4DConfig
    config: S4DConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        width = self.config.d_model
        return [Gated(S4DLayer(d_model=width, d_state=self.config.d_state, start=self.config.start), d_model=width)]
