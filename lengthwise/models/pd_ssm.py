"""PD-SSM: the input chooses transitions that have a single nonzero number in every column, or in every row."""

from pydantic import Field

from lengthwise.layers.sparse_linear import Diagonal, PDSSMLayer
from lengthwise.models.base import MAX_WIDTH, MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN
from lengthwise.ops.sparse_recurrence import Form


class PDSSMConfig(StackedConfig):
    """The settings of a `PDSSM`: width D, layers, N states, K matrices, and the parts of a transition (`PDSSMLayer`).

    - `diagonal`: the diagonal contains complex numbers with absolute values below 1 (`"full"`) or equal to 1
      (`"phase"`). With `"none"`, all entries of the diagonal are 1, and all numbers are real.
    - `driven`: whether inputs are added to states.
    - `form`: transitions have a single nonzero number in every column (`"scatter"`) or in every row (`"gather"`).
    """

    d_state: Width = 64
    num_matrices: int = Field(8, ge=1, le=MAX_WIDTH)
    diagonal: Diagonal = "full"
    driven: bool = True
    form: Form = "scatter"


@MODELS.register("pd-ssm")
class PDSSM(StackedRNN):
    """x_t = P(u_t) D(u_t) x_{t-1} + B u_t, where P(u) has a single 1 in every column, and D(u) is a complex diagonal.

    Here x_t is the state, u_t is the input of the layer, and B is a learned matrix. With ``form="gather"``, the
    transition is D(u_t) P(u_t), and P(u) has a single 1 in every row.

    With ``diagonal="none"``, ``driven=False`` and ``form="scatter"``, states of layers are one-hot vectors, and a net
    of one layer is a machine of N states.

    Source: Terzić et al., "Structured sparse transition matrices to enable state tracking in state-space models"
        (NeurIPS 2025).
    Differs from the source: see `PDSSMLayer`; embedding, residuals, norms and the hidden layer of the read-out are as
        in `StackedRNN`.
    """

    Config = PDSSMConfig
    config: PDSSMConfig
    layer_kinds = (PDSSMLayer,)
