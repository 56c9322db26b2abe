"""The gated recurrent unit."""

from lengthwise.layers.gated_cells import GRULayer
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import BoundedStackedRNN


@MODELS.register("gru")
class GRU(BoundedStackedRNN):
    """Gated recurrent units: a nonlinear recurrence. The model uses torch's GRU cell.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder" (EMNLP 2014).
    Differs from the source: see `GRULayer`; embedding, residuals, norms and read-out are as in `StackedRNN`.
    """

    layer_kinds = (GRULayer,)
