"""Whether a model's states stay in the classes that a machine gives them, node by node, on given strings."""

from collections.abc import Iterable, Sequence
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
from lengthwise.ops.tree import num_levels
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.randomness import generator_for

MAX_SYMBOLS_PER_CHUNK = 1 << 21
"""Trees are built over chunks of strings with no more symbols."""

MAX_KNOWN = 2_000
"""The largest number of states whose merges are kept."""

MAX_WORDS = 1024
NUM_POWERS = 60


class TreeLevel(NamedTuple):
    """The merged nodes of one level of some trees, first one over pads only; equal windows are one where they are many.

    `windows` are rows of the states of the level below, oldest first; `counts` says how many nodes each of them is, and
    `rows` which of `states` is its own: equal states are one where they are few.
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


class KnownMerges:
    """The windows of a model's states that were merged so far, where its states are few: none of them is merged again.

    States are one if they are equal to the last bit. Once there are more than `MAX_KNOWN` nothing is kept any longer.
    """

    def __init__(self, model: TreeModel) -> None:
        self._layer = model.tree.layers[0]
        self._states = model.tree.leaves[:0]
        self._indices: dict[bytes, int] = {}
        self._merged: dict[tuple[int, ...], int] = {}
        self._are_few = True

    def merge(
        self, states: Float[Tensor, "N D"], windows: Int64[Tensor, "W C"]
    ) -> tuple[Float[Tensor, "R D"], Int64[Tensor, " W"]]:
        """The states of these windows of states, and the row of each window."""
        merged = self._indices_of_merged(states, windows) if self._are_few else None
        if merged is None:
            chunks = [merge_windows(self._layer, states[chunk]) for chunk in windows.split(MAX_MERGES_PER_CHUNK)]
            return torch.cat(chunks), torch.arange(len(windows))
        indices, rows = merged.unique(return_inverse=True)
        first = torch.full_like(indices, len(rows)).scatter_reduce(0, rows, torch.arange(len(rows)), "amin")
        order = first.argsort()  # that of the windows: the state of the pads stays the first
        return self._states[indices[order]], order.argsort()[rows]

    def _indices_of_merged(
        self, states: Float[Tensor, "N D"], windows: Int64[Tensor, "W C"]
    ) -> Int64[Tensor, " W"] | None:
        """The index of the state of each window; None where there are too many states."""
        keys = list(map(tuple, self._indices_of(states)[windows].tolist()))
        new = [key for key in dict.fromkeys(keys) if key not in self._merged]
        for start in range(0, len(new), MAX_MERGES_PER_CHUNK):
            chunk = new[start : start + MAX_MERGES_PER_CHUNK]
            merged = self._indices_of(merge_windows(self._layer, self._states[torch.tensor(chunk)]))
            self._merged.update(zip(chunk, merged.tolist(), strict=True))
            if len(self._states) > MAX_KNOWN:
                self._merged = {}
                self._indices = {}
                self._are_few = False
                return None
        return torch.tensor([self._merged[key] for key in keys])

    def _indices_of(self, states: Float[Tensor, "N D"]) -> Int64[Tensor, " N"]:
        """The index of each state, which is a new one where there is none."""
        rows = [row.tobytes() for row in states.detach().numpy()]
        indices = torch.tensor([self._indices.setdefault(row, len(self._indices)) for row in rows])
        new = torch.zeros(len(self._indices) - len(self._states), dtype=torch.int64)
        is_new = indices >= len(self._states)
        new[indices[is_new] - len(self._states)] = torch.nonzero(is_new)[:, 0]
        self._states = torch.cat([self._states, states[new]])
        return indices


@torch.no_grad()
def build_trees(model: TreeModel, strings: Int64[Tensor, "B T"], known: KnownMerges | None = None) -> Trees:
    """All nodes over some strings: about 25 MB for a million symbols, at width 64 and of an alphabet of two.

    Raises:
        ValueError: the model is not a tree of one layer a level and one chunk size whose pads are merged.
    """
    check_tree(tree := model.tree)
    known = known or KnownMerges(model)
    states = tree.leaves
    codes = strings + 1
    levels = []
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(states), tree.chunk_size)
        counts = codes.flatten().bincount(minlength=len(windows))
        counts[0].clamp_(min=1)  # the pads, which fill chunks up at higher levels
        states, rows = known.merge(states, windows)
        levels.append(TreeLevel(windows, rows, states, counts))
        codes = rows[codes]
    return Trees(levels, codes[:, 0])


@torch.no_grad()
def power_trees(model: TreeModel, num_symbols: int) -> Trees:
    """The trees over powers of words, w^(C^k) for w of C or C^2 symbols and k up to 60, at one merge a level.

    Of words there are at most 1,024 of each length, spread evenly over all, or drawn where they are too many
    to be counted. What grows slowly with the depth of a tree shows here, and on no string that could be written down.

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
            windows = words[_spread_digits(len(words), chunk)]
        rows = torch.cat([merge_windows(tree.layers[0], rows[part]) for part in windows.split(MAX_MERGES_PER_CHUNK)])
        words = torch.arange(len(rows))
        levels.append(TreeLevel(windows, words, rows, torch.ones_like(words)))
    return Trees(levels, words)


def _spread_digits(base: int, count: int) -> Int64[Tensor, "W _"]:
    """Numbers of that many digits, the most significant first: all, or `MAX_WORDS`, spread evenly over all of them."""
    if base**count > 1 << 53:  # more than floats count
        return torch.randint(base, (MAX_WORDS, count), generator=generator_for(0, "powers"))
    numbers = torch.linspace(0, base**count - 1, min(base**count, MAX_WORDS), dtype=torch.float64).long()
    return numbers[:, None] // base ** torch.arange(count - 1, -1, -1) % base


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
            # Where windows with one state have several classes all but one are wrong, whichever is followed.
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
    if num_rows**chunk_size > windows[..., 0].numel():
        numbers = torch.arange(1, windows[..., 0].numel() + 1).view(windows.shape[:2])
        return torch.cat([windows.new_zeros(1, chunk_size), windows.flatten(0, 1)]), numbers
    indices = num_rows ** torch.arange(chunk_size - 1, -1, -1)
    keys = (windows * indices).sum(-1)
    occurs = keys.flatten().bincount(minlength=num_rows**chunk_size) > 0
    occurs[0] = True
    numbers = occurs.cumsum(0) - 1
    return torch.nonzero(occurs)[:, 0, None] // indices % num_rows, numbers[keys]
