"""Traces of tree models: their states on given strings, compared with a machine's classes node by node."""

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
"""The largest number of symbols in the strings over which trees are built at once."""

MAX_KNOWN = 2_000
"""The largest number of states whose merges are cached."""

MAX_WORDS = 1024
"""The largest number of words of one length whose powers are traced."""

NUM_POWERS = 60
"""The number of levels of trees over powers of words."""


class TreeLevel(NamedTuple):
    """The merged nodes of one level of some trees; the first node is over pads only.

    A row of `windows` lists the parts of a window, oldest first, as indices into the states of the level below. Equal
    windows are stored once if few are distinct. `counts` is the number of nodes with each window, and `rows` is the
    index of the window's state in `states`. Equal states are also stored once if few are distinct.
    """

    windows: Int64[Tensor, "W C"]
    rows: Int64[Tensor, " W"]
    states: Float[Tensor, "R D"]
    counts: Int64[Tensor, " W"]


class Trees(NamedTuple):
    """The trees that a model builds over strings: their levels, and the row of each root's state in the last level."""

    levels: Sequence[TreeLevel]
    roots: Int64[Tensor, " B"]

    @property
    def num_elements(self) -> int:
        """Return how many numbers the states of all levels contain together."""
        return sum(level.states.numel() for level in self.levels)


