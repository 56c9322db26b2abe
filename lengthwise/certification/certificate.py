"""Certificates: what is claimed of a model, with all that is needed to check the claim; never imports torch."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, final

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializeAsAny,
    Tag,
    ValidationError,
    model_validator,
)
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.automata.windows import MAX_MERGES
from lengthwise.certification.grids import GridMachineFields, first_grid_error
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.files import json_text, parse_json_text
from lengthwise.registry import Registry, nearest

CERTIFICATE = "certificate.json"
"""The name of the file, next to what it is about."""

FORMAT = 2

Level = Literal["refuted", "tested", "extracted", "bounded", "proved"]

Shortest = Literal["of all strings", "of the machine", "as found"]

CLAIMS: Mapping[Level, str] = {
    "refuted": "The model answers a string wrongly.",
    "tested": "No wrong answer was confirmed; nothing is proved.",
    "extracted": (
        "A finite machine read off the model answers every string of every length as the task does, and on all strings "
        "traced every state of the model was nearest, among prototypes that give its answer, to one of the class that "
        "the machine names."
    ),
    "bounded": (
        "A finite machine read off the model answers every string of every length as the task does, and up to a stated "
        "length the model's own states, as it rounds them, cannot leave that machine's classes, so that the model "
        "itself is right up to that length."
    ),
    "proved": (
        "A finite machine read off the model answers every string of every length as the task does, and the model's "
        "own states, as it rounds them, cannot leave that machine's classes, so that the model itself is right at "
        "every length."
    ),
}


def reaches(level: Level, other: Level) -> bool:
    """Whether a level is another one or higher."""
    order = list(CLAIMS)
    return order.index(level) >= order.index(other)


Count = Annotated[int, Field(ge=0, lt=2**63)]

PositiveCount = Annotated[int, Field(ge=1, lt=2**63)]

Label = Annotated[int, Field(ge=IGNORE, lt=2**31)]
"""A state, a class or an answer of a machine."""


Distance = Annotated[float, Field(ge=0)]


class Part(BaseModel):
    """A part of a certificate: frozen, without unknown fields and without numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@final
class TransducerFields(TypedDict):
    """What `Transducer.to_json` gives."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    start: Label
    table: list[list[Label]]
    outputs: list[Label]


MAX_CHUNK = 32
"""Of a machine of a tree; arrays have at most 64 axes, and even two classes have 2^32 windows of 32 parts."""


@final
class TreeMachineFields(TypedDict):
    """What `TreeMachine.to_json` gives."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    chunk_size: Annotated[int, Field(ge=2, le=MAX_CHUNK)]
    leaves: list[Label]
    table: list[list[Label]]
    outputs: list[Label]


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
    return EVIDENCE[str(content.get("method"))].model_validate(dict(content))


class Counterexample(Part):
    """A string that the model, run on it, answers wrongly.

    `got` is None where the model's states overflow. `shortest`: among all strings (every shorter one was tried), for
    the machine, or only as short as leaving out parts made it.
    """

    string: tuple[str, ...]
    expected: str
    got: str | None
    shortest: Shortest


_GRID, _STRINGS = "of a grid", "of strings"

TaskMachineFields = Annotated[
    Annotated[TransducerFields, Tag(_STRINGS)] | Annotated[GridMachineFields, Tag(_GRID)],
    Discriminator(lambda content: _GRID if isinstance(content, Mapping) and "cells" in content else _STRINGS),
]
"""The machine of a task: problems are those of the kind that it is."""


