"""The reader of tree models."""

from collections.abc import Iterator

from jaxtyping import Int64
from torch import Tensor

from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces
from lengthwise.extraction.tree import extract_tree, is_traceable
from lengthwise.extraction.tree_traces import (
    KnownMerges,
    Trees,
    build_trees,
    compare_traces,
    power_trees,
    root_answers,
    tree_chunks,
)
from lengthwise.models.base import TreeModel
from lengthwise.models.codebook_gpt import CodebookGPT
from lengthwise.models.regular_gpt import RegularGPT

MAX_CACHED_ELEMENTS = 100_000_000
"""The largest number of elements in the states of trees that are kept. Larger trees are built again for each use."""


class TreeTraces(Traces):
    """The states of all nodes of the trees that a model builds over strings."""

    def __init__(self, model: TreeModel, strings: Int64[Tensor, "B T"]) -> None:
        self.model = model
        self.strings = strings
        self._cached: dict[int, Trees] = {}
        self._known = KnownMerges(model)

    @property
    def trees(self) -> Iterator[Trees]:
        """Yield the trees over all strings, one chunk of strings at a time."""
        for index, strings in enumerate(tree_chunks(self.strings)):
            trees = self._cached.get(index) or build_trees(self.model, strings, self._known)
            if trees.num_elements + sum(cached.num_elements for cached in self._cached.values()) <= MAX_CACHED_ELEMENTS:
                self._cached[index] = trees
            yield trees

    def compare(self, extraction: Extraction) -> TraceCount:
        return compare_traces(self.model, extraction, self.trees)

    def answers(self) -> Int64[Tensor, " B"] | None:
        """Return the answers at the trees' roots; None if the model's own answers may be different."""
        if type(self.model) not in (RegularGPT, CodebookGPT) or not is_traceable(self.model.tree):
            return None
        return root_answers(self.model, self.trees)


class PowerTraces(Traces):
    """The states of all nodes of the trees over powers of words (`power_trees`)."""

    def __init__(self, model: TreeModel, num_symbols: int) -> None:
        self.model = model
        self._trees = power_trees(model, num_symbols)

    def compare(self, extraction: Extraction) -> TraceCount:
        return compare_traces(self.model, extraction, [self._trees])


@READERS.register("tree")
class TreeReader(Reader[TreeModel]):
    """A reader of trees with one layer per level (`extract_tree`)."""

    kind = TreeModel

    def extract(self, radius: float) -> Extraction:
        return extract_tree(self.model, self.symbols, radius=radius)

    def traces(self, strings: Int64[Tensor, "B T"]) -> TreeTraces:
        return TreeTraces(self.model, strings)

    def power_traces(self) -> PowerTraces:
        return PowerTraces(self.model, len(self.symbols))
