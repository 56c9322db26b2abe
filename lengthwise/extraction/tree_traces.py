"""Whether a model's states stay in the classes that a machine gives them, node by node, on given strings."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.congruence import GAP
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.extraction.base import Extraction, TraceCount
from lengthwise.extraction.prototypes import largest_finite
from lengthwise.extraction.tree import MAX_MERGES_PER_CHUNK, check_tree
from lengthwise.models.base import TreeModel
from lengthwise.ops.answers import answers_of
from lengthwise.ops.tree_attention import Tree, merge_windows, num_levels
from lengthwise.randomness import generator_for

MAX_SYMBOLS_PER_CHUNK = 1 << 21
"""Trees are built over chunks of strings with no more symbols."""

MAX_DISTINCT = 1 / 2
"""Equal windows of many states, and equal states, are one where no larger part of them is distinct."""

MAX_WORDS = 1024
NUM_POWERS = 60


class TreeLevel(NamedTuple):
    """The merged nodes of one level of some trees, first one over pads only; equal ones are one where they are many.

    `windows` are rows of the level below, oldest first; `counts` says how many nodes each of them is, and `rows` which
    of `states` is theirs: that of the same number, but where states are few.
    """

    windows: Int64[Tensor, "W C"]
    rows: Int64[Tensor, " W"]
    states: Float[Tensor, "R D"]
    counts: Int64[Tensor, " W"]


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
    states, codes, levels = tree.leaves, strings + 1, []
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(states), tree.chunk_size)
        states, rows = _merged(tree, states, windows)
        counts = codes.flatten().bincount(minlength=len(windows))
        counts[0].clamp_(min=1)  # the pads, which fill chunks up at higher levels
        levels.append(TreeLevel(windows, rows, states, counts))
        codes = rows[codes]
    return Trees(levels, codes[:, 0])


def _merged(
    tree: Tree, states: Float[Tensor, "N D"], windows: Int64[Tensor, "W C"]
) -> tuple[Float[Tensor, "R D"], Int64[Tensor, " W"]]:
    """The states of windows of states, equal ones as one where they are many, and the row of each window."""
    chunks = [distinct_rows(merge_windows(tree.layers[0], states[part])) for part in windows.split(MAX_MERGES_PER_CHUNK)]
    starts = [0, *accumulate(len(rows) for rows, _ in chunks)]
    numbers = torch.cat([start + numbers for start, (_, numbers) in zip(starts, chunks, strict=False)])
    distinct, of_rows = distinct_rows(torch.cat([rows for rows, _ in chunks]))
    return distinct, of_rows[numbers]


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
        levels.append(TreeLevel(windows, words, rows, torch.ones_like(words)))
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
            classes, distances = (torch.cat(parts)[level.rows] for parts in zip(*chunks, strict=True))
            of_windows = torch.from_numpy(machine.merged(expected[level.windows].numpy()))
            # Of windows with one state and several classes all but one are wrong here, whichever goes on.
            expected = torch.full((len(level.states),), GAP).index_put((level.rows,), of_windows)
            wrong = (classes != of_windows) | (of_windows < 0) | ~distances.isfinite()
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
    if num_rows**chunk_size < 2**62:
        indices = num_rows ** torch.arange(chunk_size - 1, -1, -1)
        keys = torch.cat([indices.new_zeros(1), (windows * indices).sum(-1).flatten()])
        distinct, numbers = keys.unique(return_inverse=True)
        if num_rows**chunk_size < len(keys) or len(distinct) <= len(keys) * MAX_DISTINCT:
            return distinct[:, None] // indices % num_rows, numbers[1:].view(windows.shape[:2])
    numbers = torch.arange(1, windows[..., 0].numel() + 1).view(windows.shape[:2])
    return torch.cat([windows.new_zeros(1, chunk_size), windows.flatten(0, 1)]), numbers


def distinct_rows(rows: Float[Tensor, "N D"]) -> tuple[Float[Tensor, "R D"], Int64[Tensor, " N"]]:
    """Rows that are equal to the last bit as one, where many are, in order, and the number of each row."""
    bits = rows.contiguous().view(torch.int32)
    factors = torch.randint(-(2**62), 2**62, bits.shape[1:], generator=generator_for(0, "distinct rows"))
    keys = torch.cat([(part * factors).sum(1) for part in bits.split(MAX_MERGES_PER_CHUNK)])  # of whole numbers mod 2^64
    distinct, numbers = keys.unique(return_inverse=True)
    if len(distinct) <= len(rows) * MAX_DISTINCT:
        first = torch.full_like(distinct, len(rows)).scatter_reduce(0, numbers, torch.arange(len(rows)), "amin")
        first, order = first.sort()
        numbers = order.argsort()[numbers]
        if torch.equal(bits[first][numbers], bits):  # and no two rows have one key
            return rows[first], numbers
    return rows, torch.arange(len(rows))
