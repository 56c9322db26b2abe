"""Extended long short-term memory."""

from collections.abc import Sequence

from pydantic import Field, model_validator

from lengthwise.layers.feed_forward_layer import FeedForwardLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.layers.xlstm import MLSTMLayer, SLSTMLayer
from lengthwise.models.base import MAX_CONVOLUTION, MAX_LAYERS, MAX_WIDTH, MODELS, Width
from lengthwise.models.stacked_rnn import StackedConfig, StackedRNN
from lengthwise.validation import check_divisor

CELLS = {"s": SLSTMLayer, "m": MLSTMLayer}


class XLSTMConfig(StackedConfig):
    """The settings of an `XLSTM`: width D, number of layers, and the cells of a layer.

    - `cells`: a word with a letter for each cell of a layer, s for sLSTM and m for mLSTM.
    - `conv`: the width of the convolution in each cell. 0 means none. The published code has width 4.
    - `mlp`: the number of hidden units of a feed-forward layer after each cell; 0 means none.
    """

    cells: str = Field("s", max_length=MAX_LAYERS)
    num_heads: Width = 4
    conv: int = Field(0, ge=0, le=MAX_CONVOLUTION)
    mlp: int = Field(0, ge=0, le=MAX_WIDTH)

    @model_validator(mode="after")
    def _cells_are_known(self) -> "XLSTMConfig":
        if not self.cells or set(self.cells) - set(CELLS):
            raise ValueError(
                f"cells: expected a letter s or m for each cell of a layer, got {self.cells!r}; choose sm, for example"
            )
        return self

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "XLSTMConfig":
        check_divisor("num_heads", self.num_heads, self.d_model)
        if "s" in self.cells and self.num_heads == self.d_model:
            raise ValueError(
                f"num_heads: expected fewer than d_model={self.d_model} for sLSTM cells, got {self.num_heads}; choose "
                "fewer heads, because a head of one unit is constant after its norm"
            )
        if "m" in self.cells and self.d_model % 2:
            raise ValueError(
                f"d_model: expected an even number for mLSTM cells, got {self.d_model}; choose {self.d_model + 1}"
            )
        return self


@MODELS.register("xlstm")
class XLSTM(StackedRNN):
    """Layers of sLSTM and mLSTM cells.

    Cells of sLSTM can simulate any finite machine. Cells of mLSTM cannot compute parity, because their decays are
    positive.

    Source: Beck et al., "xLSTM: extended long short-term memory" (NeurIPS 2024).
    Differs from the source: see `SLSTMLayer` and `MLSTMLayer`. Feed-forward layers may follow both kinds of cells.
        These layers have class `FeedForwardLayer`, with SiLU instead of GELU. Embedding, norms and read-out are as in
        `StackedRNN`.
    """

    Config = XLSTMConfig
    config: XLSTMConfig

    def make_layers(self) -> Sequence[RecurrentLayer]:
        config = self.config
        layers: list[RecurrentLayer] = []
        for cell in config.cells:
            # The more cells the model has, the smaller the output map of an mLSTM is at the start.
            blocks = {"num_blocks": config.num_layers * len(config.cells)} if cell == "m" else {}
            layers.append(CELLS[cell](d_model=config.d_model, num_heads=config.num_heads, conv=config.conv, **blocks))
            if config.mlp:
                layers.append(FeedForwardLayer(d_model=config.d_model, hidden=config.mlp))
        return layers
