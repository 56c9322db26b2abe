"""What a reader does: it reads a finite machine off one kind of model, and claims nothing."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.extraction.prototypes import Prototypes, nearest_prototypes
from lengthwise.models.base import SequenceModel
from lengthwise.registry import Registry

RELATIVE_RADII = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""Radii of classes that are tried, from the largest, in units of the mean norm of a state."""

Machine = TreeMachine | Transducer | GridMachine
"""What can be read off a model."""


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

    machine: Machine
    fine: Machine
    classes: Int64[np.ndarray, " K"]
    prototypes: Float[Tensor, "K D"]
    num_given: int
    radius: float
    gap: float
    num_levels: int
    exact: bool = False

    def classes_of(
        self, model: SequenceModel, states: Float[Tensor, "N D"]
    ) -> tuple[Int64[Tensor, " N"], Float[Tensor, " N"]]:
        """The class of each computed state: that of the nearest prototype which gives the same answer; its distance."""
        nearest, distances = nearest_prototypes(model, states, self.prototypes[self.num_given :])
        classes = torch.from_numpy(np.append(self.classes[self.num_given :], -1))  # -1: no prototype gives the answer
        return classes[nearest], distances


def extraction_of(
    prototypes: Prototypes,
    machine: Machine,
    fine: Machine,
    classes: Int64[np.ndarray, " K"],
    num_levels: int,
) -> Extraction:
    """The extraction of these prototypes: `fine` is their machine, and in the smaller `machine` they have `classes`."""
    gap = prototypes.gap(classes)
    return Extraction(
        machine, fine, classes, prototypes.states, prototypes.num_given, prototypes.max_distance, gap, num_levels
    )


class TraceCount(NamedTuple):
    """States of a model along strings: how many, and how many have another class than the machine says.

    `max_distance` is the largest distance of a state to the prototype of its class; a state that gives an answer which
    no prototype gives, or that is not finite, counts as a disagreement.
    """

    num_strings: int
    num_nodes: int
    num_disagreements: int
    max_distance: float

    def __add__(self, other: object) -> "TraceCount":
        if not isinstance(other, TraceCount):
            return NotImplemented
        return TraceCount(
            self.num_strings + other.num_strings,
            self.num_nodes + other.num_nodes,
            self.num_disagreements + other.num_disagreements,
            max(self.max_distance, other.max_distance),
        )


class Traces(ABC):
    """The states of a model along strings of one length."""

    @abstractmethod
    def compare(self, extraction: Extraction) -> TraceCount:
        """Compare the classes of all states with those that the extracted machine gives them."""

    def answers(self) -> Int64[Tensor, " B"] | None:
        """The model's final answers, where the traces give them faster than the model; else None."""
        return None


Kind = TypeVar("Kind")


class Reader(ABC, Generic[Kind]):
    """How a finite machine is read off one kind of model: registered in a file of its own, made for one model.

    `radii` are tried in turn: `extract` closes the model's states into classes of a radius, without looking at any
    task, and `traces` shows whether the model follows the machine along strings. Provers (`certification.methods`) name
    the reader whose extractions they prove.
    """

    name: ClassVar[str]

    def __init__(self, model: Kind, symbols: tuple[str, ...]) -> None:
        self.model = model
        self.symbols = symbols

    @staticmethod
    @abstractmethod
    def reads(model: SequenceModel) -> bool:
        """Whether the model is of this kind."""

    @abstractmethod
    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        """Return the radii of classes to try, from the largest, for a model whose states along some strings are seen.

        Radius 0, if exact states can be enumerated, comes before all others.
        """

    @abstractmethod
    def extract(self, radius: float) -> Extraction:
        """Close the model's states into classes.

        Raises:
            ValueError: they do not close (`NotFinite`), or cannot be closed.
        """

    @abstractmethod
    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        """The model's states along these strings."""

    def power_traces(self) -> Traces | None:
        """The states along powers of words, far longer than any string that is drawn, where the model shows them."""
        return None


READERS: Registry[type[Reader[Any]]] = Registry(
    "reader", "lengthwise.extraction", "lengthwise.certification.methods.*.reader"
)
"""Readers of several methods of proof, and readers that a method has in its own folder."""


def reader_of(model: SequenceModel, symbols: tuple[str, ...]) -> Reader[Any] | None:
    """The reader of the model's kind: of several the one that is derived from the others; None where none reads it.

    Raises:
        ValueError: several readers that are not derived from one another read the model.
    """
    fitting = [reader for reader in READERS.values() if reader.reads(model)]
    if not fitting:
        return None
    derived_from_all = [reader for reader in fitting if all(issubclass(reader, other) for other in fitting)]
    if not derived_from_all:
        names = ", ".join(reader.name for reader in fitting)
        raise ValueError(
            f"model: expected one reader for a {type(model).__name__}, got {names}; derive one of them from the others"
        )
    return derived_from_all[0](model, symbols)


def radii_of(states: Float[Tensor, "N D"]) -> list[float]:
    """The radii of classes that are worth a try where states are like these, from the largest."""
    norm = float(states.norm(dim=1).mean())
    return [ratio * norm for ratio in RELATIVE_RADII]
