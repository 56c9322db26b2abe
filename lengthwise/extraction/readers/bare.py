"""The reader of tree models without normalization, such as compiled trees."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.extraction.base import READERS, Extraction
from lengthwise.extraction.readers.tree import TreeReader
from lengthwise.extraction.tree import extract_tree
from lengthwise.layers.tree_layers import BareLayer
from lengthwise.models.base import TreeModel

MAX_POINTS = 1_000
"""The largest number of classes if all weights are integers.

A class is then one point: two states are equal to the last bit, or at least 1 apart. So all radii below 1 give the same
classes, and one extraction replaces several. With chunks of two, a table of these classes has 10^6 entries.
"""


@READERS.register("bare")
class BareReader(TreeReader):
    """A reader of trees whose merges are only attention and ReLU (`BareLayer`).

    With integer weights, more classes are allowed than for other trees.
    """

    @classmethod
    def reads(cls, model: TreeModel) -> bool:
        return type(model.tree.layers[0]) is BareLayer

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        radii = super().radii(strings)
        below_1 = [radius for radius in radii if radius < 1]  # for integers, these give the same classes
        return [radius for radius in radii if radius >= 1] + (below_1[:1] if has_whole_weights(self.model) else below_1)

    def extract(self, radius: float) -> Extraction:
        if not has_whole_weights(self.model):
            return super().extract(radius)
        return extract_tree(self.model, self.symbols, radius=radius, max_classes=MAX_POINTS)


def has_whole_weights(model: torch.nn.Module) -> bool:
    """Return whether all numbers in the model's parameters are integers."""
    return all(torch.equal(weight, weight.round()) for weight in model.parameters())
