"""Whether a model's states stay in the classes that a machine gives them, node by node, on given strings."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.extraction.base import Extraction, TraceCount
from lengthwise.extraction.prototypes import largest_finite
from lengthwise.extraction.tree import MAX_MERGES_PER_CHUNK, check_tree
from lengthwise.models.base import TreeModel
from lengthwise.ops.answers import answers_of
from lengthwise.ops.tree_attention import merge_windows, num_levels

MAX_SYMBOLS_PER_CHUNK = 1 << 21
"""Trees are built over chunks of strings with no more symbols."""


MAX_WORDS = 1024
NUM_POWERS = 60


class TreeLevel(NamedTuple):
    """The merged nodes of one level of some trees, first one over pads only; equal windows are one where they are many.

    `windows` are rows of the level below, oldest first; `counts` says how many nodes each of them is.
    """

    windows: Int64[Tensor, "R C"]
    states: Float[Tensor, "R D"]
    counts: Int64[Tensor, " R"]


class Trees(NamedTuple):
    """The trees that a model builds over strings: their levels, and the row of each root in the last of them."""

    levels: Sequence[TreeLevel]
    roots: Int64[Tensor, " B"]

    @property
    def num_elements(self) -> int:
        """The number of elements of all states."""
        return sum(level.states.numel() for level in self.levels)


def tree_chunks(strings: Int64[Tensor, "B T"]) -> Sequence[Int64[Tensor, "_ T"]]:
    """Strings in chunks whose trees fit into memory, one chunk at a time."""
    chunks: Sequence[Tensor] = strings.split(max(1, MAX_SYMBOLS_PER_CHUNK // strings.shape[1]))
    return chunks


@torch.no_grad()
def build_trees(model: TreeModel, strings: Int64[Tensor, "B T"]) -> Trees:
    """All nodes over some strings: about 25 MB for a million symbols, at width 64 and of an alphabet of two.

    Raises:
        ValueError: the model is not a tree of one layer a level whose pads are merged.
    """
    check_tree(tree := model.tree)
    rows, codes, levels = tree.leaves, strings + 1, []
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(rows), tree.chunk_size)
        chunks = windows.split(MAX_MERGES_PER_CHUNK)
        rows = torch.cat([merge_windows(tree.layers[0], rows[chunk]) for chunk in chunks])
        counts = codes.flatten().bincount(minlength=len(windows))
        counts[0].clamp_(min=1)  # the pads, which fill chunks up at higher levels
        levels.append(TreeLevel(windows, rows, counts))
    return Trees(levels, codes[:, 0])


@torch.no_grad()
def power_trees(model: TreeModel, num_symbols: int) -> Trees:
    """The trees over powers of words, w^(C^k) for w of C or C^2 symbols and k up to 60, at one merge a level.

    Of words there are at most 1,024 of each length, spread evenly over all. What grows slowly with the depth of a tree
    shows here, and on no string that could be written down.

    Raises:
        ValueError: as `build_trees`.
    """
    check_tree(tree := model.tree)
    rows, levels = tree.leaves, []
    words = torch.arange(1, num_symbols + 1)
    for level in range(NUM_POWERS):
        chunk = tree.chunk_size
        windows = words[:, None].expand(-1, chunk)
        if level < 2:
            numbers = torch.linspace(0, len(words) ** chunk - 1, min(len(words) ** chunk, MAX_WORDS)).long()
            digits = len(words) ** torch.arange(chunk - 1, -1, -1)
            windows = words[numbers[:, None] // digits % len(words)]
        rows = torch.cat([merge_windows(tree.layers[0], rows[part]) for part in windows.split(MAX_MERGES_PER_CHUNK)])
        words = torch.arange(len(rows))
        levels.append(TreeLevel(windows, rows, torch.ones_like(words)))
    return Trees(levels, words)


@torch.no_grad()
def root_answers(model: TreeModel, trees: Iterable[Trees]) -> Int64[Tensor, " B"]:
    """The model's answers to the strings that the trees are over; -1, which is wrong, where they overflow."""
    return answers_of(torch.cat([model.readout(built.levels[-1].states[built.roots]) for built in trees]))


@torch.no_grad()
def compare_traces(model: TreeModel, extraction: Extraction, trees: Iterable[Trees]) -> TraceCount:
    """Compare the classes of all merged nodes of a model's trees with those that the extracted table gives them.

    The class of a state is that of the nearest prototype which gives the same answer (`Extraction.classes_of`), a
    function of the state and the model alone; the class of a node is what the table makes of the classes of its parts.
    """
    machine, count = extraction.machine, TraceCount(0, 0, 0, 0.0)
    assert isinstance(machine, TreeMachine)
    for levels, roots in trees:
        count += TraceCount(len(roots), 0, 0, 0.0)
        expected = torch.from_numpy(machine.leaves.copy())
        for level in levels:
            chunks = (extraction.classes_of(model, states) for states in level.states.split(MAX_MERGES_PER_CHUNK))
            classes, distances = map(torch.cat, zip(*chunks, strict=True))
            expected = torch.from_numpy(machine.merged(expected[level.windows].numpy()))
            wrong = (classes != expected) | (expected < 0) | ~distances.isfinite()
            num_wrong = int(level.counts[wrong].sum())
            count += TraceCount(0, int(level.counts.sum()), num_wrong, largest_finite(distances))
    return count


def _distinct_windows(
    codes: Int64[Tensor, "B N"], num_rows: int, chunk_size: int
) -> tuple[Int64[Tensor, "R C"], Int64[Tensor, "B M"]]:
    """Windows of C codes, oldest first, each once where they are few, and the number of the window at each index.

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
