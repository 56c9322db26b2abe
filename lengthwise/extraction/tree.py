"""The finite machine inside a tree model: its states, closed level by level into classes."""

from collections.abc import Iterable
from itertools import chain

import numpy as np
import torch

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.automata.windows import MAX_MERGES, count_windows, window_blocks
from lengthwise.extraction.base import Extraction, extraction_of
from lengthwise.extraction.prototypes import NotFinite, Prototypes
from lengthwise.models.base import TreeModel
from lengthwise.ops.tree import Tree
from lengthwise.ops.tree_attention import merge_by_parts

MAX_MERGES_PER_CHUNK = 8192
MAX_WINDOWS = 2_000_000
"""The largest number of windows of one level that are merged."""


def is_traceable(tree: Tree) -> bool:
    """Whether a node is the value of one layer on its parts alone, pads among them, and of C parts at every level."""
    return len(tree.layers) == 1 and tree.pad_rule == "merged" and not tree.lower_chunk_sizes


def check_tree(tree: Tree) -> None:
    """Reject trees that apply more than one layer a level, or whose pads or chunk sizes differ from level to level."""
    if tree.lower_chunk_sizes:
        raise ValueError(
            "model: expected a tree of one chunk size, whose merges are one table, got chunks of "
            f"{', '.join(map(str, tree.lower_chunk_sizes))} below those of {tree.chunk_size}; leave lower_chunk_sizes "
            "out"
        )
    if not is_traceable(tree):
        raise ValueError(
            f"model: expected a tree of thickness 1 whose pads are merged, got thickness {len(tree.layers)} and "
            f"{tree.pad_rule} pads; take variant merge or paper"
        )


@torch.no_grad()
def extract_tree(model: TreeModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500) -> Extraction:
    """Close the model's states into classes, without looking at the task.

    Level by level from the leaves, all windows that a string can show are merged, each part given by the prototype of
    its class: windows of symbols, windows that begin with pads, and the window of pads. A state joins the class of the
    nearest prototype within `radius` that gives the same answer; where there is none it founds a class and is its
    prototype. When a level has the classes of an earlier one, nothing new can follow. Leaves are classes of their own.

    Source: Omlin & Giles, "Extraction of rules from discrete-time recurrent neural networks" (1996), who close
        quantized states of recurrent nets in this way.
    Differs from the source: states are merged level by level, and classes are balls around states, not cells of a grid.

    Raises:
        NotFinite: more than `max_classes` classes are founded, a level has more than 2,000,000 windows of them, or
            their table more than 20,000,000 entries.
        ValueError: the model is not a tree of one layer a level (thickness 1) and one chunk size whose pads are merged.
    """
    check_tree(tree := model.tree)
    windows = _Windows(model, Prototypes(model, tree.leaves, radius=radius, maximum=max_classes))
    pad, full = 0, list(range(1, len(symbols) + 1))
    mixed: list[int] = []
    seen: set[tuple[int, ...]] = set()
    num_levels = 0
    while (known := (pad, -1, *mixed, -1, *full)) not in seen:
        seen.add(known)
        num_levels += 1
        if count_windows(len(mixed), len(full), tree.chunk_size) > MAX_WINDOWS:
            raise NotFinite(f"model: a level has more than {MAX_WINDOWS:,} windows of classes of radius {radius:.3g}")
        blocks = window_blocks(len(mixed), len(full), tree.chunk_size)
        parts = np.array([*mixed, *full, pad])  # parts that are pads are numbered -1
        *with_pads, of_symbols = (list(map(tuple, parts[block].tolist())) for block in blocks)
        of_pads = (pad,) * tree.chunk_size
        windows.merge([of_pads, *chain(*with_pads), *of_symbols])
        pad = windows.table[of_pads]
        mixed, full = (windows.classes_of(merged) for merged in (chain(*with_pads), of_symbols))
    return windows.extraction(symbols, num_levels)


class _Windows:
    """The class of every window of prototypes that was merged."""

    def __init__(self, model: TreeModel, prototypes: Prototypes) -> None:
        self.tree = model.tree
        self.prototypes = prototypes
        self.table: dict[tuple[int, ...], int] = {}

    def merge(self, windows: list[tuple[int, ...]]) -> None:
        """Find the classes of these windows of classes."""
        new = [window for window in dict.fromkeys(windows) if window not in self.table]
        for start in range(0, len(new), MAX_MERGES_PER_CHUNK):
            chunk = new[start : start + MAX_MERGES_PER_CHUNK]
            states = merge_by_parts(self.tree.layers[0], self.prototypes.states, torch.tensor(chunk).t())
            self.table.update(zip(chunk, self.prototypes.join(states).tolist(), strict=True))

    def classes_of(self, windows: Iterable[tuple[int, ...]]) -> list[int]:
        """The classes of merged windows, each once, in order."""
        return sorted({self.table[window] for window in windows})

    def extraction(self, symbols: tuple[str, ...], num_levels: int) -> Extraction:
        prototypes, chunk = self.prototypes, self.tree.chunk_size
        count = len(prototypes.states)
        if count**chunk > MAX_MERGES:
            raise NotFinite(f"model: a table of {count} classes has {count**chunk:,} entries")
        table = np.full((count,) * chunk, -1)
        table[tuple(np.array(list(self.table)).T)] = list(self.table.values())
        fine = TreeMachine(symbols, np.arange(prototypes.num_given), table, prototypes.outputs)
        machine, classes = fine.reduced()
        return extraction_of(prototypes, machine, fine, classes, num_levels)
