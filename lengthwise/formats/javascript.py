"""JavaScript: one file for browsers and for node."""

import json
from typing import Any

import numpy as np

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.conventions import IGNORE
from lengthwise.formats.base import FORMATS, Format
from lengthwise.formats.c import identifier
from lengthwise.formats.notes import Notes, notes_on

_TEMPLATE = """\
(function (root, make) {{
  if (typeof module === "object" && module.exports) module.exports = make();
  else root.{name} = make();
}})(typeof self !== "undefined" ? self : this, function () {{
  "use strict";
  const about = {about};
  const symbols = {symbols};
  const classes = {classes};
  const start = {start};
  const width = symbols.length;
  // The state after symbol v read in state q is table[q * width + v].
  const table = {array}.from({table});
  // The class that each state answers with, or -1.
  const answers = Int32Array.from({answers});
  const ids = new Map(symbols.map((symbol, id) => [symbol, id]));
  const tests = {tests};

  // The number of a symbol in the list of symbols, or null.
  function symbolOf(name) {{
    return ids.has(name) ? ids.get(name) : null;
  }}

  // The state after one more symbol.
  function step(state, symbol) {{
    const id = ids.get(symbol);
    if (id === undefined) throw new RangeError("expected one of the symbols " + symbols.join(" ") + ", got " + symbol);
    return table[state * width + id];
  }}

  // The name of a state's answer, or null.
  function answer(state) {{
    return answers[state] < 0 ? null : classes[answers[state]];
  }}

  // The name of the answer to a string, or null. A string is an array of symbols, or a text if these are characters.
  function classify(string) {{
    let state = start;
    for (const symbol of string) state = step(state, symbol);
    return answer(state);
  }}

  // The strings whose answers differ from the answers when this file was written; the list should be empty.
  function selfTest() {{
    return tests.filter(([string, expected]) => classify(string) !== expected).map(([string]) => string);
  }}

  return {{ about, symbols, classes, start, symbolOf, step, answer, classify, selfTest, numTests: tests.length }};
}});
"""


@FORMATS.register("js")
class JavaScript(Format):
    """A file for ``require`` and for ``<script>``, with ``classify``, ``step``, ``answer``, ``symbolOf``, ``selfTest``.

    Without ``require``, the five functions are members of a global object, named ``machine`` unless notes give another
    name. Such files can be written, but not read.
    """

    suffixes = (".js", ".cjs")
    has_names = True
    comment = "// "

    @staticmethod
    def write(machine: LabeledMachine) -> str:
        """Return a module that contains the machine and its functions."""
        return JavaScript.write_annotated(machine, notes_on(machine))

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return a module with the notes' name, and with a self-test that uses the notes' strings."""
        num_states = machine.machine.num_states
        # The smallest typed array that can contain a state's number.
        bits = next(bits for bits in (8, 16, 32) if num_states <= 1 << bits)
        comments = [f"{cls.comment}{line}" for line in notes._replace(tests=()).lines()]
        return "".join(f"{line}\n" for line in comments) + _TEMPLATE.format(
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
