"""Whether a model's states stay in the classes that a machine gives them, node by node, on given strings."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.extraction import MERGES_AT_ONCE, Extraction, TreeModel
from lengthwise.ops.tree_attention import merge_windows, num_levels

SYMBOLS_AT_ONCE = 1 << 21
"""Strings are read in parts of at most so many symbols: memory does not grow with their number."""


class Following(NamedTuple):
    """Nodes of the trees over some strings: how many, in how many the state has another class than the table says.

    `farthest` is the largest distance of a state to the prototype of its class; a state that gives an answer which no
    prototype gives, or that is not finite, counts as a disagreement.
    """

    num_strings: int
    num_nodes: int
    num_disagreements: int
    farthest: float

    def __add__(self, other: object) -> "Following":
        if not isinstance(other, Following):
            return NotImplemented
        return Following(
            self.num_strings + other.num_strings,
            self.num_nodes + other.num_nodes,
            self.num_disagreements + other.num_disagreements,
            max(self.farthest, other.farthest),
        )


@torch.no_grad()
def follow(model: TreeModel, extraction: Extraction, strings: Int64[Tensor, "B T"]) -> Following:
    """Read strings by the model and by the extracted table side by side, and compare the classes of all merged nodes.

    The class of a state is that of the nearest prototype which gives the same answer (`Extraction.classes_of`), a
    function of the state and the model alone; the class of a node is what the table makes of the classes of its parts.
    Nodes over equal windows of symbols are computed once.
    """
    parts = strings.split(max(1, SYMBOLS_AT_ONCE // strings.shape[1]))
    return sum((_follow_part(model, extraction, part) for part in parts), Following(0, 0, 0, 0.0))


def _follow_part(model: TreeModel, extraction: Extraction, strings: Int64[Tensor, "B T"]) -> Following:
    tree, machine = model.tree, extraction.machine
    assert isinstance(machine, TreeMachine)
    rows, classes, codes = tree.leaves, torch.from_numpy(machine.leaves.copy()), strings + 1
    seen = Following(len(strings), 0, 0, 0.0)
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(rows), tree.chunk_size)
        merged = [merge_windows(tree.layers[0], rows[some]) for some in windows.split(MERGES_AT_ONCE)]
        found, distances = zip(*(extraction.classes_of(model, states) for states in merged), strict=True)
        rows, classes = torch.cat(merged), torch.from_numpy(machine.merged(classes[windows].numpy()))
        count = codes.flatten().bincount(minlength=len(windows))
        count[0] = max(1, int(count[0]))  # the window of pads, which fills chunks up at higher levels
        distance = torch.cat(distances)
        wrong = (torch.cat(found) != classes) | (classes < 0) | ~distance.isfinite()
        seen += Following(0, int(count.sum()), int(count[wrong].sum()), farthest(distance))
    return seen


def farthest(distances: Float[Tensor, " N"]) -> float:
    """The largest of these that is finite, at least 0."""
    return max(0.0, float(distances.where(distances.isfinite(), 0.0).max()))


def _distinct_windows(
    codes: Int64[Tensor, "B N"], num_rows: int, chunk_size: int
) -> tuple[Int64[Tensor, "R C"], Int64[Tensor, "B M"]]:
    """Windows of C codes, oldest first, each once where they are few, and which of them stands where.

    The first is the window of pads (code 0), which fill the first chunk up in front.
    """
    filled = torch.nn.functional.pad(codes, (-codes.shape[1] % chunk_size, 0))
    windows = filled.unflatten(1, (-1, chunk_size))
    if num_rows**chunk_size > windows[..., 0].numel():
        numbers = torch.arange(1, windows[..., 0].numel() + 1).view(windows.shape[:2])
        return torch.cat([windows.new_zeros(1, chunk_size), windows.flatten(0, 1)]), numbers
    places = num_rows ** torch.arange(chunk_size - 1, -1, -1)
    keys = (windows * places).sum(-1)
    occurs = keys.flatten().bincount(minlength=num_rows**chunk_size) > 0
    occurs[0] = True
    numbers = occurs.cumsum(0) - 1
    return torch.nonzero(occurs)[:, 0, None] // places % num_rows, numbers[keys]
