"""The finite machine inside a tree model: its states, closed level by level into classes."""

import math
from itertools import chain
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.tree_machine import TreeMachine, window_blocks
from lengthwise.ops.tree_attention import Tree, merge_windows

MERGES_AT_ONCE = 8192

RADII = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""Radii of classes that are tried, from the largest, in units of the mean norm of a state."""


@runtime_checkable
class TreeModel(Protocol):
    """A model whose answers are what `readout` makes of the states of a tree, as `RegularGPT` is."""

    @property
    def tree(self) -> Tree: ...
    def readout(self, states: Float[Tensor, "*N D"], /) -> Float[Tensor, "*N Y"]: ...


class NotFinite(ValueError):
    """The states did not close within the budget."""


class Extraction(NamedTuple):
    """A machine, and how it lies in the model's states.

    `prototypes` has states of the model, first the leaves (pad, then symbols), and `fine` is the machine whose classes
    they are. Prototypes that no context and no answer tells apart are one class of `machine`: prototype k stands for
    class ``classes[k]``.

    `radius` is the largest distance of any state that was merged from prototypes to the nearest prototype that gives
    the same answer, `gap` the smallest distance between two merged prototypes of different classes. `num_levels` is the
    level after which nothing new appeared.
    """

    machine: TreeMachine
    fine: TreeMachine
    classes: Int64[np.ndarray, " K"]
    prototypes: Float[Tensor, "K D"]
    radius: float
    gap: float
    num_levels: int

    def classes_of(
        self, model: TreeModel, states: Float[Tensor, "N D"]
    ) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
        """The class of each merged state: that of the nearest prototype which gives the same answer; its distance."""
        first = len(self.fine.leaves)
        nearest, distances = _nearest(model, states, self.prototypes[first:])
        classes = torch.from_numpy(np.append(self.classes[first:], -1))  # -1 where no prototype gives the answer
        return classes[nearest], distances


def _nearest(
    model: TreeModel, states: Float[Tensor, "N D"], prototypes: Float[Tensor, "P D"]
) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
    """The nearest prototype that gives the same answer as the state, and its distance (infinite where none does)."""
    distances = torch.cdist(states, prototypes)
    answers, of_prototypes = (model.readout(some).argmax(-1) for some in (states, prototypes))
    distances[answers[:, None] != of_prototypes] = torch.inf
    nearest = torch.cat([distances, distances.new_full((len(states), 1), torch.inf)], 1).min(1)
    return nearest.indices, nearest.values


def radii(states: Float[Tensor, "N D"]) -> list[float]:
    """The radii of classes that are worth a try where states are like these, from the largest."""
    norm = float(states.norm(dim=1).mean())
    return [share * norm for share in RADII]


@torch.no_grad()
def extract(model: TreeModel, symbols: tuple[str, ...], *, radius: float, most_classes: int = 500) -> Extraction:
    """Close the model's states into classes, without looking at the task.

    Level by level from the leaves, all windows that a string can show are merged, each part given by the prototype of
    its class: windows of symbols, windows that begin with pads, and the window of pads. A state joins the class of the
    nearest prototype within `radius` that gives the same answer; where there is none it founds a class and is its
    prototype. When a level has the classes of an earlier one, nothing new can follow. Leaves are classes of their own.

    Raises:
        NotFinite: more than `most_classes` classes are founded.
        ValueError: the model is not a tree of one layer a level (thickness 1) whose pads are merged.
    """
    tree = model.tree
    if len(tree.layers) != 1 or tree.pad_rule != "merged":
        raise ValueError(
            f"model: wanted a tree of thickness 1 whose pads are merged, got thickness {len(tree.layers)} and "
            f"{tree.pad_rule} pads; take variant merge or paper"
        )
    classes = _Classes(model, radius, most_classes)
    pad, full = 0, list(range(1, len(symbols) + 1))
    mixed: list[int] = []
    seen: set[tuple[int, ...]] = set()
    num_levels = 0
    while (known := (pad, -1, *mixed, -1, *full)) not in seen:
        seen.add(known)
        num_levels += 1
        blocks = window_blocks(len(mixed), len(full), tree.chunk_size)
        of_parts = np.array([*mixed, *full, pad])  # parts that are pads are numbered -1
        *with_pads, of_symbols = (list(map(tuple, of_parts[block].tolist())) for block in blocks)
        of_pads = (pad,) * tree.chunk_size
        classes.merge([of_pads, *chain(*with_pads), *of_symbols])
        pad = classes.table[of_pads]
        mixed, full = (sorted({classes.table[window] for window in some}) for some in (chain(*with_pads), of_symbols))
    return classes.extraction(symbols, num_levels)


class _Classes:
    """Prototypes, and the class of every window of prototypes that was merged."""

    def __init__(self, model: TreeModel, radius: float, most: int) -> None:
        self.model = model
        self.layer = model.tree.layers[0]
        self.radius = radius
        self.most = most
        self.prototypes = model.tree.leaves
        self.num_leaves = len(self.prototypes)
        self.table: dict[tuple[int, ...], int] = {}
        self.farthest = 0.0

    def merge(self, windows: list[tuple[int, ...]]) -> None:
        """Find the classes of these windows of classes."""
        new = [window for window in dict.fromkeys(windows) if window not in self.table]
        for start in range(0, len(new), MERGES_AT_ONCE):
            some = new[start : start + MERGES_AT_ONCE]
            states = merge_windows(self.layer, self.prototypes[torch.tensor(some)])
            classes = self._classes_of(states)
            self.farthest = max(self.farthest, float((states - self.prototypes[classes]).norm(dim=1).max()))
            self.table.update(zip(some, classes.tolist(), strict=True))

    def _classes_of(self, states: Float[Tensor, "N D"]) -> Int64[Tensor, " N"]:
        nearest, distances = _nearest(self.model, states, self.prototypes[self.num_leaves :])
        classes = torch.where(distances <= self.radius, nearest + self.num_leaves, -1)
        answers = self.model.readout(states).argmax(-1)
        while bool((classes < 0).any()):
            founder = int((classes < 0).int().argmax())
            if len(self.prototypes) - self.num_leaves == self.most:
                raise NotFinite(
                    f"model: its states do not close within {self.most} classes of radius {self.radius:.3g}"
                )
            near = (states - states[founder]).norm(dim=1) <= self.radius
            classes[(classes < 0) & near & (answers == answers[founder])] = len(self.prototypes)
            self.prototypes = torch.cat([self.prototypes, states[founder : founder + 1]])
        return classes

    def extraction(self, symbols: tuple[str, ...], num_levels: int) -> Extraction:
        windows, targets = np.array(list(self.table)), np.array(list(self.table.values()))
        table = np.full((len(self.prototypes),) * self.model.tree.chunk_size, -1)
        table[tuple(windows.T)] = targets
        outputs = self.model.readout(self.prototypes).argmax(-1).numpy()
        fine = TreeMachine(symbols, np.arange(self.num_leaves), table, outputs)
        machine, classes = fine.reduced()
        distances = torch.cdist(self.prototypes, self.prototypes)[self.num_leaves :, self.num_leaves :]
        of_merged = torch.from_numpy(classes[self.num_leaves :])
        apart = distances[of_merged[:, None] != of_merged]
        gap = float(apart.min()) if len(apart) else math.inf
        return Extraction(machine, fine, classes, self.prototypes, self.farthest, gap, num_levels)
