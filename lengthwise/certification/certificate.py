"""Certificates: what is claimed of a model, with all that is needed to check the claim; never imports torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict  # pydantic wants it before Python 3.12

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.automata.tree_machine import MAX_MERGES, TreeMachine
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.files import json_text, parse_json_text
from lengthwise.registry import nearest

Level = Literal["refuted", "tested", "extracted", "proved"]

Shortest = Literal["of all strings", "of the machine", "as found"]

CLAIMS: Mapping[Level, str] = {
    "refuted": "The model answers a string wrongly.",
    "tested": "No wrong answer was confirmed; nothing is proved.",
    "extracted": (
        "A finite machine read off the model answers every string of every length as the task does, and on all strings "
        "followed every state of the model was nearest, among representatives that give its answer, to one of the "
        "class that the machine says."
    ),
    "proved": (
        "A finite machine read off the model answers every string of every length as the task does, and the model's "
        "own states, as it rounds them, cannot leave that machine's classes, so that the model itself is right at "
        "every length."
    ),
}


Count = Annotated[int, Field(ge=0, lt=2**63)]

Number = Annotated[int, Field(ge=IGNORE, lt=2**31)]
"""A state, a class or an answer of a machine."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@final
class TransducerFields(TypedDict):
    """What `Transducer.to_json` gives."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    start: Number
    table: list[list[Number]]
    outputs: list[Number]


@final
class TreeMachineFields(TypedDict):
    """What `TreeMachine.to_json` gives."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    symbols: list[str]
    chunk_size: Annotated[int, Field(ge=2, le=64)]
    leaves: list[Number]
    table: list[list[Number]]
    outputs: list[Number]


class Tested(_Part):
    """Final answers to strings of one length, a part of them structured; only what the task asks counts.

    Of a RegularGPT's answers to very many symbols most are those of the roots of trees that were grown for
    `TraceAgreement`.
    """

    length: Count
    num_strings: Count
    num_graded: Count
    num_correct: Count

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the accuracy."""
        return wilson_interval(self.num_correct, self.num_graded)


class TraceAgreement(_Part):
    """How the states of trees over strings of one length agree with the machine's classes, node by node."""

    length: Count
    num_strings: Count
    num_nodes: Count
    num_disagreements: Count
    farthest: float


class Closure(_Part):
    """How the machine lies in the model's states: their representatives (a hash of these), distances and levels.

    `radius`: the largest distance of a merged state to the representative of its class. `gap`: the smallest distance
    between representatives of different classes. `points`: for each representative its place along the first two
    principal axes of all, and its class in the machine (-1: no string shows it); none where there are very many, or
    where they are one-hot vectors.
    """

    num_prototypes: Count
    prototypes: str
    requested_radius: float
    radius: float
    gap: float | None
    num_levels: Count
    points: tuple[tuple[float, float, int], ...] = ()


class Laws(_Part):
    """Whether the machine's merges are the products of a monoid with the pad as identity, where its table decides."""

    pad_is_identity: bool
    num_decided: Count
    num_violations: Count


class Enclosures(_Part):
    """Enclosures around the prototypes that the model maps into one another, and the logit margin in them.

    `margin` is None where there is one answer only.
    """

    num_prototypes: Count
    enclosure_radius: float
    margin: float | None


class Codes(_Part):
    """Merges of codes, all of which float32 is certain to give the code that the machine says.

    `room`: how far every merged state is, rounding allowed for, from where another code were the nearest (None: there
    is one code only). `margin`: by how much the logits of answers are ahead (None: there is one answer only). Of a
    recurrence with one-hot columns: its states, its steps, and how far the logits of every column are from those of
    another one-hot vector.
    """

    num_codes: int
    num_merges: int
    slack: float | None
    margin: float | None


class Counterexample(_Part):
    """A string that the model, run on it, answers wrongly.

    `got` is None where the model's states overflow. `shortest`: among all strings (every shorter one was tried), for
    the machine, or only as short as it was made.
    """

    string: tuple[str, ...]
    expected: str
    got: str | None
    shortest: Shortest


