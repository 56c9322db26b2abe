"""JavaScript: one file for browsers and for node."""

import json
from typing import Any

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.conventions import IGNORE
from lengthwise.files import package_template
from lengthwise.formats.base import FORMATS, Format
from lengthwise.formats.c import identifier
from lengthwise.formats.notes import Notes, notes_on


@FORMATS.register("js")
class JavaScript(Format):
    """A file for ``require`` and for ``<script>``, with ``classify``, ``step``, ``answer``, ``symbolOf``, ``selfTest``.

    Without ``require``, the five functions are members of a global object, named ``machine`` unless notes give another
    name. JavaScript files can be written, but not read.
    """

    suffixes = (".js", ".cjs")
    has_names = True
    comment = "// "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a JavaScript module that contains the machine and the functions that run it."""
        return JavaScript.write_annotated(machine, notes_on(machine))

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return the machine as a JavaScript module; `notes` give its name, and the strings of its self-test."""
        num_states = machine.machine.num_states
        # The smallest typed array that can contain a state's number.
        bits = next(bits for bits in (8, 16, 32) if num_states <= 1 << bits)
        comments = [f"{cls.comment}{line}" for line in notes._replace(tests=()).lines()]
        template = package_template("lengthwise.formats", "template.js")
        return "".join(f"{line}\n" for line in comments) + template.substitute(
            name=identifier(notes.name),
            about=_json(list(notes.about)),
            symbols=_json(list(machine.symbols)),
            classes=_json(list(machine.classes)),
            start=machine.machine.start,
            array=f"Uint{bits}Array",
            table=_json(machine.machine.semiautomaton.table.ravel().tolist()),
            answers=_json(np.where(machine.machine.outputs == IGNORE, -1, machine.machine.outputs).tolist()),
            tests=_json([[list(string), answer or None] for string, answer in notes.tests]),
        )


def _json(content: Any) -> str:
    """Return JSON that cannot close the script element of a page."""
    return json.dumps(content).replace("</", "<\\/")
