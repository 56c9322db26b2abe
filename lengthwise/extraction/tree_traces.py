"""Whether a model's states stay in the classes that a machine gives them, node by node, on given strings."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.extraction.tree import MAX_MERGES_PER_CHUNK, Extraction, TreeModel, check_tree
from lengthwise.ops.answers import answers_of
from lengthwise.ops.tree_attention import merge_windows, num_levels

MAX_SYMBOLS_PER_CHUNK = 1 << 21
"""Trees are grown over parts of at most so many symbols."""


class TraceCount(NamedTuple):
    """Nodes of the trees over some strings: how many, in how many the state has another class than the table says.

    `farthest` is the largest distance of a state to the prototype of its class; a state that gives an answer which no
    prototype gives, or that is not finite, counts as a disagreement.
    """

    num_strings: int
    num_nodes: int
    num_disagreements: int
    farthest: float

    def __add__(self, other: object) -> "TraceCount":
        if not isinstance(other, TraceCount):
            return NotImplemented
        return TraceCount(
            self.num_strings + other.num_strings,
            self.num_nodes + other.num_nodes,
            self.num_disagreements + other.num_disagreements,
            max(self.farthest, other.farthest),
        )


class TreeLevel(NamedTuple):
    """The merged nodes of one level of some trees, first one over pads only; equal ones are one where they are many.

    `windows` are places in the level below, oldest first; `counts` says how many nodes each of them is.
    """

    windows: Int64[Tensor, "R C"]
    states: Float[Tensor, "R D"]
    counts: Int64[Tensor, " R"]


class Trees(NamedTuple):
    """The trees that a model grows over some strings: their levels, and the place of each root in the last of them."""

    levels: Sequence[TreeLevel]
    roots: Int64[Tensor, " B"]

    @property
    def num_elements(self) -> int:
        """How many numbers the states of all nodes have."""
        return sum(level.states.numel() for level in self.levels)


def tree_chunks(strings: Int64[Tensor, "B T"]) -> Sequence[Int64[Tensor, "_ T"]]:
    """Strings in parts whose trees fit into memory, one part at a time."""
    parts: Sequence[Tensor] = strings.split(max(1, MAX_SYMBOLS_PER_CHUNK // strings.shape[1]))
    return parts


@torch.no_grad()
def build_trees(model: TreeModel, strings: Int64[Tensor, "B T"]) -> Trees:
    """All nodes over some strings: at width 64 and of two symbols some 25 MB for a million symbols.

    Raises:
        ValueError: the model is not a tree of one layer a level whose pads are merged.
    """
    check_tree(tree := model.tree)
    rows, codes, levels = tree.leaves, strings + 1, []
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(rows), tree.chunk_size)
        rows = torch.cat([merge_windows(tree.layers[0], rows[some]) for some in windows.split(MAX_MERGES_PER_CHUNK)])
        counts = codes.flatten().bincount(minlength=len(windows))
        counts[0].clamp_(min=1)  # the pads, which fill chunks up at higher levels
        levels.append(TreeLevel(windows, rows, counts))
    return Trees(levels, codes[:, 0])


@torch.no_grad()
def root_answers(model: TreeModel, trees: Iterable[Trees]) -> Int64[Tensor, " B"]:
    """The model's answers to the strings that the trees are over; -1, which is wrong, where they overflow."""
    return answers_of(torch.cat([model.readout(some.levels[-1].states[some.roots]) for some in trees]))


@torch.no_grad()
def compare_traces(model: TreeModel, extraction: Extraction, trees: Iterable[Trees]) -> TraceCount:
    """Compare the classes of all merged nodes of a model's trees with those that the extracted table gives them.

    The class of a state is that of the nearest prototype which gives the same answer (`Extraction.classes_of`), a
    function of the state and the model alone; the class of a node is what the table makes of the classes of its parts.
    """
    machine, seen = extraction.machine, TraceCount(0, 0, 0, 0.0)
    assert isinstance(machine, TreeMachine)
    for levels, roots in trees:
        seen += TraceCount(len(roots), 0, 0, 0.0)
        classes = torch.from_numpy(machine.leaves.copy())
        for level in levels:
            parts = (extraction.classes_of(model, states) for states in level.states.split(MAX_MERGES_PER_CHUNK))
            found, distances = (torch.cat(both) for both in zip(*parts, strict=True))
            classes = torch.from_numpy(machine.merged(classes[level.windows].numpy()))
            wrong = (found != classes) | (classes < 0) | ~distances.isfinite()
            seen += TraceCount(0, int(level.counts.sum()), int(level.counts[wrong].sum()), farthest(distances))
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
    indices = num_rows ** torch.arange(chunk_size - 1, -1, -1)
    keys = (windows * indices).sum(-1)
    occurs = keys.flatten().bincount(minlength=num_rows**chunk_size) > 0
    occurs[0] = True
    numbers = occurs.cumsum(0) - 1
    return torch.nonzero(occurs)[:, 0, None] // indices % num_rows, numbers[keys]
