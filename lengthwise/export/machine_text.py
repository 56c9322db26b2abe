"""Exports of a stored model's machine as text and source code, in the formats that can contain notes."""

import os.path
from pathlib import Path
from typing import ClassVar

from lengthwise.automata.labeled import LabeledMachine, difference
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.display import counted
from lengthwise.export.base import EXPORTS, Export, Options
from lengthwise.export.facts import certificate_of, level_and_digest
from lengthwise.files import write_by_rename
from lengthwise.formats.base import FORMATS, Format
from lengthwise.formats.notes import NO_EMPTY_ANSWER, notes_on
from lengthwise.runs.machine_sources import Given, given_machines
from lengthwise.version import __version__

NAMES = ("c", "js", "dot", "json", "regex", "mermaid")


class MachineText(Export):
    """A machine as text or source code, with notes that contain the level and the digest of its certificate."""

    kind: ClassVar[type[Format]]
    takes: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def write(cls, source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write the machine, with notes and twenty test strings."""
        options.check_given(cls.name, cls.takes)
        if out.suffix.lower() not in cls.kind.suffixes:
            suffixes = " or ".join(cls.kind.suffixes)
            raise ValueError(f"{out}: expected a file that ends in {suffixes}, got {out.suffix!r}; change the name")
        (given,) = given_machines([source])
        machine = given.labeled
        if cls.takes:
            machine = of_answer(machine, options.answer)
        if (certificate := certificate_of(source)) is not None:
            _check_is_of(given, certificate, source)
        about = [f"written by lengthwise {__version__}", f"certificate: {level_and_digest(certificate)}"]
        about += [] if given.answers_empty else [NO_EMPTY_ANSWER]
        # Without this note, the level of the certificate would look like a proof that the machine is the right one.
        about += [f"NOT CONFIRMED: {given.doubt}"] if given.doubt else []
        write_by_rename(out, cls.kind.write_annotated(machine, notes_on(machine, out.stem, about)).encode())
        size = f"{counted(machine.machine.num_states, 'state')}, {counted(len(machine.symbols), 'symbol')}"
        read = [] if os.path.exists(source) else [("read as", f"a regular expression, {source}")]
        return [
            *read,
            ("machine", f"{size}, answers {', '.join(machine.classes)}"),
            ("certificate", level_and_digest(certificate)),
            *([("NOT CONFIRMED", given.doubt)] if given.doubt else []),
            ("wrote", str(out)),
        ]


def _check_is_of(given: Given, certificate: Certificate, source: str) -> None:
    """Raise a ValueError if a certificate of level extracted or above is about another machine."""
    task = machine_from_json(certificate.transducer)
    if not certificate.reaches("extracted") or not isinstance(task, Transducer):
        return
    about = LabeledMachine(task, certificate.classes).without_empty_string()
    if difference(given.labeled.without_empty_string(), about) is not None:
        raise ValueError(
            f"{source}: expected the machine that its certificate is about, got another machine; learn the machine "
            "again"
        )


def of_answer(machine: LabeledMachine, answer: str | None) -> LabeledMachine:
    """Return the automaton that accepts the strings with this answer, or the machine itself if `answer` is None.

    Raises:
        ValueError: the machine has no such answer, or `answer` is None and no answer of the machine means accepted.
    """
    classes = ", ".join(machine.classes)
    if answer is None:
        if machine.accepting_class is None:
            raise ValueError(
                f"answer: expected one of {classes}, got none; name the answer of the strings that the regular "
                "expression describes"
            )
        return machine
    return machine.accepting(answer)


for _name in NAMES:
    _takes = ("answer",) if _name == "regex" else ()
    EXPORTS.register(_name)(type(FORMATS[_name].__name__, (MachineText,), {"kind": FORMATS[_name], "takes": _takes}))
