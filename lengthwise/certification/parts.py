"""The parts of a certificate: levels, measurements and fields of machines. This module never imports torch."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, final

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from typing_extensions import TypedDict  # pydantic requires this before Python 3.12

from lengthwise.certification.grids import GridMachineFields
from lengthwise.conventions import IGNORE
from lengthwise.display import percent
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.validation import FrozenRecord, check_choice

Level = Literal["refuted", "tested", "extracted", "bounded", "proved"]

Shortest = Literal["of all strings", "of the machine", "as found"]

CLAIMS: Mapping[Level, str] = {
    "refuted": "The model answers a string wrongly.",
    "tested": "No wrong answer was confirmed; nothing is proved.",
    "extracted": (
        "A finite machine, extracted from the model, gives the right answer to {scope}. The model's states were traced "
        "on tested strings. For each state, the nearest prototype with the same answer had the class that the machine "
        "predicts. Nothing is proved about the model."
    ),
    "bounded": (
        "The model itself, rounding errors included, gives the right answer to {scope}, up to a length of {length} "
        "symbols. Its states cannot leave the classes of a machine that gives the right answers."
    ),
    "proved": (
        "The model itself, rounding errors included, gives the right answer to {scope}, of any length. Its states "
        "cannot leave the classes of a machine that gives the right answers."
    ),
}
"""The claim of each level. `{scope}` names the strings, and `{length}` the largest length of level ``bounded``."""

BOUNDED_ALONE = (
    "The model itself, rounding errors included, gives the right answer to {scope}, up to a length of {length} "
    "symbols. For each state of the task's machine, bounds on the model's numbers show that the right answer has the "
    "largest logit."
)
"""The claim of level ``bounded`` if the method of proof needs no machine that was extracted from the model."""


def reaches(level: Level, other: Level) -> bool:
    """Return whether a level is equal to another level or higher.

    Example:
        >>> reaches("bounded", "extracted"), reaches("tested", "extracted")
        (True, False)
    """
    order = list(CLAIMS)
    check_choice("level", other, order)
    return order.index(level) >= order.index(other)


def refusal(problem: str, part: str = "certificate") -> ValueError:
    """Return the error that refuses a certificate, or a part of it, because of a problem."""
    return ValueError(f"{part}: {problem}; certify again")


Count = Annotated[int, Field(ge=0, lt=2**63)]
"""A count that is at least 0 and fits into 64 bits."""

PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]
"""A count that is at least 1 and fits into 64 bits."""

Distance = Annotated[float, Field(ge=0)]
"""A distance, a radius or an error, which is never negative."""


class Part(FrozenRecord, allow_inf_nan=False):
    """A frozen part of a certificate, which rejects unknown fields and numbers that are not finite."""


class Tested(Part):
    """Counts of final answers to strings of one length. Some of the strings are structured (`traces.tested_strings`).

    Only answers to supervised strings (strings to which the task has an answer) are graded. Testing ends at the first
    batch with a wrong answer. If a wrong answer ended the count, the fraction of right answers does not estimate the
    accuracy. If the strings together have more than a million symbols, a RegularGPT computes only a part of the answers
    itself. All other answers come from the root states of trees that the reader computed (`TracedStrings.graded`).
    """

    length: Count
    num_strings: PositiveCount
    num_graded: Count
    num_correct: Count

    @model_validator(mode="after")
    def _parts_are_not_more_than_the_whole(self) -> "Tested":
        if not self.num_correct <= self.num_graded <= self.num_strings:
            raise ValueError(
                f"num_correct: expected num_correct <= num_graded <= num_strings, got {self.num_correct:,}, "
                f"{self.num_graded:,} and {self.num_strings:,}; correct these counts"
            )
        return self

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % confidence interval for the accuracy.

        The interval is valid only if all graded answers are right, because testing ends after a wrong answer.
        """
        return wilson_interval(self.num_correct, self.num_graded)

    @property
    def has_bound(self) -> bool:
        """Return whether all graded answers are right, so that the counts bound the accuracy."""
        return self.num_correct == self.num_graded > 0

    def describe(self) -> str:
        """Return in words the counts of right answers and, if all are right, the accuracy's lower bound.

        A wrong answer ends the count, so the counts then give no bound.

        Example:
            >>> Tested(length=40, num_strings=1000, num_graded=1000, num_correct=1000).describe()
            '1,000 of 1,000 at 40 (at least 99.61 %)'
        """
        bound = f" (at least {percent(self.interval[0])})" if self.has_bound else ""
        return f"{self.num_correct:,} of {self.num_graded:,} at {self.length:,}{bound}"


def describe_tested(tested: Sequence[Tested]) -> str:
    """Return the counts of right answers at all lengths, in words, with a bound on the fraction of structured strings.

    Example:
        >>> describe_tested([Tested(length=40, num_strings=1000, num_graded=1000, num_correct=990)])
        '990 of 1,000 at 40; at most two fifths of the strings are structured'
    """
    counts = ", ".join(each.describe() for each in tested)
    confidence = "; at 95 % confidence" if any(each.has_bound for each in tested) else ""
    return f"{counts}{confidence}; at most two fifths of the strings are structured"


