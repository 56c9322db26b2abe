"""Certificates: claims about models, with the evidence for each claim. This module never imports torch."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.equivalence import first_ungraded, machine_from_json
from lengthwise.certification.grids import GridMachineFields
from lengthwise.certification.parts import (
    BOUNDED_ALONE,
    CLAIMS,
    GRID,
    STRINGS,
    Closure,
    Count,
    Counterexample,
    Kernels,
    Laws,
    Level,
    Part,
    TaskMachineFields,
    Tested,
    TraceAgreement,
    TransducerFields,
    TreeMachineFields,
    describe_tested,
    reaches,
    refusal,
)
from lengthwise.conventions import IGNORE, without_way_out
from lengthwise.display import card, counted, spelled
from lengthwise.files import json_text, parse_json_text, read_file
from lengthwise.registry import Registry, check_known
from lengthwise.validation import check_kind, path_of

CERTIFICATE = "certificate.json"
"""The name of a certificate's file in a run's folder. For a net in a file NAME.toml, it is NAME.certificate.json."""

FORMAT: Literal[3] = 3
"""The version of the format in which certificates are written; `read` rejects all other versions."""

ACCENTS: dict[Level, str] = {
    "refuted": "#c84f4f",
    "tested": "#8a8a8a",
    "extracted": "#b59a1f",
    "bounded": "#3b7dd8",
    "proved": "#3aa57a",
}

MAX_STATES = 12
"""The largest number of states of a machine that `certificate_card` draws."""

MAX_QUOTED = 80
"""The largest number of a counterexample's symbols that cards and sentences quote."""

MachineKind = Literal["transducer", "tree", "grid"]


class Requirement(NamedTuple):
    """The kind of machine, the models and the models' settings that a method of proof requires of a certificate."""

    machine: MachineKind | None
    """The kind of the extracted machine; None if the method follows the task's own machine and extracts no machine."""
    models: Mapping[str, Mapping[str, object]]
    """The names of the models that the method covers, each with the settings that the model must have."""

    def check(self, method: str, certificate: "Certificate") -> None:
        """Raise a ValueError if the certificate's machine or model does not meet the requirements."""
        name = certificate.model.get("name")
        settings = self.models.get(name) if isinstance(name, str) else None
        if settings is None:
            problem = f"model {name!r}"
        elif others := {key: certificate.model.get(key) for key in settings if _differs(certificate, key, settings)}:
            problem = f"{name} ({_as_settings(others)})"
        elif certificate.machine_kind != self.machine:
            problem = f"a {certificate.machine_kind} machine" if certificate.machine_kind else "no machine"
        else:
            return
        models = " or ".join(
            f"{name} ({_as_settings(settings)})" if settings else name for name, settings in self.models.items()
        )
        machine = f"a {self.machine} machine" if self.machine else "no machine"
        raise refusal(f"method {method!r} expects {machine} and model {models}, got {problem}", "evidence")


def _differs(certificate: "Certificate", key: str, settings: Mapping[str, object]) -> bool:
    """Return whether a setting differs from the required setting in value or type. For example, True differs from 1."""
    given = certificate.model.get(key)
    return type(given) is not type(settings[key]) or given != settings[key]


