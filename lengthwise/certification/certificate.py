"""Certificates: what is claimed of a model, with all that is needed to check the claim; never imports torch."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from lengthwise.automata.transducer import Transducer
from lengthwise.certification.grids import GridMachineFields
from lengthwise.certification.machines import (
    GRID,
    STRINGS,
    TaskMachineFields,
    TransducerFields,
    TreeMachineFields,
    first_ungraded,
    machine_from_json,
)
from lengthwise.display import spelled
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.files import json_text, parse_json_text, read_file
from lengthwise.registry import Registry, nearest

CERTIFICATE = "certificate.json"
"""The name of the file, next to what it is about."""

FORMAT: Literal[3] = 3

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


class Evidence(Part):
    """The result of a method of proof, as numbers that can be checked against the certificate without the model.

    A variant is registered under its method (`EVIDENCE`), which its field `method` repeats, and imports no torch.
    """

    method: str

    @property
    def proved_up_to(self) -> int | None:
        """The largest length that it is about; None for all lengths."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """The numbers in a sentence."""

    @abstractmethod
    def check(self, certificate: "Certificate") -> str:
        """The sentence that remains to be trusted.

        Raises:
            ValueError: the numbers do not show it, or the method cannot apply to the certificate's model.
        """


EVIDENCE: Registry[type[Evidence]] = Registry("method of proof", "lengthwise.certification.evidence")


def _as_variant(content: object) -> object:
    """The registered variant of a tagged mapping."""
    if not isinstance(content, Mapping):
        return content
    if not isinstance(method := content.get("method"), str):
        raise ValueError(f"method: expected the name of a method of proof, got {method!r}")
    return EVIDENCE[method].model_validate(dict(content), strict=True)


class Counterexample(Part):
    """A string that the model, run on it, answers wrongly.

    `got` is None where the model's states overflow. `shortest`: among all strings (every shorter one was tried), for
    the machine, or only as short as leaving out parts made it.
    """

    string: tuple[str, ...]
    expected: str
    got: str | None
    shortest: Shortest


class Certificate(Part):
    """What is known about a model: a level, why it is not higher, and the evidence.

    `machine` is a `TreeMachine` or, for other kinds of models, a `Transducer`; `transducer` is the task's own,
    minimized. Both name answers by their index in `classes`. For tasks over the grid of two strings both are a
    `GridMachine`, and classes are the integers from 0. `max_length` is the N of level ``bounded``.
    `weights` is a digest of the model's tensors. `net` is a digest of its settings and its tensors. Recorded
    certificates of format 2 lack `net` and `kernels`, and files of that format are rejected. `independently_checked` is
    True if the separate checker, which needs only NumPy, accepted the proof (`lengthwise.certification.checker`).
    """

    format: Literal[2, 3] = FORMAT
    level: Level
    max_length: Count | None = None
    reason: str
    task: dict[str, Any]
    model: dict[str, Any]
    weights: str
    net: str | None = None
    classes: tuple[str, ...]
    transducer: TaskMachineFields
    machine: TreeMachineFields | TransducerFields | GridMachineFields | None = None
    laws: Laws | None = None
    closure: Closure | None = None
    tested: tuple[Tested, ...] = ()
    trace_agreement: tuple[TraceAgreement, ...] = ()
    evidence: Annotated[SerializeAsAny[Evidence], BeforeValidator(_as_variant)] | None = None
    kernels: Kernels | None = None
    independently_checked: bool = False
    counterexample: Counterexample | None = None
    seconds: float = 0.0
    versions: dict[str, str] = {}

    @property
    def is_of_tree(self) -> bool:
        """Whether its machine is a `TreeMachine`."""
        return self.machine is not None and "leaves" in self.machine

    @property
    def is_of_grid(self) -> bool:
        """Whether its machine is a `GridMachine`."""
        return self.machine is not None and "cells" in self.machine

    @property
    def num_classes(self) -> tuple[int, int]:
        """Classes of its machine, of a `GridMachine` those downwards, and of the task's machine; 0 for no machine."""
        machine, task = (
            0 if part is None else len(part["numbers"] if "cells" in part else part["outputs"])
            for part in (self.machine, self.transducer)
        )
        return machine, task

    @property
    def claim(self) -> str:
        """Return the claim of the level in words, with the strings that it is about."""
        length = "" if self.max_length is None else f"{self.max_length:,}"
        return CLAIMS[self.level].format(scope=scope(self.transducer, self.classes), length=length)

    def reaches(self, level: Level) -> bool:
        """Whether the level is this one or higher."""
        return reaches(self.level, level)

    def __str__(self) -> str:
        """Return plain sentences about the level and the claim."""
        from lengthwise.certification.card import certificate_text  # imported here, as it imports this module

        return certificate_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A card, for notebooks."""
        from lengthwise.certification.card import certificate_card  # which imports this module

        return certificate_card(self)

    def to_text(self) -> str:
        """Return the certificate as JSON, with its claim in words and a digest of its content."""
        content = self.model_dump(mode="json")
        return json_text({"level": content.pop("level"), "claim": self.claim, **content})

    @classmethod
    def read(cls, path: Path) -> "Certificate":
        """Read a certificate's file; one that is missing, damaged or edited is a ValueError."""
        try:
            content = read_file(path)
        except FileNotFoundError:
            raise ValueError(f"{path}: expected a certificate, got no file; `lengthwise certify` writes it") from None
        try:
            return cls.from_text(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected JSON in UTF-8, got other bytes ({error})") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_text(cls, text: str) -> "Certificate":
        """The inverse of `to_text`; a text that is none, or was changed, is a ValueError."""
        try:
            content = parse_json_text(text)
        except ValueError as error:
            raise ValueError(f"certificate: {error}; it was edited, or is none, certify again") from None
        if isinstance(given := content.get("format"), int) and given != FORMAT:
            raise ValueError(
                f"certificate: expected format {FORMAT}, got format {given}, of another version; certify again"
            )
        claim = content.pop("claim", None)
        try:
            # Strict validation converts nothing. It reads JSON, since a tuple is a list there.
            certificate = cls.model_validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            index = ".".join(str(part) for part in first["loc"] if part not in (GRID, STRINGS))
            raise ValueError(
                f"certificate: {index}: {first['msg']}; it was edited, or is not of this version, certify again"
            ) from None
        if claim != certificate.claim:
            raise ValueError(
                f"certificate: expected the claim of level {certificate.level}, got another; it was edited, certify "
                "again"
            )
        return certificate


def scope(task: TransducerFields | GridMachineFields, classes: tuple[str, ...]) -> str:
    """Return, in words, the strings to which a task defines an answer.

    Some tasks grade only some strings: a count may end at its largest class, and malformed strings have no answer.

    Example:
        >>> machine = {"symbols": ["a", "b"], "start": 0, "table": [[1, 0], [1, 1]], "outputs": [0, -100]}
        >>> scope(machine, ("no", "yes"))
        "every string to which the task defines an answer (it defines none to 'a')"
    """
    if "cells" in task:
        return f"every two strings whose right answer is at most {len(classes) - 1}, the task's largest"
    machine = machine_from_json(task)
    assert isinstance(machine, Transducer)  # since it has neither cells nor leaves
    ungraded = first_ungraded(machine)
    if ungraded is None:
        return "every string"
    return f"every string to which the task defines an answer (it defines none to {spelled(ungraded)!r:.80})"


def parse_level(name: str) -> Level:
    """The level of that name; an unknown one is a ValueError."""
    if name not in CLAIMS:
        raise ValueError(f"level: unknown level {name!r}{nearest(name, CLAIMS)} (known: {', '.join(CLAIMS)})")
    return cast(Level, name)


def describe_lead(logit_margin: float | None) -> str:
    """A logit margin in words."""
    return "there is one answer only" if logit_margin is None else f"the right logit leads by {logit_margin:.2g}"


def leads(logit_margin: float | None, certificate: Certificate) -> bool:
    """Whether the right logit leads all others; of a single answer (None) there is no other."""
    return len(certificate.classes) == 1 if logit_margin is None else logit_margin > 0


def certificate_file(path: Path) -> Path:
    """Where the certificate of what lies at a path is: in the folder, or next to the TOML file about a net."""
    return path.with_suffix(f".{CERTIFICATE}") if path.is_file() else path / CERTIFICATE
