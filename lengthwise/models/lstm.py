"""Long short-term memory."""

from lengthwise.layers.gated_cells import LSTMLayer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import BoundedStackedRNN


@MODELS.register("lstm")
class LSTM(BoundedStackedRNN):
    """Long short-term memory: a nonlinear recurrence. The model uses torch's LSTM cell.

    Source: Hochreiter and Schmidhuber, "Long short-term memory" (Neural Computation, 1997).
    Differs from the source: see `LSTMLayer`; embedding, residuals, norms and read-out are as in `StackedRNN`.
    """

    layer_kinds = (LSTMLayer,)