class Certificate(Part):
    """What is known about a model: a level, why it is not higher, and the evidence.

    `machine` is a `TreeMachine` or, for other kinds of models, a `Transducer`; `transducer` is the task's own,
    minimized. Both name answers by their index in `classes`. Of tasks over the grid of two strings both are a
    `GridMachine`, and classes are the integers from 0. `max_length` is the N of level ``bounded``.
    """

    format: Literal[2] = 2
    level: Level
    max_length: Count | None = None
    reason: str
    task: dict[str, Any]
    model: dict[str, Any]
    weights: str
    classes: tuple[str, ...]
    transducer: TaskMachineFields
    machine: TreeMachineFields | TransducerFields | GridMachineFields | None = None
    laws: Laws | None = None
    closure: Closure | None = None
    tested: tuple[Tested, ...] = ()
    trace_agreement: tuple[TraceAgreement, ...] = ()
    evidence: Annotated[SerializeAsAny[Evidence], BeforeValidator(_as_variant)] | None = None
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
        """The level in words."""
        return CLAIMS[self.level] + ("" if self.max_length is None else f" That length is {self.max_length:,}.")

    def reaches(self, level: Level) -> bool:
        """Whether the level is this one or higher."""
        return reaches(self.level, level)

    def _repr_html_(self) -> str:
        """A card, for notebooks."""
        from lengthwise.certification.card import certificate_card  # which imports this module

        return certificate_card(self)

    def to_text(self) -> str:
        """The certificate as JSON, with a digest of its content."""
        return json_text(self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path) -> "Certificate":
        """Read a certificate's file; one that is missing, damaged or edited is a ValueError."""
        try:
            return cls.from_text(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, IsADirectoryError):
            raise ValueError(f"{path}: expected a certificate, got no file; `lengthwise certify` writes it") from None
        except (UnicodeDecodeError, OSError) as error:
            raise ValueError(f"{path}: cannot be read ({error})") from None
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
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            index = ".".join(str(part) for part in first["loc"] if part not in (_GRID, _STRINGS))
            raise ValueError(
                f"certificate: {index}: {first['msg']}; it was edited, or is not of this version, certify again"
            ) from None


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


def machine_from_json(
    content: TreeMachineFields | TransducerFields | GridMachineFields,
) -> TreeMachine | Transducer | GridMachine:
    """A tree machine (it has leaves), a grid machine (it has cells) or a transducer.

    A ragged table, or one of over 20,000,000 entries, is refused.
    """
    if "cells" in content:
        return GridMachine.from_json(content)
    width = content["chunk_size"] + 1 if "leaves" in content else len(content["symbols"])
    if {len(row) for row in content["table"]} != {width}:
        raise ValueError(f"table: expected one row or more, each of {width} numbers, got others; certify again")
    if "leaves" not in content:
        return Transducer.from_json(content)
    size = len(content["outputs"]) ** content["chunk_size"]
    if size > MAX_MERGES:
        raise ValueError(f"machine: expected a table of at most {MAX_MERGES:,} entries, got {size:,}; certify again")
    return TreeMachine.from_json(content)


def first_error(
    machine: TreeMachine | Transducer | GridMachine, task: Transducer | GridMachine
) -> tuple[str, ...] | None:
    """The shortest string that machine and task answer differently where the task supervises; None is a proof.

    Of grid machines, which are searched, a string that is shorter than most where it is not the shortest.

    Raises:
        ValueError: they are too large to be compared, of different kinds, or neither string nor proof was found.
    """
    if isinstance(machine, GridMachine) and isinstance(task, GridMachine):
        grid_error = first_grid_error(machine, task)
        return None if grid_error is None else grid_error.symbols
    if isinstance(machine, GridMachine) or isinstance(task, GridMachine):
        raise ValueError("machine: expected one that reads what the task's reads, strings or pairs; certify again")
    if isinstance(machine, TreeMachine):
        return machine.difference_string(task)
    if (size := machine.num_states * task.num_states) > MAX_MERGES:
        raise ValueError(f"machine: expected at most {MAX_MERGES:,} pairs of states, got {size:,}; minimize it first")
    both = machine.semiautomaton.product(task.semiautomaton)
    wrong = (task.outputs != IGNORE)[None, :] & (machine.outputs[:, None] != task.outputs[None, :])
    # The empty string is not supervised: the search begins in a state of its own, which answers nothing.
    before = both.table[machine.start * task.num_states + task.start]
    with_before = Semiautomaton(np.vstack([both.table, before]), both.symbols)
    return with_before.shortest_string(both.num_states, np.append(wrong.ravel(), False))


def certificate_file(path: Path) -> Path:
    """Where the certificate of what lies at a path is: in the folder, or next to the TOML file about a net."""
    return path.with_suffix(f".{CERTIFICATE}") if path.is_file() else path / CERTIFICATE
