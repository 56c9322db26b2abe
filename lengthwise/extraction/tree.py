"""The finite machine inside a tree model: its states, closed level by level into classes."""

import math
from itertools import chain
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import MAX_MERGES, TreeMachine, window_blocks
from lengthwise.ops.tree_attention import Tree, merge_windows

MAX_MERGES_PER_CHUNK = 8192
MAX_WINDOWS = 2_000_000
"""Windows of one level that are merged, at most."""

RADII = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""Radii of classes that are tried, from the largest, in units of the mean norm of a state."""


@runtime_checkable
class Readable(Protocol):
    """A model whose answers are what `readout` makes of states."""

    def readout(self, states: Float[Tensor, "*N D"], /) -> Float[Tensor, "*N Y"]: ...


@runtime_checkable
class TreeModel(Readable, Protocol):
    """A model whose states are those of a tree, as `RegularGPT` is."""

    @property
    def tree(self) -> Tree: ...


class NotFinite(ValueError):
    """The states did not close within the budget."""


class Extraction(NamedTuple):
    """A machine, and how it lies in the model's states.

    `prototypes` has states of the model: first the given ones, which no other state joins (of a tree the leaves, pad
    and then symbols; of a recurrent model the first state), then those that were computed from them. `fine` is the
    machine whose classes they are. Prototypes that no context and no answer tells apart are one class of `machine`:
    prototype k stands for class ``classes[k]``, or for none (-1) where no string shows it.

    `radius` is the largest distance of any state that was computed from prototypes to the prototype of its class, `gap`
    the smallest distance between two computed prototypes of different classes. `num_levels` is the level, of a
    recurrent model the number of symbols, after which nothing new appeared. `exact`: prototypes are all states that the
    model can be in, to the last bit.
    """

    machine: TreeMachine | Transducer
    fine: TreeMachine | Transducer
    classes: Int64[np.ndarray, " K"]
    prototypes: Float[Tensor, "K D"]
    num_given: int
    radius: float
    gap: float
    num_levels: int
    exact: bool = False

    def classes_of(
        self, model: Readable, states: Float[Tensor, "N D"]
    ) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
        """The class of each computed state: that of the nearest prototype which gives the same answer; its distance."""
        nearest, distances = _nearest(model, states, self.prototypes[self.num_given :])
        classes = torch.from_numpy(np.append(self.classes[self.num_given :], -1))  # -1: no prototype gives the answer
        return classes[nearest], distances


class Prototypes:
    """States that stand for classes; states that are nowhere near them found classes of their own."""

    def __init__(self, model: Readable, given: Float[Tensor, "G D"], *, radius: float, maximum: int) -> None:
        _check_finite(given)
        self.model = model
        self.states = given
        self.num_given = len(given)
        self.farthest = 0.0
        self._radius = radius
        self._max = maximum

    def join(self, states: Float[Tensor, "N D"]) -> Int64[Tensor, " N"]:
        """The class of each state: the nearest within the radius that gives the same answer, or else a new one.

        Raises:
            NotFinite: there are more classes than allowed, or a state is not finite.
        """
        _check_finite(states)
        nearest, distances = _nearest(self.model, states, self.states[self.num_given :])
        classes = torch.where(distances <= self._radius, nearest + self.num_given, -1)
        answers = self.model.readout(states).argmax(-1)
        while bool((classes < 0).any()):
            founder = int((classes < 0).int().argmax())
            if len(self.states) - self.num_given == self._max:
                raise NotFinite(
                    f"model: its states do not close within {self._max} classes of radius {self._radius:.3g}"
                )
            near = (states - states[founder]).norm(dim=1) <= self._radius
            classes[(classes < 0) & near & (answers == answers[founder])] = len(self.states)
            self.states = torch.cat([self.states, states[founder : founder + 1]])
        self.farthest = max(self.farthest, float((states - self.states[classes]).norm(dim=1).max()))
        return classes

    @property
    def outputs(self) -> Int64[np.ndarray, " K"]:
        """The answer that each prototype gives."""
        outputs: np.ndarray = self.model.readout(self.states).argmax(-1).numpy()
        return outputs

    def extraction(
        self,
        machine: TreeMachine | Transducer,
        fine: TreeMachine | Transducer,
        classes: Int64[np.ndarray, " K"],
        num_levels: int,
    ) -> Extraction:
        """What was found, given the machine of the prototypes and a smaller one, in which they are these classes."""
        computed = self.states[self.num_given :]
        of_computed = torch.from_numpy(classes[self.num_given :])
        exact = "donot_use_mm_for_euclid_dist"  # the other mode is off by thousandths
        apart = torch.cdist(computed, computed, compute_mode=exact)[of_computed[:, None] != of_computed]
        gap = float(apart.min()) if len(apart) else math.inf
        return Extraction(machine, fine, classes, self.states, self.num_given, self.farthest, gap, num_levels)


def _check_finite(states: Float[Tensor, "N D"]) -> None:
    if not bool(states.isfinite().all()):
        raise NotFinite("model: a state is infinite or no number")


def _nearest(
    model: Readable, states: Float[Tensor, "N D"], prototypes: Float[Tensor, "P D"]
) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
    """The nearest prototype that gives the same answer as the state, and its distance.

    Where no prototype does, or the state is not finite: the number of prototypes, at a distance that is not finite. Of
    two that are about equally near either may be given; its distance is computed from differences, so that it is exact
    but for rounding.
    """
    distances = torch.cdist(states, prototypes)
    answers, of_prototypes = (model.readout(some).argmax(-1) for some in (states, prototypes))
    distances[answers[:, None] != of_prototypes] = torch.inf
    nearest = torch.cat([distances, distances.new_full((len(states), 1), torch.inf)], 1).min(1)
    places = nearest.indices.masked_fill(~nearest.values.isfinite(), len(prototypes))
    with_none = torch.cat([prototypes, prototypes.new_full((1, prototypes.shape[1]), torch.inf)])
    return places, (states - with_none[places]).norm(dim=1)


def radii(states: Float[Tensor, "N D"]) -> list[float]:
    """The radii of classes that are worth a try where states are like these, from the largest."""
    norm = float(states.norm(dim=1).mean())
    return [share * norm for share in RADII]


def is_traceable(tree: Tree) -> bool:
    """Whether a node is the value of one layer on its parts alone, pads among them."""
    return len(tree.layers) == 1 and tree.pad_rule == "merged"


def check_tree(tree: Tree) -> None:
    """Refuse trees that apply more than one layer a level, or in which a pad is another one at every level."""
    if not is_traceable(tree):
        raise ValueError(
            f"model: expected a tree of thickness 1 whose pads are merged, got thickness {len(tree.layers)} and "
            f"{tree.pad_rule} pads; take variant merge or paper"
        )


@torch.no_grad()
def extract(model: TreeModel, symbols: tuple[str, ...], *, radius: float, max_classes: int = 500) -> Extraction:
    """Close the model's states into classes, without looking at the task.

    Level by level from the leaves, all windows that a string can show are merged, each part given by the prototype of
    its class: windows of symbols, windows that begin with pads, and the window of pads. A state joins the class of the
    nearest prototype within `radius` that gives the same answer; where there is none it founds a class and is its
    prototype. When a level has the classes of an earlier one, nothing new can follow. Leaves are classes of their own.

    Raises:
        NotFinite: more than `max_classes` classes are founded, a level has more than 2,000,000 windows of them, or
            their table more than 20,000,000 entries.
        ValueError: the model is not a tree of one layer a level (thickness 1) whose pads are merged.
    """
    check_tree(tree := model.tree)
    classes = _Windows(model, Prototypes(model, tree.leaves, radius=radius, maximum=max_classes))
    pad, full = 0, list(range(1, len(symbols) + 1))
    mixed: list[int] = []
    seen: set[tuple[int, ...]] = set()
    num_levels = 0
    while (known := (pad, -1, *mixed, -1, *full)) not in seen:
        seen.add(known)
        num_levels += 1
        blocks = window_blocks(len(mixed), len(full), tree.chunk_size)
        if sum(map(len, blocks)) > MAX_WINDOWS:
            raise NotFinite(f"model: a level has more than {MAX_WINDOWS:,} windows of classes of radius {radius:.3g}")
        of_parts = np.array([*mixed, *full, pad])  # parts that are pads are numbered -1
        *with_pads, of_symbols = (list(map(tuple, of_parts[block].tolist())) for block in blocks)
        of_pads = (pad,) * tree.chunk_size
        classes.merge([of_pads, *chain(*with_pads), *of_symbols])
        pad = classes.table[of_pads]
        mixed, full = (sorted({classes.table[window] for window in some}) for some in (chain(*with_pads), of_symbols))
    return classes.extraction(symbols, num_levels)


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
            some = new[start : start + MAX_MERGES_PER_CHUNK]
            states = merge_windows(self.tree.layers[0], self.prototypes.states[torch.tensor(some)])
            self.table.update(zip(some, self.prototypes.join(states).tolist(), strict=True))

    def extraction(self, symbols: tuple[str, ...], num_levels: int) -> Extraction:
        count, chunk = len(self.prototypes.states), self.tree.chunk_size
        if count**chunk > MAX_MERGES:
            raise NotFinite(f"model: a table of {count} classes has {count**chunk:,} entries")
        table = np.full((count,) * chunk, -1)
        table[tuple(np.array(list(self.table)).T)] = list(self.table.values())
        fine = TreeMachine(symbols, np.arange(self.prototypes.num_given), table, self.prototypes.outputs)
        machine, classes = fine.reduced()
        return self.prototypes.extraction(machine, fine, classes, num_levels)
