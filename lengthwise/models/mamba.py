"""Mamba and Mamba-2, with decays between 0 and 1 or between -1 and 1."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import Field, model_validator

from lengthwise.layers.mamba import Mamba2Layer, MambaLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.models.base import MAX_CONVOLUTION, MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN
from lengthwise.ops.selective_scan import Eigenvalues
from lengthwise.validation import check_divisor


class MambaConfig(StackedConfig):
    """The settings of `Mamba`: width D, number of layers, version, state, decays and convolution.

    - `version`: Mamba (1) has separate decays for each channel, and Mamba-2 (2) has one decay for each head.
    - `d_state`: the size of the state of a channel.
    - `eigenvalues`: decays are in [0, 1] (`"positive"`) or in [-1, 1] (`"signed"`).
    - `conv`: the width of the convolution before the recurrence. 0 means none. The published code has width 4.
    - `learned_start`: whether the state before the first symbol is learned or 0.
    """

    used_with = MappingProxyType({"num_heads": ("version", (2,))})

    version: Literal[1, 2] = 1
    d_state: Width = 16
    num_heads: Width = 4
    eigenvalues: Eigenvalues = "positive"
    conv: int = Field(0, ge=0, le=MAX_CONVOLUTION)
    learned_start: bool = False

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "MambaConfig":
        # Mamba's inner width is twice its outer width.
        if self.version == 2:
            check_divisor("num_heads", self.num_heads, 2 * self.d_model, "2 d_model")
        return self


@MODELS.register("mamba")
class Mamba(StackedRNN):
    """Linear recurrences whose real decays are computed from the input: `MambaLayer` or `Mamba2Layer`.

    With decays in [0, 1] and finite precision, no number of layers can compute parity at all lengths. With decays in
    [-1, 1], one layer can (`tests/models/test_mamba.py` has its weights), but no number of layers can count modulo 3.

    Source: Gu and Dao, "Mamba: linear-time sequence modeling with selective state spaces" (2023); Dao and Gu,
        "Transformers are SSMs" (ICML 2024); Grazzi et al., "Unlocking state-tracking in linear RNNs through negative
        eigenvalues" (ICLR 2025), theorems 1 and 2.
    Differs from the source: see the layers; embedding, norms and read-out are as in `StackedRNN`.
    """

    Config = MambaConfig
    config: MambaConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        if self.config.version == 2:
            return [Mamba2Layer(**self.config.for_layer(Mamba2Layer))]
        return [MambaLayer(**self.config.for_layer(MambaLayer))]
