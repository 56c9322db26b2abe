"""Commands about finite machines: describe, diff, convert."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.display import counted
from lengthwise.printing import write_lines

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
    Parameter(help="Symbols to add to expressions and automata: characters, or words with spaces between them."),
]


AsJSON = Annotated[bool, Parameter(name="--json", negative=(), help="Print a JSON object, for other programs.")]


def describe(machine: Source, /, *, alphabet: Alphabet = "", as_json: AsJSON = False) -> int:
    """Say what a machine is: states, symbols, answers, its transition monoid, and whether its language is star-free."""
    from lengthwise.automata.description import Description

    (given,) = _machines([machine], alphabet)
    description = Description(given.labeled, answers_empty=given.answers_empty)
    lines = [json.dumps(description.facts())] if as_json else description.lines()
    if not given.answers_empty and not as_json:
        lines.append(f"not answered: {_empty_string(machine)}")
    write_lines(lines)
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
    not_compared = _not_compared(sources, given)
    if as_json:
        string, answers = (None, None) if shortest is None else (list(shortest.string), list(shortest.answers))
        content = {"equal": shortest is None, "string": string, "answers": answers, "not_compared": not_compared}
        write_lines([json.dumps(content)])
        return 0 if shortest is None else 1
    lines = ["equal" if shortest is None else "different"]
    if shortest is not None:
        lines.append(f"string: {given[0].labeled.text(shortest.string) or 'the empty one'}")
        lines += [f"{source}: {answer}" for source, answer in zip(sources, shortest.answers, strict=True)]
    lines += [f"not compared: {strings}" for strings in not_compared]
    write_lines(lines)
    return 0 if shortest is None else 1


def _not_compared(sources: Sequence[str], given: "Sequence[Given]") -> list[str]:
    """The strings that are left out as a machine does not answer them, in words."""
    strings = []
    for source, one in zip(sources, given, strict=True):
        if not one.answers_empty:
            strings.append(_empty_string(source))
        elif num_unanswered := one.labeled.num_unanswered:
            strings.append(f"strings that {source} does not answer (states without an answer: {num_unanswered})")
    return strings


def _empty_string(source: str) -> str:
    return f"the empty string, of which {source} says nothing"


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
    kind, num_states = (
        ("Mealy machine", labeled.mealy()[0].num_states) if mealy else ("machine", labeled.machine.num_states)
    )
    size = f"{counted(num_states, 'state')}, {counted(len(labeled.symbols), 'symbol')}"
    lines = [f"{kind}: {size}, answers {', '.join(labeled.classes)}"]
    if labeled.num_unanswered and not mealy:
        lines.append(f"no answer: in {labeled.num_unanswered} states, which reject where a format has no other way")
    write_lines([*lines, f"{wrote}: {file}"])
    return 0


def _machines(sources: Sequence[str], alphabet: str) -> "list[Given]":
    """The machine of each source, with these symbols among its own; a net has none but those that it reads."""
    from lengthwise.runs.machines import given_machines

    listed = alphabet.split() if " " in alphabet else list(alphabet)
    machines = given_machines(sources, listed)
    for index, (source, one) in enumerate(zip(sources, machines, strict=True)):
        symbols = alphabet.split() if one.labeled.separator else listed
        new = [symbol for symbol in symbols if symbol not in one.labeled.symbols]
        if new and (not one.answers_empty or Path(source).is_dir()):
            raise ValueError(f"alphabet: expected symbols that the net of {source} reads, got {new[0]!r}; leave it out")
        machines[index] = one._replace(labeled=one.labeled.with_symbols(symbols))
    return machines


COMMANDS = {"describe": describe, "diff": diff, "convert": convert}
