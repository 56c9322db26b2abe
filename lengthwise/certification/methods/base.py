"""The interface of provers, which show that the float32 net itself gives a machine's answers."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Evidence
from lengthwise.certification.parts import CLAIMS, Level
from lengthwise.extraction.base import Extraction, Reader, reader_of
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.models.base import SequenceModel
from lengthwise.registry import Registry


class Unproved(ValueError):
    """An error that tells why a proof failed for one extraction; an extraction with other classes may give a proof."""


class Prover(ABC):
    """A method of proof for the machines that one reader extracts.

    A reader (`extraction.base.Reader`) sorts a model's states into classes, which are the states of a machine. Each
    method is registered in its own file, and each instance is used for one certificate. The proof must hold in the
    arithmetic of the model, rounding included. It shows by induction that the model's state after each string is in the
    class that the machine ``extraction.fine`` predicts. It also shows that the model's answer is the output of this
    class. Answers in classes with output `IGNORE` are exempt, because the task has no answer to strings that end in one
    of these classes.

    A method without a reader needs no extracted machine: it compares the model with the task's own machine
    (`task_extraction`).
    """

    name: ClassVar[str]
    reader: ClassVar[str | None]
    """The registered name of the reader whose machines this method covers; None if the method needs no reader."""

    max_halvings: ClassVar[int] = 0
    """The number of times that `candidates` halves the radius of the classes."""

    sets: Mapping[str, Tensor] = MappingProxyType({})
    """The sets of states, or of attention masses, that the proof uses; `prove` assigns them.

    A proof file contains these sets, the weights and the machine.
    """

    @classmethod
    def applies_to(cls, model: Any) -> bool:
        """Return whether the method covers a model. If the method has a reader, this reader must support the model."""
        return True

    @classmethod
    def reaches(cls, model: Any) -> Level:
        """Return the highest level that the method can reach for this model; by default `proved`.

        A method that has bounds only for some models overrides this function. Without bounds for the model, the level
        is `extracted`, or `tested` for a method without a reader.
        """
        return "proved"

    def candidates(
        self, reader: Reader[Any], extraction: Extraction, radius: float
    ) -> Iterator[tuple[Extraction, float]]:
        """Yield extractions to try in turn, each with its radius: the given extraction first.

        Then come new extractions with smaller classes, at 1/2, 1/4, ... of the given radius. A radius is skipped if the
        number of classes does not stay finite, or if the prototypes stay the same.
        """
        yield extraction, radius
        for smaller in (radius / 2**halvings for halvings in range(1, self.max_halvings + 1)):
            try:
                finer = reader.extract(smaller)
            except NotFinite:  # larger classes can mix different states, so a smaller radius may still give few classes
                continue
            # The same prototypes would give the same bounds, so a second attempt would fail for the same reason.
            if not torch.equal(finer.prototypes, extraction.prototypes):
                yield finer, smaller
            extraction = finer

    @abstractmethod
    def prove(self, model: Any, extraction: Extraction) -> Evidence:
        """Prove that the model gives the machine's answers, and return the evidence.

        Raises:
            Unproved: the extraction's classes give no proof, but finer classes (`candidates`) may give one.
            ValueError: the method has no bounds for a part of the model, or the extraction is too large for the method
                or belongs to another model.
        """


PROVERS: Registry[type[Prover]] = Registry("prover", "lengthwise.certification.methods.*.prover")


def task_extraction(machine: Transducer) -> Extraction:
    """Return an extraction without prototypes, whose machine is the task's own machine."""
    count = machine.num_states
    return Extraction(machine, machine, np.arange(count), torch.zeros(count, 0), 0, 0.0, math.inf, 0)


def provers_of(reader: str | None, model: object) -> list[type[Prover]]:
    """Return the provers that cover a model and belong to `reader`; for None, the provers that need no reader."""
    return [prover for prover in PROVERS.values() if prover.reader == reader and prover.applies_to(model)]


def highest_level(model: SequenceModel) -> Level:
    """Return the highest level that readers and provers allow for a model.

    The model's weights decide whether a certificate of the model reaches this level.

    Example:
        >>> from lengthwise.models import make_model
        >>> from lengthwise.tasks import make_task
        >>> [highest_level(make_model(name, make_task("parity"))) for name in ("transformer", "regular-gpt")]
        ['tested', 'proved']
    """
    reader = reader_of(model, ())
    levels: list[Level] = ["tested"] if reader is None else ["extracted"]
    for name in {None, None if reader is None else reader.name}:
        levels += [prover.reaches(model) for prover in provers_of(name, model)]
    return max(levels, key=list(CLAIMS).index)


def foreign_extraction(problem: str) -> ValueError:
    """Return the error that refuses an extraction because it belongs to another model."""
    return ValueError(f"extraction: {problem}; extract the machine from this model")


def finite_or_none(number: float) -> float | None:
    """Return a logit margin or slack; None if it is not finite, since nothing was compared or the bounds overflow."""
    return number if math.isfinite(number) else None
