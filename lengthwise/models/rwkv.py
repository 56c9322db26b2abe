"""RWKV, version 4."""

from lengthwise.layers.rwkv import ChannelMix, TimeMix
from lengthwise.models.base import MODELS
from lengthwise.models.stacked_rnn import StackedRNN


@MODELS.register("rwkv")
class RWKV(StackedRNN):
    """Averages of values, with weights that decay at constant rates, and a mix of channels (`TimeMix`, `ChannelMix`).

    Source: Peng et al., "RWKV: reinventing RNNs for the Transformer era" (Findings of EMNLP 2023).
    Differs from the source: see `TimeMix`; embedding and read-out are as in `StackedRNN`.
    """

    layer_kinds = (TimeMix, ChannelMix)