def tree_chunks(strings: Int64[Tensor, "B T"]) -> Sequence[Int64[Tensor, "_ T"]]:
    """Return the strings in chunks; the trees of one chunk fit into memory."""
    chunks: Sequence[Tensor] = strings.split(max(1, MAX_SYMBOLS_PER_CHUNK // strings.shape[1]))
    return chunks


class KnownMerges:
    """A cache of merged windows for models with few states, so that no window is merged twice.

    Two states are the same if they are equal to the last bit. With more than `MAX_KNOWN` states, the cache is dropped:
    it would cost more than it saves.
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
        """Return the merged states of windows of `states`, and the row of each window's merged state."""
        merged = self._indices_of_merged(states, windows) if self._are_few else None
        if merged is None:
            chunks = [merge_windows(self._layer, states[chunk]) for chunk in windows.split(MAX_MERGES_PER_CHUNK)]
            return torch.cat(chunks), torch.arange(len(windows))
        indices, rows = merged.unique(return_inverse=True)
        first = torch.full_like(indices, len(rows)).scatter_reduce(0, rows, torch.arange(len(rows)), "amin")
        order = first.argsort()  # the order of the windows, in which the state of the pads comes first
        return self._states[indices[order]], order.argsort()[rows]

    def _indices_of_merged(
        self, states: Float[Tensor, "N D"], windows: Int64[Tensor, "W C"]
    ) -> Int64[Tensor, " W"] | None:
        """Return the index of each window's merged state in the cache; None if there are too many states."""
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
        """Return the index of each state; a state that is not in the cache gets a new index."""
        rows = [row.tobytes() for row in states.detach().numpy()]
        indices = torch.tensor([self._indices.setdefault(row, len(self._indices)) for row in rows])
        new = torch.zeros(len(self._indices) - len(self._states), dtype=torch.int64)
        is_new = indices >= len(self._states)
        new[indices[is_new] - len(self._states)] = torch.nonzero(is_new)[:, 0]
        self._states = torch.cat([self._states, states[new]])
        return indices


@torch.no_grad()
def build_trees(model: TreeModel, strings: Int64[Tensor, "B T"], known: KnownMerges | None = None) -> Trees:
    """Return all nodes of the trees over some strings.

    For strings of a million symbols in all, over an alphabet of two, the nodes take about 25 MB at width 64.

    Example: the three levels over ababa, in chunks of 2. Each begins with a window of pads. The leaves are 0 for the
    pad, 1 for a and 2 for b. At level 1, (. a) has the same state as pads, so it is row 0; (b a) is row 1.
        >>> from lengthwise import construct, make_task
        >>> model = construct("regular-gpt", make_task("parity")).model
        >>> trees = build_trees(model, torch.tensor([[0, 1, 0, 1, 0]]))
        >>> for level in trees.levels:
        ...     print(level.windows.tolist(), "states", level.rows.tolist(), "of", len(level.states))
        [[0, 0], [0, 1], [2, 1], [2, 1]] states [0, 0, 1, 1] of 2
        [[0, 0], [0, 0], [1, 1]] states [0, 0, 0] of 1
        [[0, 0]] states [0] of 1

    Raises:
        ValueError: the model's tree has several layers per level, several chunk sizes, or pads that are not merged.
    """
    check_tree(tree := model.tree)
    known = known or KnownMerges(model)
    states = tree.leaves
    codes = strings + 1
    levels = []
    for _ in range(num_levels(strings.shape[1], tree.chunk_size)):
        windows, codes = _distinct_windows(codes, len(states), tree.chunk_size)
        counts = codes.flatten().bincount(minlength=len(windows))
        counts[0].clamp_(min=1)  # the node over pads is checked once, even if no chunk of this level contains it
        states, rows = known.merge(states, windows)
        levels.append(TreeLevel(windows, rows, states, counts))
        codes = rows[codes]
    return Trees(levels, codes[:, 0])


@torch.no_grad()
def power_trees(model: TreeModel, num_symbols: int) -> Trees:
    """Return the trees over words of C symbols, and over powers of words w of C^2 symbols.

    C is the tree's chunk size. A power repeats w C^k times, for k = 0, 1, 2, ..., and the longest powers have C^60
    symbols. A power needs only one merge at each level. For each length of words, at most 1,024 words are used, evenly
    spread over all words. If there are too many words to count, the words are drawn at random. These trees show errors
    that grow slowly with the depth, at lengths for which no string could be stored.

    Raises:
        ValueError: the model's tree has several layers per level, several chunk sizes, or pads that are not merged.
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
    """Return the digits of all numbers of `count` digits in base `base`, the most significant digit first.

    If there are more than `MAX_WORDS` numbers, only `MAX_WORDS` of them are used, spread evenly. If there are more than
    2^53 numbers, `MAX_WORDS` numbers are drawn at random.

    Example:
        >>> _spread_digits(2, 2).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if base**count > 1 << 53:  # `linspace` computes in float64, which cannot represent all larger integers
        return torch.randint(base, (MAX_WORDS, count), generator=generator_for(0, "powers"))
    numbers = torch.linspace(0, base**count - 1, min(base**count, MAX_WORDS), dtype=torch.float64).long()
    return numbers[:, None] // base ** torch.arange(count - 1, -1, -1) % base


@torch.no_grad()
def root_answers(model: TreeModel, trees: Iterable[Trees]) -> Int64[Tensor, " B"]:
    """Return the model's answers to the strings of the trees. If logits overflow, the answer is -1, which is wrong."""
    return answers_of(torch.cat([model.readout(built.levels[-1].states[built.roots]) for built in trees]))


@torch.no_grad()
def compare_traces(model: TreeModel, extraction: Extraction, trees: Iterable[Trees]) -> TraceCount:
    """Compare two classes of each merged node of a model's trees: from the node's state, and from the extracted table.

    The class of a state is the class of the nearest prototype that gives the same answer (`Extraction.classes_of`).
    This class depends only on the state and the model. The table gives the class of a node from the classes of the
    node's parts.
    """
    machine, count = extraction.machine, TraceCount(0, 0, 0, 0.0)
    assert isinstance(machine, TreeMachine)
    for levels, roots in trees:
        count += TraceCount(len(roots), 0, 0, 0.0)
        expected = torch.from_numpy(machine.leaves.copy())
        for level in levels:
            chunks = (extraction.classes_of(model, states) for states in level.states.split(MAX_MERGES_PER_CHUNK))
            classes, distances = (torch.cat(parts)[level.rows] for parts in zip(*chunks, strict=True))
            window_classes = torch.from_numpy(machine.merged(expected[level.windows].numpy()))
            # If the table has several classes for windows with the same state, at most one of them is the state's
            # class. The others count as wrong below, so any of them may be kept.
            expected = torch.full((len(level.states),), GAP).index_put((level.rows,), window_classes)
            wrong = (classes != window_classes) | (window_classes < 0) | ~distances.isfinite()
            num_wrong = int(level.counts[wrong].sum())
            count += TraceCount(0, int(level.counts.sum()), num_wrong, largest_finite(distances))
    return count


def _distinct_windows(
    codes: Int64[Tensor, "B N"], num_rows: int, chunk_size: int
) -> tuple[Int64[Tensor, "R C"], Int64[Tensor, "B M"]]:
    """Return windows of C codes, oldest first, and the row of the window at each position of the strings.

    Equal windows are listed once if few windows are possible. The first window contains only pads (code 0). Pads also
    fill the front of the first chunk.

    Example:
        >>> windows, numbers = _distinct_windows(torch.tensor([[1, 2, 1, 2, 1]]), num_rows=3, chunk_size=2)
        >>> windows.tolist(), numbers.tolist()
        ([[0, 0], [0, 1], [2, 1], [2, 1]], [[1, 2, 3]])
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
