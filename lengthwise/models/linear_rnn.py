"""The linear recurrent network with one dense transition matrix."""

from lengthwise.layers.linear_recurrence import DenseLinearLayer
from lengthwise.models.base import MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN


class LinearRNNConfig(StackedConfig):
    """The settings of a `LinearRNN`: width D, number of layers, and the size of the state."""

    d_state: Width = 64


@MODELS.register("linear-rnn")
class LinearRNN(StackedRNN):
    """x_t = A x_{t-1} + B u_t with a dense matrix A that is the same for every input.

    Here x_t is the state, u_t is the input of the layer, and B is a learned matrix.

    Source: Fan et al. (2024), eq. (2), the "vanilla LRNN" of section 4.
    Differs from the source: the paper defines only the recurrence; everything else is as in `StackedRNN`.
    """

    Config = LinearRNNConfig
    config: LinearRNNConfig
    layer_kinds = (DenseLinearLayer,)
