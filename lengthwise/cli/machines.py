"""Commands about finite machines: describe, diff, convert."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from lengthwise.runs.machines import Given

Source = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="A machine's file, a certificate, a folder with one, or a regular expression (regex:... if it is a path).",
    ),
]


Alphabet = Annotated[
    str,
    Parameter(help="Symbols to add; strings with one that an automaton or an expression did not name are rejected."),
]


AsJSON = Annotated[bool, Parameter(name="--json", negative=(), help="Print a JSON object, for other programs.")]


def describe(machine: Source, /, *, alphabet: Alphabet = "", as_json: AsJSON = False) -> int:
    """Say what a machine is: states, symbols, answers, its transition monoid, and whether its language is star-free."""
    from lengthwise.automata.description import Description

    (given,) = _machines([machine], alphabet)
    description = Description(given.labeled)
    lines = [json.dumps(description.facts())] if as_json else description.lines()
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def diff(first: Source, second: Source, /, *, alphabet: Alphabet = "", as_json: AsJSON = False) -> int:
    """Say whether two machines answer every string alike, or give the shortest string on which they differ.

    Exits with code 0 if they are equal and with 1 if not. Symbols and answers are matched by name, accept and reject by
    what they mean. Strings that one of them leaves without an answer are not compared.
    """
    from lengthwise.automata.labeled import difference

    sources = (first, second)
    given = _machines(sources, alphabet)
    shortest = difference(*(one.compared for one in given))
    if as_json:
        string, answers = (None, None) if shortest is None else (list(shortest.string), list(shortest.answers))
        sys.stdout.write(json.dumps({"equal": shortest is None, "string": string, "answers": answers}) + "\n")
        return 0 if shortest is None else 1
    lines = ["equal" if shortest is None else "different"]
    if shortest is not None:
        lines.append(f"string: {given[0].labeled.text(shortest.string) or 'the empty one'}")
        lines += [f"{source}: {answer}" for source, answer in zip(sources, shortest.answers, strict=True)]
    for source, one in zip(sources, given, strict=True):
        if not one.answers_empty:
            lines.append(f"not compared: the empty string, of which {source} says nothing")
        elif num_unanswered := one.labeled.num_unanswered:
            lines.append(
                f"not compared: strings that {source} does not answer (states without an answer: {num_unanswered})"
            )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0 if shortest is None else 1


def convert(
    machine: Source,
    file: Annotated[Path, Parameter(help="File to write; its suffix, .dot for one, says in which format.")],
    /,
    *,
    alphabet: Alphabet = "",
    mealy: Annotated[
        bool, Parameter(negative=(), help="In DOT, as a Mealy machine: outputs on edges, none for the empty string.")
    ] = False,
) -> int:
    """Write a machine in another format."""
    from lengthwise.automata.formats.files import format_of, write_machine
    from lengthwise.cli.outputs import check_writable

    format_of(file)
    (given,) = _machines([machine], alphabet)
    check_writable(file)
    wrote = "replaced" if file.exists() else "wrote"
    write_machine(given.labeled, file, mealy=mealy)
    labeled = given.labeled
    lines = [
        f"machine: {labeled.machine.num_states} states, {len(labeled.symbols)} symbols, answers "
        f"{', '.join(labeled.classes)}"
    ]
    if labeled.num_unanswered:
        lines.append(f"no answer: in {labeled.num_unanswered} states, which reject where a format has no other way")
    sys.stdout.writelines(f"{line}\n" for line in [*lines, f"{wrote}: {file}"])
    return 0


def _machines(sources: Sequence[str], alphabet: str) -> "list[Given]":
    """The machine of each source, with these symbols among its own."""
    from lengthwise.runs.machines import given_machines

    return [one._replace(labeled=one.labeled.with_symbols(alphabet)) for one in given_machines(sources, alphabet)]


COMMANDS = {"describe": describe, "diff": diff, "convert": convert}