def describe_lead(logit_margin: float | None) -> str:
    """Return a logit margin in words."""
    return "there is only one answer" if logit_margin is None else f"the right logit leads by {logit_margin:.2g}"


class TraceAgreement(Part):
    """Counts of a model's states along strings of one length, compared with the classes that the machine predicts.

    `num_nodes` counts the states: one for each symbol, merge of a tree, or cell of a grid. `max_distance` is the
    largest distance of a state from the prototype of its class.
    """

    length: Count
    num_strings: PositiveCount
    num_nodes: Count
    num_disagreements: Count
    max_distance: Distance


class Closure(Part):
    """The number of prototypes (states of a model that represent classes of states), and distances between states.

    `requested_radius` is the radius of classes with which the machine was extracted. `radius` is the largest distance
    of a computed state from the prototype of its class. `gap` is the smallest distance between prototypes of different
    classes. `num_levels` is the number of levels of a tree, or of symbols, after which no new class appeared. `points`
    contains each prototype's coordinates along the first two principal axes, and its class in the machine (-1 if no
    string leads to it). `points` is empty if there are more than 2,000 prototypes, or if the prototypes are one-hot
    vectors.
    """

    num_prototypes: PositiveCount
    prototypes_digest: str
    requested_radius: Distance
    radius: Distance
    gap: Distance | None
    num_levels: Count
    points: tuple[tuple[float, float, int], ...] = ()


class MeasuredKernel(Part):
    """The largest error of a torch function on the CPU that made a certificate, and the error that proofs assume.

    Both errors are numbers of units. A unit is 2^-23 of a reference size in float32, and 2^-52 of this size in float64.
    For most functions, the reference size is the absolute value of the result (`certification.kernels`). For kernels
    that must be exact, the measured error is an absolute difference, and the assumed error is 0. Both errors belong to
    the measurement with the largest ratio of measured to assumed error.
    """

    name: str
    dtype: str
    measured: Distance
    assumed: Distance

    @property
    def holds(self) -> bool:
        """Return True if the function is as accurate as proofs assume."""
        return self.measured <= self.assumed


class Kernels(Part):
    """The results of the self-test of the CPU's kernels at the time of the proof (`certification.kernels`)."""

    kernels: tuple[MeasuredKernel, ...]
    torch: str
    cpu_capability: str
    num_threads: PositiveCount

    @property
    def reason(self) -> str:
        """Return a text about the kernels whose errors exceed the assumed errors, or an empty text."""
        return "; ".join(
            f"the {kernel.dtype} {kernel.name} is off by {kernel.measured:.3g} units on this CPU; the proof assumes at "
            f"most {kernel.assumed:.3g}"
            for kernel in self.kernels
            if not kernel.holds
        )

    def describe(self) -> str:
        """Return a sentence about the kernel whose error is closest to the error that proofs assume."""
        rounded = [kernel for kernel in self.kernels if kernel.assumed]  # the other kernels must be exact
        closest = max(rounded, key=lambda kernel: kernel.measured / kernel.assumed)
        return (
            f"all {len(self.kernels)} measured functions are as accurate as proofs assume; the one closest to its "
            f"limit, {closest.dtype} {closest.name}, is off by {closest.measured:.3g} units, and "
            f"proofs allow {closest.assumed:.3g} units"
        )


class Laws(Part):
    """The result of testing whether a tree machine's merges are products of a monoid (see `MonoidLaws`)."""

    pad_is_identity: bool
    num_decided: Count
    num_violations: Count


class Counterexample(Part):
    """A string that the model answers wrongly when it reads the string alone.

    `got` is None if a logit is not finite. `shortest` is "of all strings" if the model answers every shorter string
    correctly. It is "of the machine" if the extracted machine errs on no shorter string. It is "as found" if the model
    may err on a shorter string.
    """

    string: tuple[str, ...]
    expected: str
    got: str | None
    shortest: Shortest


Label = Annotated[int, Field(ge=IGNORE, lt=2**31)]
"""The index of a state, a class or an answer of a machine; `IGNORE` means no answer."""


@final
class TransducerFields(TypedDict):
    """The fields that `Transducer.to_json` returns."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    start: Label
    table: list[list[Label]]
    outputs: list[Label]


MAX_CHUNK = 32
"""The largest chunk size of a tree machine.

A tree machine merges chunks of states, and its table has one axis for each state of a chunk. Arrays have at most 64
axes. With two classes, a table for chunks of 32 states already has 2^32 entries.
"""


@final
class TreeMachineFields(TypedDict):
    """The fields that `TreeMachine.to_json` returns."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    chunk_size: Annotated[int, Field(ge=2, le=MAX_CHUNK)]
    leaves: list[Label]
    table: list[list[Label]]
    outputs: list[Label]


GRID, STRINGS = "of a grid", "of strings"

TaskMachineFields = Annotated[
    Annotated[TransducerFields, Tag(STRINGS)] | Annotated[GridMachineFields, Tag(GRID)],
    Discriminator(lambda content: GRID if isinstance(content, Mapping) and "cells" in content else STRINGS),
]
"""The machine of a task. Its kind selects the fields to validate, so that errors are about the fields of this kind."""