def _as_settings(settings: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


class Evidence(Part):
    """The result of a method of proof, as numbers that can be checked against the certificate without the model.

    Each subclass is registered in `EVIDENCE` under the name of a method. The field `method` contains this name. The
    modules of evidence never import torch.
    """

    requires: ClassVar[Requirement]
    assumes: ClassVar[str]
    """The assumption that a user must trust even after the numbers are checked."""

    method: str

    @property
    def proved_length(self) -> int | None:
        """Return the largest length that the proof covers, in symbols (`max_length`); None if it covers all lengths."""
        return getattr(self, "max_length", None)

    @abstractmethod
    def describe(self) -> str:
        """Return a sentence with the numbers of the proof."""

    @abstractmethod
    def check_numbers(self, certificate: "Certificate") -> None:
        """Raise a ValueError if the numbers do not amount to a proof by this method."""

    def check(self, certificate: "Certificate") -> str:
        """Check the evidence against its certificate, and return the assumption that a user must still trust.

        Raises:
            ValueError: the method does not cover the certificate's model, or the numbers do not amount to a proof.
        """
        self.requires.check(self.method, certificate)
        self.check_numbers(certificate)
        return self.assumes


EVIDENCE: Registry[type[Evidence]] = Registry("method of proof", "lengthwise.certification.methods.*.evidence")


def _as_variant(content: object) -> object:
    """Convert a mapping to the subclass of `Evidence` that is registered under the mapping's `method`."""
    if not isinstance(content, Mapping):
        return content
    if not isinstance(method := content.get("method"), str):
        raise ValueError(f"method: expected one of {', '.join(EVIDENCE)}, got {method!r}; choose one of these")
    return EVIDENCE[method].model_validate(dict(content), strict=True)


class Certificate(Part):
    """A claim about a model: a level, the reason why the level is not higher, and the evidence.

    `machine` was extracted from the model. It is a `TreeMachine` for a tree model, a `GridMachine` for a task over two
    strings (`GridTask`), and a `Transducer` otherwise. `transducer` is the task's own machine: a minimized
    `Transducer`, or a `GridMachine` for a `GridTask`. The outputs of both machines are indices of `classes`. The
    classes of a `GridTask` are the integers from 0. `max_length` is the largest proved length at level ``bounded``.

    `weights` is a digest of the model's tensors. `net` is a digest of the model's settings and tensors. Certificates of
    the earlier format 2 lack `net` and `kernels`; `read` rejects their files. `independently_checked` is True if the
    separate checker, which needs only NumPy, accepted the proof (`lengthwise.certification.checker`).

    Example:
        >>> from lengthwise import certify, construct, make_task
        >>> task = make_task("parity")
        >>> certificate = certify(construct("rnn", task).model, task)
        >>> certificate.level, certificate.evidence.method, certificate.independently_checked
        ('proved', 'intervals', True)
        >>> certificate.machine["table"], certificate.machine["outputs"]  # state 1: an odd number of b
        ([[0, 1], [1, 0]], [0, 1])
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
    versions: dict[str, str] = Field(default_factory=dict)

    @property
    def machine_kind(self) -> MachineKind | None:
        """Return the kind of the extracted machine; None if the certificate has no machine."""
        if self.machine is None:
            return None
        return "tree" if "leaves" in self.machine else "grid" if "cells" in self.machine else "transducer"

    @property
    def num_classes(self) -> tuple[int, int]:
        """Return how many classes the extracted machine has (0 without one), and how many the task's machine has.

        The cells of a `GridMachine` pass messages downwards and to the right. Only the classes of messages that go
        downwards count.
        """
        machine, task = (
            0 if part is None else len(part["numbers"] if "cells" in part else part["outputs"])
            for part in (self.machine, self.transducer)
        )
        return machine, task

    @property
    def claim(self) -> str:
        """Return the claim of the level in words, with the strings to which the claim applies."""
        length = "" if self.max_length is None else f"{self.max_length:,}"
        claim = CLAIMS[self.level] if self.machine or self.level != "bounded" else BOUNDED_ALONE
        return claim.format(scope=scope(self.transducer, self.classes), length=length)

    @property
    def note(self) -> str:
        """Return the task's note: a condition under which the task's answers are right, or an empty text."""
        return str(self.task.get("note", ""))

    def reaches(self, level: Level) -> bool:
        """Return whether the certificate's level is this level or higher."""
        return reaches(self.level, level)

    def __str__(self) -> str:
        """Return plain sentences about the level and the claim."""
        return certificate_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        return certificate_card(self)

    def to_text(self) -> str:
        """Return the certificate as JSON, with its claim in words and a digest of its content."""
        content = self.model_dump(mode="json")
        return json_text({"level": content.pop("level"), "claim": self.claim, **content})

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a certificate's file; raise a ValueError if it is missing, damaged or edited."""
        try:
            content = read_file(path_of("path", path))
        except FileNotFoundError:
            raise ValueError(f"{path}: expected a certificate, got no file; `lengthwise certify` writes it") from None
        try:
            return cls.from_text(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: expected JSON in UTF-8, got other bytes ({error}); certify again") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_text(cls, text: str) -> "Certificate":
        """Return the certificate in a text that `to_text` wrote; raise a ValueError for any other text."""
        try:
            content = parse_json_text(text)
        except ValueError as error:
            # The way out of the JSON error, such as "keep one entry", would contradict "certify again".
            reason = without_way_out(error)
            raise refusal(f"expected an unedited certificate, got other text ({reason})") from None
        # A format such as 3.0 equals a number that the field allows, so the type is compared as well.
        given = content.get("format")
        if isinstance(given, int | float) and (type(given) is not int or given != FORMAT):
            raise refusal(f"expected format {FORMAT}, got format {given}, which this version does not read")
        claim = content.pop("claim", None)
        try:
            # Strict validation accepts a list in place of a tuple only from JSON. So `content` is converted to JSON
            # again.
            certificate = cls.model_validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            index = ".".join(str(part) for part in first["loc"] if part not in (GRID, STRINGS))
            reason = without_way_out(first["msg"].removeprefix("Value error, "))
            raise refusal(f"{index!r}: {reason}; the file was edited, or another version wrote it") from None
        if given is None:  # the field has a default for new certificates, but a file must contain its format
            raise refusal(f"expected format {FORMAT}, got no format")
        # People read the claim, and programs read the level. If the two disagree, the file was edited.
        if claim != certificate.claim:
            raise ValueError(
                f"certificate: expected the claim that belongs to level {certificate.level!r}, got another claim; the "
                "file was edited or is of an earlier version, so certify again"
            )
        return certificate


def scope(task: TransducerFields | GridMachineFields, classes: tuple[str, ...]) -> str:
    """Return, in words, the strings for which a task defines an answer.

    Some tasks answer only some strings. For example, a task may have a largest answer, and no answer to strings whose
    answer would be larger. Or it may have no answer to malformed strings.

    Example:
        >>> machine = {"symbols": ["a", "b"], "start": 0, "table": [[1, 0], [1, 1]], "outputs": [0, -100]}
        >>> scope(machine, ("no", "yes"))
        "every string for which the task defines an answer (it defines none for 'a')"
    """
    if "cells" in task:
        return f"every pair of strings whose right answer is at most {len(classes) - 1}, the task's largest answer"
    machine = machine_from_json(task)
    assert isinstance(machine, Transducer)  # because it has neither cells nor leaves
    ungraded = first_ungraded(machine)
    if ungraded is None:
        return "every string"
    return f"every string for which the task defines an answer (it defines none for {spelled(ungraded)!r:.80})"


def parse_level(name: str) -> Level:
    """Return the level that has this name; raise a ValueError if no level has this name."""
    check_known("level", name, CLAIMS)
    return cast(Level, name)


def check_lead(logit_margin: float | None, certificate: Certificate) -> None:
    """Raise a ValueError unless the logit margin is above 0, or is None because the task has only one answer."""
    if not (len(certificate.classes) == 1 if logit_margin is None else logit_margin > 0):
        raise refusal(f"expected a positive logit margin, got {logit_margin}", "evidence")


def certificate_file(path: Path) -> Path:
    """Return the path of a certificate: inside the folder of a run, or next to the TOML file of a net."""
    return path.with_suffix(f".{CERTIFICATE}") if path.is_file() else path / CERTIFICATE


def certificate_card(certificate: Certificate) -> str:
    """Return a certificate's HTML card: the claim, and its counterexample, reason, machine, tests and proof, if any."""
    check_kind("certificate", certificate, Certificate, "a Certificate")
    task, model = (str(part.get("name", "")) for part in (certificate.task, certificate.model))
    pairs = [("task", task), ("model", model)]
    if counterexample := certificate.counterexample:
        got = "none: a logit is not finite" if counterexample.got is None else counterexample.got
        pairs += [
            ("string", "".join(_quoted(counterexample))),
            ("right answer", counterexample.expected),
            ("model's answer", got),
        ]
    elif certificate.level in ("tested", "extracted"):
        pairs.append(("not higher, because", certificate.reason))
    if certificate.machine is not None:
        size, size_of_task = certificate.num_classes
        pairs.append(("machine", f"{counted(size, 'class')}; the task's machine has {size_of_task}"))
    if certificate.tested:
        pairs.append(("answered correctly", describe_tested(certificate.tested)))
    if certificate.evidence is not None:
        pairs.append((certificate.evidence.method, certificate.evidence.describe()))
        pairs.append(("independently checked", checked_in_words(certificate)))
    pairs.append(("CPU seconds", f"{certificate.seconds:.1f}"))
    claim = f"{certificate.level}. {certificate.claim}"
    return card(claim, pairs, _drawing(certificate), accent=ACCENTS[certificate.level])


def checked_in_words(certificate: Certificate) -> str:
    """Return a sentence about whether the separate checker accepted the proof."""
    if certificate.independently_checked:
        return "yes: a separate program, which needs NumPy alone, accepts this proof"
    return "no: only the method that found this proof has checked it"


def certificate_text(certificate: Certificate) -> str:
    """Return plain sentences: the level, the claim, and a counterexample or the reason why the level is not higher."""
    sentences = [f"{certificate.level}: {certificate.claim}"]
    if counterexample := certificate.counterexample:
        given = counterexample.got
        got = "it gives no answer, because a logit is not finite" if given is None else f"its answer is {given!r}"
        string, rest = _quoted(counterexample)
        sentences.append(f"On the string {string!r}{rest}, {got}; the right answer is {counterexample.expected!r}.")
    elif certificate.level in ("tested", "extracted"):
        sentences.append(f"The level is not higher, because {certificate.reason}.")
    if certificate.note:
        sentences.append(f"The task {certificate.note}.")
    return " ".join(sentences)


def _quoted(counterexample: Counterexample) -> tuple[str, str]:
    """Return the first symbols of a counterexample, and a note on its length if there are more symbols."""
    symbols = counterexample.string
    rest = f"... ({len(symbols):,} symbols)" if len(symbols) > MAX_QUOTED else ""
    return spelled(symbols[:MAX_QUOTED]), rest


def _drawing(certificate: Certificate) -> str:
    """Return a drawing of a small machine that reads symbol by symbol, or an empty text for any other machine.

    All outputs of the machine must be `IGNORE` or classes of the certificate.
    """
    if certificate.machine is None:
        return ""
    machine = machine_from_json(certificate.machine)
    if not isinstance(machine, Transducer) or machine.num_states > MAX_STATES:
        return ""
    if not ((machine.outputs == IGNORE) | (machine.outputs < len(certificate.classes))).all():
        return ""
    return f'<div style="overflow-x:auto">{LabeledMachine(machine, certificate.classes)._repr_svg_() or ""}</div>'
