"""S4D: S4 with a diagonal transition matrix."""

from lengthwise.layers.state_space import Eigenvalues, S4DLayer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StateSpaceConfig, StateSpaceRNN


class S4DConfig(StateSpaceConfig):
    """The settings of an `S4D`: width D, layers, state size P, and initial eigenvalues `"legs"`, `"lin"` or `"inv"`."""

    start: Eigenvalues = "legs"


@MODELS.register("s4d")
class S4D(StateSpaceRNN):
    """S4 with diagonal matrices: a diagonal linear recurrence with constant transitions in every channel.

    Source: Gu et al., "On the parameterization and initialization of diagonal state space models" (NeurIPS 2022).
    Differs from the source: embedding and read-out are as in `StackedRNN`. Dropout is absent.
    """

    Config = S4DConfig
    layer_kinds = (S4DLayer,)
