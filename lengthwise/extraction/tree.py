"""The extraction of a tree model's finite machine: the model's states are closed into classes level by level."""

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
"""The largest number of windows that are merged at once."""

MAX_WINDOWS = 2_000_000
"""The largest number of windows of one level that are merged."""


def is_traceable(tree: Tree) -> bool:
    """Return whether a single layer computes each node of every level from the node's parts alone, pads included."""
    return len(tree.layers) == 1 and tree.pad_rule == "merged" and not tree.lower_chunk_sizes


def check_tree(tree: Tree) -> None:
    """Reject trees with more than one layer per level, with several chunk sizes, or with pads that are not merged."""
    if tree.lower_chunk_sizes:
        raise ValueError(
            "model: expected one chunk size at all levels, so that one table describes all merges, got "
            f"{list(tree.lower_chunk_sizes)} at the lowest levels and {tree.chunk_size} above; leave lower_chunk_sizes "
            "out"
        )
    if not is_traceable(tree):
        raise ValueError(
            f"model: expected thickness 1 and merged pads, got thickness {len(tree.layers)} and {tree.pad_rule} pads; "
            "use thickness=1 and variant='merge' or 'paper'"
        )


@torch.no_grad()
def extract_tree(model: TreeModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500) -> Extraction:
    """Close the model's states into classes, without access to the task.

    Levels are closed in turn, from the leaves up. At each level, the model merges all windows that strings can contain:
    windows of symbols, windows that begin with pads, and the window of pads. Each part is replaced by the prototype of
    its class. A merged state joins the class of the nearest prototype within `radius` that gives the same answer. If
    none exists, the state becomes the prototype of a new class. Once a level has the same classes as an earlier level,
    no new class can follow. Each leaf is a class that no other state joins.

    Example: the tree over the string ababa, in chunks of 2. Pads (.) fill the front of each level:

        level 1: (. a) (b a) (b a)
        level 2: (.. .a) (ba ba)
        level 3: (...a baba), the root, whose class answers the string

        >>> from lengthwise import construct, make_task
        >>> model = construct("regular-gpt", make_task("parity")).model
        >>> machine = extract_tree(model, ("a", "b"), radius=0.5).machine
        >>> machine.leaves.tolist()  # the classes of the pad, of a and of b: an even or an odd number of b
        [0, 0, 1]
        >>> machine.table.tolist()  # the class of two merged parts
        [[0, 1], [1, 0]]
        >>> [int(machine.outputs[k]) for k in machine.final_classes(np.array([[0, 1, 0, 1, 0], [1, 1, 1, 1, 1]]))]
        [0, 1]

    Source: Omlin & Giles, "Extraction of rules from discrete-time recurrent neural networks" (1996), who close
        quantized states of recurrent nets in this way.
    Differs from the source: states are merged level by level, and classes are balls around states, not cells of a grid.

    Raises:
        NotFinite: more than `max_classes` classes are needed, a level has more than 2,000,000 windows, or the table has
            more than 20,000,000 entries. Or a state, a logit or the radius is infinite or NaN.
        ValueError: the model's tree has more than one layer per level (thickness above 1), several chunk sizes, or
            pads that are not merged.
    """
    check_tree(tree := model.tree)
    windows = _Windows(model, Prototypes(model, tree.leaves, radius=radius, maximum=max_classes))
    pad, symbol_classes = 0, list(range(1, len(symbols) + 1))
    padded_classes: list[int] = []
    seen: set[tuple[int, ...]] = set()
    num_levels = 0
    # The classes of one level decide all later levels, so the search ends once a level repeats an earlier level. In
    # `known`, -1 separates the pad, the classes of windows with pads, and the classes of windows of symbols.
    while (known := (pad, -1, *padded_classes, -1, *symbol_classes)) not in seen:
        seen.add(known)
        num_levels += 1
        if count_windows(len(padded_classes), len(symbol_classes), tree.chunk_size) > MAX_WINDOWS:
            raise NotFinite(f"model: a level needs over {MAX_WINDOWS:,} merges of classes of radius {radius:.3g}")
        blocks = window_blocks(len(padded_classes), len(symbol_classes), tree.chunk_size)
        # The pad is last, since `window_blocks` numbers pads -1.
        parts = np.array([*padded_classes, *symbol_classes, pad])
        *padded_windows, symbol_windows = (list(map(tuple, parts[block].tolist())) for block in blocks)
        pad_window = (pad,) * tree.chunk_size
        windows.merge([pad_window, *chain(*padded_windows), *symbol_windows])
        pad = windows.table[pad_window]
        padded_classes = windows.classes_of(chain(*padded_windows))
        symbol_classes = windows.classes_of(symbol_windows)
    return windows.extraction(symbols, num_levels)


class _Windows:
    """A table that maps each merged window of classes to the class of the merge."""

    def __init__(self, model: TreeModel, prototypes: Prototypes) -> None:
        self.tree = model.tree
        self.prototypes = prototypes
        self.table: dict[tuple[int, ...], int] = {}

    def merge(self, windows: list[tuple[int, ...]]) -> None:
        """Merge those windows that the table does not contain yet, and enter the class of each merged state."""
        new = [window for window in dict.fromkeys(windows) if window not in self.table]
        for start in range(0, len(new), MAX_MERGES_PER_CHUNK):
            chunk = new[start : start + MAX_MERGES_PER_CHUNK]
            states = merge_by_parts(self.tree.layers[0], self.prototypes.states, torch.tensor(chunk).t())
            self.table.update(zip(chunk, self.prototypes.join(states).tolist(), strict=True))

    def classes_of(self, windows: Iterable[tuple[int, ...]]) -> list[int]:
        """Return the classes of these windows' merged states, each once, in ascending order."""
        return sorted({self.table[window] for window in windows})

    def extraction(self, symbols: tuple[str, ...], num_levels: int) -> Extraction:
        prototypes, chunk = self.prototypes, self.tree.chunk_size
        count = len(prototypes.states)
        if count**chunk > MAX_MERGES:
            raise NotFinite(
                f"model: the extracted machine's table of {count} classes has {count**chunk:,} entries, more than "
                f"{MAX_MERGES:,}"
            )
        table = np.full((count,) * chunk, -1)
        table[tuple(np.array(list(self.table)).T)] = list(self.table.values())
        fine = TreeMachine(symbols, np.arange(prototypes.num_given), table, prototypes.outputs)
        machine, classes = fine.reduced()
        return extraction_of(prototypes, machine, fine, classes, num_levels)
