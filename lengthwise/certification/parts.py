"""Parts of a certificate: levels and their claims, and what was measured; never imports torch."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lengthwise.evaluation.interval import wilson_interval

Level = Literal["refuted", "tested", "extracted", "bounded", "proved"]

Shortest = Literal["of all strings", "of the machine", "as found"]

CLAIMS: Mapping[Level, str] = {
    "refuted": "The model answers a string wrongly.",
    "tested": "No wrong answer was confirmed; nothing is proved.",
    "extracted": (
        "A finite machine read off the model gives the right answer to {scope}. On all traced strings, the nearest "
        "prototype with the model's answer was of the class that the machine names. Nothing is proved of the model."
    ),
    "bounded": (
        "The model itself, as it rounds, gives the right answer to {scope}, up to a length of {length} symbols: its "
        "states cannot leave the classes of a machine that does."
    ),
    "proved": (
        "The model itself, as it rounds, gives the right answer to {scope}, of any length: its states cannot leave the "
        "classes of a machine that does."
    ),
}
"""The claim of each level. `{scope}` names the strings, and `{length}` the largest length of level ``bounded``."""


def reaches(level: Level, other: Level) -> bool:
    """Whether a level is another one or higher."""
    order = list(CLAIMS)
    return order.index(level) >= order.index(other)


Count = Annotated[int, Field(ge=0, lt=2**63)]

PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]

Distance = Annotated[float, Field(ge=0)]


class Part(BaseModel):
    """A part of a certificate: frozen, with known fields and finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Tested(Part):
    """Final answers to strings of one length, a part of them structured; supervised ones are graded.

    Testing ends after the first few strings where an answer to one is wrong: a share of right answers is then no
    estimate, as what ended the count is part of it.
    Of a RegularGPT's answers to more than a million symbols most are those of the roots of the trees that were traced.
    """

    length: Count
    num_strings: PositiveCount
    num_graded: Count
    num_correct: Count

    @model_validator(mode="after")
    def _parts_are_not_more_than_the_whole(self) -> "Tested":
        if not self.num_correct <= self.num_graded <= self.num_strings:
            raise ValueError("expected no more correct answers than graded ones, and no more of these than strings")
        return self

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy, where all answers are right."""
        return wilson_interval(self.num_correct, self.num_graded)


class TraceAgreement(Part):
    """How the states along strings of one length agree with the machine's classes, node by node.

    `max_distance`: the largest distance of a state to the prototype of its class.
    """

    length: Count
    num_strings: PositiveCount
    num_nodes: Count
    num_disagreements: Count
    max_distance: Distance


class Closure(Part):
    """How the machine lies in the model's states: their prototypes (a hash of these), distances and levels.

    `radius`: the largest distance of a computed state to the prototype of its class. `gap`: the smallest distance
    between prototypes of different classes. `points`: for each prototype its coordinates along the first two principal
    axes of all, and its class in the machine (-1: no string shows it); empty where there are more than 2,000
    prototypes, or where they are one-hot vectors.
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

    Errors are in units in the last place of the size that a proof's bound is relative to.
    """

    name: str
    dtype: str
    measured: Distance
    assumed: Distance


class Kernels(Part):
    """The self-test of the CPU's kernels when a proof was made (`lengthwise.certification.kernels`)."""

    kernels: tuple[MeasuredKernel, ...]
    torch: str
    cpu_capability: str
    num_threads: PositiveCount

    def describe(self) -> str:
        """Name the kernel that comes closest to what proofs assume."""
        rounded = [kernel for kernel in self.kernels if kernel.assumed]  # the other kernels must be exact
        closest = max(rounded, key=lambda kernel: kernel.measured / kernel.assumed)
        return (
            f"all {len(self.kernels)} measured functions within what proofs assume; the closest, {closest.dtype} "
            f"{closest.name}, is off by {closest.measured:.3g} of {closest.assumed:.3g} units"
        )


class Laws(Part):
    """Whether the machine's merges are the products of a monoid with the pad as identity, where its table decides."""

    pad_is_identity: bool
    num_decided: Count
    num_violations: Count


class Counterexample(Part):
    """A string that the model, run on it, answers wrongly.

    `got` is None where the model's states overflow. `shortest`: among all strings (every shorter one was tried), for
    the machine, or only as short as leaving out parts made it.
    """

    string: tuple[str, ...]
    expected: str
    got: str | None
    shortest: Shortest
