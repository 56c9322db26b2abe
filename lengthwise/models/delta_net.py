"""DeltaNet, Gated DeltaNet and DeltaProduct."""

from collections.abc import Sequence

from pydantic import Field, model_validator

from lengthwise.layers.delta_net import DeltaNetLayer, Eigenvalues
from lengthwise.layers.feed_forward_layer import FeedForwardLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.models.base import MAX_CONVOLUTION, MAX_WIDTH, MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN
from lengthwise.validation import check_divisor


class DeltaNetConfig(StackedConfig):
    """The settings of a `DeltaNet`: width D, number of layers, heads H (a divisor of D), and Householder matrices.

    - `householders`, `eigenvalues`, `gated`: as in `DeltaNetLayer`. DeltaNet has a single Householder matrix and
      `"positive"` eigenvalues. Gated DeltaNet sets `gated` to True, and DeltaProduct has several Householder matrices.
    - `conv`: the width of a short convolution before the recurrence; 0 means none.
    - `mlp`: the hidden units of a `FeedForwardLayer` after the recurrence; 0 means none.
    """

    num_heads: Width = 4
    householders: int = Field(1, ge=1, le=MAX_WIDTH)
    eigenvalues: Eigenvalues = "signed"
    gated: bool = False
    conv: int = Field(0, ge=0, le=MAX_CONVOLUTION)
    mlp: int = Field(0, ge=0, le=MAX_WIDTH)

    @model_validator(mode="after")
    def _parts_fit(self) -> "DeltaNetConfig":
        check_divisor("num_heads", self.num_heads, self.d_model)
        d_key = self.d_model // self.num_heads
        if self.householders > d_key:
            raise ValueError(
                f"householders: expected at most {d_key}, the dimension of a key (d_model / num_heads), got "
                f"{self.householders}; choose householders={d_key}, which suffices for every orthogonal matrix, or "
                "choose fewer heads"
            )
        return self


@MODELS.register("delta-net")
class DeltaNet(StackedRNN):
    """An associative memory. Each symbol erases or reflects the stored values along its own keys (`DeltaNetLayer`).

    A `FeedForwardLayer` may follow each recurrence. With one layer and no convolution, the update of the state depends
    only on the symbol.

    Source: Yang et al. (NeurIPS 2024), Grazzi et al. (ICLR 2025), Yang, Kautz and Hatamizadeh (ICLR 2025), Siems et al.
        (2025): see the layer.
    Differs from the source: see the layer; embedding and read-out are as in `StackedRNN`. The norms of this model are
        LayerNorms, but the published blocks have RMSNorms.
    """

    Config = DeltaNetConfig
    config: DeltaNetConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        config = self.config
        mixer = DeltaNetLayer(**config.for_layer(DeltaNetLayer))
        return [mixer, FeedForwardLayer(d_model=config.d_model, hidden=config.mlp)] if config.mlp else [mixer]