class Certificate(_Part):
    """What was found out about a model: a level, why it is not higher, and the evidence.

    `machine` is a `TreeMachine` or, for a recurrent model, a `Transducer`; `transducer` is the task's own, minimized.
    Both name answers by their place in `classes`.
    """

    format: Literal[1] = 1
    level: Level
    reason: str
    task: dict[str, Any]
    model: dict[str, Any]
    weights: str
    classes: tuple[str, ...]
    transducer: TransducerFields
    machine: TreeMachineFields | TransducerFields | None = None
    laws: Laws | None = None
    closure: Closure | None = None
    tested: tuple[Tested, ...] = ()
    followed: tuple[TraceAgreement, ...] = ()
    enclosures: Enclosures | None = None
    codes: Codes | None = None
    counterexample: Counterexample | None = None
    seconds: float = 0.0
    versions: dict[str, str] = {}

    @property
    def is_of_tree(self) -> bool:
        """Whether its machine is a `TreeMachine`."""
        return self.machine is not None and "leaves" in self.machine

    @property
    def claim(self) -> str:
        """The level in words."""
        return CLAIMS[self.level]

    def reaches(self, level: Level) -> bool:
        """Whether the level is this one or higher."""
        levels = list(CLAIMS)
        return levels.index(self.level) >= levels.index(level)

    def to_text(self) -> str:
        """The certificate as JSON, with a digest of its content."""
        return json_text(self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path) -> "Certificate":
        """Read a certificate's file; one that is missing, damaged or edited is a ValueError."""
        try:
            return cls.from_text(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(f"{path}: there is no such file; `lengthwise certify RUN` writes certificates") from None
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
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            index = ".".join(map(str, first["loc"]))
            raise ValueError(
                f"certificate: {index}: {first['msg']}; it was edited, or is not of this version, certify again"
            ) from None


def parse_level(name: str) -> Level:
    """The level of that name; an unknown one is a ValueError."""
    if name not in CLAIMS:
        raise ValueError(f"--at-least: unknown level {name!r}{nearest(name, CLAIMS)} (known: {', '.join(CLAIMS)})")
    return cast(Level, name)


def machine_from_json(content: TreeMachineFields | TransducerFields) -> TreeMachine | Transducer:
    """A tree machine (it has leaves) or a transducer; a ragged table, or one of over 20,000,000 entries, is refused."""
    width = content["chunk_size"] + 1 if "leaves" in content else len(content["symbols"])
    if {len(row) for row in content["table"]} != {width}:
        raise ValueError(f"table: expected one row or more, each of {width} numbers, got others; certify again")
    if "leaves" not in content:
        return Transducer.from_json(content)
    size = len(content["outputs"]) ** content["chunk_size"]
    if size > MAX_MERGES:
        raise ValueError(f"machine: expected a table of at most {MAX_MERGES:,} entries, got {size:,}; certify again")
    return TreeMachine.from_json(content)


def first_error(machine: TreeMachine | Transducer, task: Transducer) -> tuple[str, ...] | None:
    """The shortest string that the machine answers otherwise than the task does, where that asks; None: a proof."""
    if isinstance(machine, TreeMachine):
        return machine.difference_string(task)
    if (size := machine.num_states * task.num_states) > MAX_MERGES:
        raise ValueError(f"machine: expected at most {MAX_MERGES:,} pairs of states, got {size:,}; minimize it first")
    both = machine.semiautomaton.product(task.semiautomaton)
    wrong = (task.outputs != IGNORE)[None, :] & (machine.outputs[:, None] != task.outputs[None, :])
    # Nothing is asked of the empty string: the search begins in a state of its own, which answers nothing.
    before = both.table[machine.start * task.num_states + task.start]
    with_before = Semiautomaton(np.vstack([both.table, before]), both.symbols)
    return with_before.shortest_string(both.num_states, np.append(wrong.ravel(), False))
