"""The reader of tree models that quantize their states to codes."""

from jaxtyping import Int64
from torch import Tensor

from lengthwise.extraction.base import READERS
from lengthwise.extraction.readers.tree import TreeReader
from lengthwise.layers.codebook import QuantizingLayer
from lengthwise.models.base import TreeModel


@READERS.register("codebook")
class CodebookReader(TreeReader):
    """A reader of trees whose states are codes.

    The radius is at most half the smallest distance between codes, so each code is a class of its own.
    """

    @classmethod
    def reads(cls, model: TreeModel) -> bool:
        return isinstance(model.tree.layers[0], QuantizingLayer)

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        layer = self.model.tree.layers[0]
        assert isinstance(layer, QuantizingLayer)
        return [min(super().radii(strings)[0], layer.codebook.gap / 2)]
