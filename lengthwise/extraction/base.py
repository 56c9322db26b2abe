"""The contract of a reader: it extracts a finite machine from one kind of model, without any claim about the model."""

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
from lengthwise.validation import type_in_words

RELATIVE_RADII = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)
"""The radii of classes that a reader tries, the largest first, as fractions of the mean norm of a state."""

Machine = TreeMachine | Transducer | GridMachine
"""A machine that a reader can extract."""


class Extraction(NamedTuple):
    """An extracted machine, and the prototypes: states of the model that represent the machine's classes.

    The first `num_given` of `prototypes` are given: the leaves of a tree (pad, then symbols), or the first state of a
    recurrent model. No other state joins the classes of given prototypes. The later prototypes were computed from the
    given ones. `fine` is the machine with one class for each prototype. `machine` is the reduction of `fine`:
    prototypes are in one class if neither their answers nor any context distinguishes them. Prototype k has class
    ``classes[k]`` of `machine`, or -1 if no string leads to it.

    `radius` is the largest distance between a computed state and the prototype of its class. `gap` is the smallest
    distance between two computed prototypes of different classes. `num_levels` is the number of levels of a tree, or of
    symbols for a recurrent model, after which no new class appeared. `exact` means that the prototypes are all states
    of the model, to the last bit.

    Example: a net that counts b modulo 2, with states of 5 numbers.
        >>> from lengthwise import construct, make_task
        >>> task = make_task("parity")
        >>> extraction = reader_of(construct("rnn", task).model, task.symbols).extract(0.5)
        >>> extraction.prototypes.shape, extraction.fine.num_states, extraction.machine.num_states
        (torch.Size([5, 5]), 5, 2)
        >>> extraction.classes.tolist()  # prototypes 2 and 3: an odd number of b
        [0, 0, 1, 1, 0]
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
        """Return the class of each computed state, and the state's distance from the prototype of this class.

        The state has the class of the nearest prototype that gives the same answer as the state, or -1 if no
        prototype gives this answer.
        """
        nearest, distances = nearest_prototypes(model, states, self.prototypes[self.num_given :])
        classes = torch.from_numpy(np.append(self.classes[self.num_given :], -1))
        return classes[nearest], distances


def extraction_of(
    prototypes: Prototypes, machine: Machine, fine: Machine, classes: Int64[np.ndarray, " K"], num_levels: int
) -> Extraction:
    """Return the extraction with these prototypes and machines; `classes` are the prototypes' classes in `machine`."""
    gap = prototypes.gap(classes)
    return Extraction(
        machine, fine, classes, prototypes.states, prototypes.num_given, prototypes.max_distance, gap, num_levels
    )


class TraceCount(NamedTuple):
    """The number of a model's states along strings (`num_nodes`), and how many disagree with the extracted machine.

    A state disagrees if it is not in the class that the machine predicts. A state also counts as a disagreement if it
    is not finite, or if no prototype gives the same answer as the state. `max_distance` is the largest distance of a
    state from the prototype of its class.

    Example:
        >>> TraceCount(1, 40, 0, 0.25) + TraceCount(2, 80, 1, 0.5)
        TraceCount(num_strings=3, num_nodes=120, num_disagreements=1, max_distance=0.5)
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
        """Compare the classes of the model's states along the strings with the classes that the machine predicts."""

    def answers(self) -> Int64[Tensor, " B"] | None:
        """Return the model's final answers if the traces contain them, so that the model need not run; else None."""
        return None


Kind = TypeVar("Kind", bound=SequenceModel)


class Reader(ABC, Generic[Kind]):
    """A method that extracts a finite machine from one kind of model.

    Each reader is registered in its own file, and each object reads one model. The `radii` are tried in turn. `extract`
    closes the model's states into classes of a given radius, without access to the task. It computes new states from
    known states until each new state is in a known class. `traces` shows whether the model follows the machine along
    strings. Provers (`certification.methods`) name the reader whose extractions they prove.
    """

    name: ClassVar[str]
    kind: ClassVar[type[SequenceModel]]
    """The class of the models that the reader supports; `reads` may narrow it."""

    def __init__(self, model: Kind, symbols: tuple[str, ...]) -> None:
        self.model = model
        self.symbols = symbols

    @classmethod
    def reads(cls, model: Any) -> bool:
        """Return whether the reader supports this model of class `kind`; by default it does."""
        return True

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        """Return the radii of classes to try, in this order; they depend on the model's states on `strings`.

        If a reader can enumerate the states exactly, radius 0 comes first. All other radii follow, the largest first.
        """
        return radii_of(self.model.last_state(strings))

    @abstractmethod
    def extract(self, radius: float) -> Extraction:
        """Sort the model's states into classes of this radius until no new class appears; return the classes' machine.

        Raises:
            NotFinite: the states need more classes of this radius than the limits allow, or are not finite.
            ValueError: the reader does not support a part or a setting of this model.
        """

    @abstractmethod
    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        """Return the model's states along these strings."""

    def power_traces(self) -> Traces | None:
        """Return the states along repeated words far longer than samples; None if the reader does not compute them."""
        return None


READERS: Registry[type[Reader[Any]]] = Registry(
    "reader", "lengthwise.extraction", "lengthwise.certification.methods.*.reader"
)
"""All readers. A reader that only one method of proof uses is in the folder of this method."""


def reader_of(model: SequenceModel, symbols: tuple[str, ...]) -> Reader[Any] | None:
    """Return the reader that supports the model, or None.

    If several readers support the model, the result is the reader that is a subclass of all the others.

    Raises:
        ValueError: several readers support the model, and none of them is a subclass of all the others.
    """
    fitting = [reader for reader in READERS.values() if isinstance(model, reader.kind) and reader.reads(model)]
    if not fitting:
        return None
    derived_from_all = [reader for reader in fitting if all(issubclass(reader, other) for other in fitting)]
    if not derived_from_all:
        names = ", ".join(repr(reader.name) for reader in fitting)
        raise ValueError(
            f"model: expected one reader for {type_in_words(model)}, got the readers {names}; make one of these a "
            "subclass of the others"
        )
    return derived_from_all[0](model, symbols)


def radii_of(states: Float[Tensor, "N D"]) -> list[float]:
    """Return the radii of classes to try for a model with these states, the largest first.

    Example:
        >>> radii_of(torch.tensor([[3.0, 4.0]]))[:3]
        [2.5, 1.25, 0.625]
    """
    norm = float(states.norm(dim=1).mean())
    return [ratio * norm for ratio in RELATIVE_RADII]
