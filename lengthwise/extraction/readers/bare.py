"""Machines read off tree models without normalization, as compiled ones are."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.extraction.base import READERS, Extraction
from lengthwise.extraction.readers.tree import TreeReader
from lengthwise.extraction.tree import extract_tree
from lengthwise.layers.tree_layers import BareLayer
from lengthwise.models.base import SequenceModel, TreeModel

MAX_POINTS = 1_000
"""The largest number of classes where weights are whole numbers.

Then a class is one point: states are equal to the last bit or at least 1 apart, all radii below 1 give the same
classes, and one closing decides what of other models takes one for each radius. A table of them has 10^6 entries.
"""


@READERS.register("bare")
class BareReader(TreeReader):
    """Reads trees whose merges are attention and ReLU alone (`BareLayer`): more classes where numbers are whole."""

    @staticmethod
    def reads(model: SequenceModel) -> bool:
        return isinstance(model, TreeModel) and type(model.tree.layers[0]) is BareLayer

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        radii = super().radii(strings)
        below_1 = [radius for radius in radii if radius < 1]
        return [radius for radius in radii if radius >= 1] + (below_1[:1] if has_whole_weights(self.model) else below_1)

    def extract(self, radius: float) -> Extraction:
        if not has_whole_weights(self.model):
            return super().extract(radius)
        return extract_tree(self.model, self.symbols, radius=radius, max_classes=MAX_POINTS)


def has_whole_weights(model: torch.nn.Module) -> bool:
    """Whether all parameters are whole numbers."""
    return all(torch.equal(weight, weight.round()) for weight in model.parameters())
