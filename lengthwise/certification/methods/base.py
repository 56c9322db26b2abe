"""What a prover does: it shows that the float32 net itself cannot leave the classes of its machine."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor

from lengthwise.certification.certificate import Evidence
from lengthwise.certification.parts import Level
from lengthwise.extraction.base import Extraction, Reader
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.registry import Registry


class Unproved(ValueError):
    """Why these classes prove nothing of the model; others may."""


class Prover(ABC):
    """A method of proof for the extractions of one reader: registered in a file of its own, made for one certificate.

    What is proved has to hold in the arithmetic of the model: by induction every state of every string is in the class
    that ``extraction.fine`` gives it, and its answer is that class's output, but for outputs `IGNORE`, which no string
    needs.
    """

    name: ClassVar[str]
    reader: ClassVar[str]
    """The registered name of the reader whose extractions it proves."""

    sets: Mapping[str, Tensor] = MappingProxyType({})
    """After a proof: the sets of states that it is about, for a checker that knows the weights and the machine."""

    @classmethod
    def applies_to(cls, model: Any) -> bool:
        """Whether this model, one that the reader reads, is of the kind that the method is for."""
        return True

    @classmethod
    def reaches(cls, model: Any) -> Level:
        """The level of what it proves of such a model; `extracted` where it knows no such step."""
        return "proved"

    def candidates(
        self, reader: Reader[Any], extraction: Extraction, radius: float
    ) -> Iterator[tuple[Extraction, float]]:
        """Extractions to try in turn, with the radii of their classes; by default the one that is given."""
        yield extraction, radius

    @abstractmethod
    def prove(self, model: Any, extraction: Extraction) -> Evidence:
        """The evidence.

        Raises:
            Unproved: these classes are no proof; the next candidates may be.
            ValueError: the model has parts that the method does not know, or the extraction is too large for it.
        """


PROVERS: Registry[type[Prover]] = Registry("prover", "lengthwise.certification.methods.*.prover")


def provers_of(reader: str, model: object) -> list[type[Prover]]:
    """The provers of a reader's extractions that are for this kind of model."""
    return [prover for prover in PROVERS.values() if prover.reader == reader and prover.applies_to(model)]


def finer_extractions(
    reader: Reader[Any], extraction: Extraction, radius: float, max_halvings: int
) -> Iterator[tuple[Extraction, float]]:
    """The extraction and those of classes of half the radius, a quarter, ..., each once, with their radii."""
    yield extraction, radius
    for smaller in (radius / 2**halvings for halvings in range(1, max_halvings + 1)):
        try:
            finer = reader.extract(smaller)
        except NotFinite:  # those of half its size may close again
            continue
        if not torch.equal(finer.prototypes, extraction.prototypes):
            yield finer, smaller
        extraction = finer


def finite_or_none(number: float) -> float | None:
    """A number, or None for an infinite one: a distance to something that does not exist."""
    return number if math.isfinite(number) else None
