"""Commands about finite machines: describe, diff, convert, combine."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.options import StringSeed
from lengthwise.cli.outputs import AsJSON, write_object
from lengthwise.cli.streams import say
from lengthwise.display import counted
from lengthwise.printing import write_lines
from lengthwise.registry import check_known

if TYPE_CHECKING:
    from lengthwise.automata.dfa import DFA
    from lengthwise.automata.labeled import LabeledMachine
    from lengthwise.runs.machine_sources import Given

Source = Annotated[
    str,
    Parameter(
        allow_leading_hyphen=True,
        help="A machine's file, a certificate, a folder with a certificate, or a regular expression (regex:..., or "
        "words:... if its symbols are words).",
    ),
]


Alphabet = Annotated[
    str,
    Parameter(help="Symbols to add to expressions and automata: characters, or words with spaces between them."),
]


Accept = Annotated[
    str | None,
    Parameter(
        allow_leading_hyphen=True,
        help="Read this answer as accept and all others as reject, in each machine that has this answer.",
    ),
]


Rename = Annotated[
    tuple[str, ...],
    Parameter(
        show_default=False,
        allow_leading_hyphen=True,
        help="Rename an answer, as OLD=NEW; may be repeated.",
    ),
]


def describe(machine: Source, /, *, alphabet: Alphabet = "", as_json: AsJSON = False) -> int:
    """Describe a machine: states, symbols, answers, its transition monoid, and whether its language is star-free."""
    from lengthwise.automata.description import Description

    (given,) = _machines([machine], alphabet)
    description = Description(given.labeled, answers_empty=given.answers_empty)
    if as_json:
        write_object(description.facts())
        return 0
    uncovered = [] if given.answers_empty else [f"not covered: {_empty_string(machine)}"]
    write_lines([*description.lines(), *uncovered])
    return 0


def diff(
    first: Source,
    second: Source,
    /,
    *,
    alphabet: Alphabet = "",
    accept: Accept = None,
    rename: Rename = (),
    min_level: Annotated[
        str | None, Parameter(help="Two nets: exit with code 1 below this level of equality. Default: bounded.")
    ] = None,
    budget: Annotated[
        float | None, Parameter(help="Two nets: CPU seconds after which no further step begins; no limit if not given.")
    ] = None,
    seed: StringSeed = 0,
    as_json: AsJSON = False,
) -> int:
    """Compare two machines or two nets on all strings, and print a string on which they differ, if one is found.

    Two nets (folders with weights, or TOML files) are equal if both are proved to answer like the same machine. They
    are different if a string is found that they answer differently. Otherwise, the result is not decided. Symbols are
    matched by name, and answers by name or else in their order. Exits with code 0 if the level of equality is bounded
    or proved (or at least --min-level), and with 1 otherwise.

    In all other cases, two machines are compared, and a net counts as the machine of its certificate. The printed
    string is as short as possible. Exits with code 0 if the machines are equal and with 1 if not. Symbols and answers
    are matched by name. Names that mean accept and reject are matched by meaning. Labels such as OK and FAIL count as
    such names if the machines name answers differently. Strings that one machine does not answer are not compared.
    """
    if all(map(_is_net, (first, second))):
        if alphabet or accept or rename:
            raise ValueError(
                "diff: --alphabet, --accept and --rename are not allowed with two nets; leave these options out"
            )
        return _diff_nets(Path(first), Path(second), min_level, budget, seed, as_json)
    for option, value in (("--min-level", min_level), ("--budget", budget)):
        if value is not None:
            raise ValueError(f"{option}: expected two nets, got a machine; leave out {option}, or name two nets")
    from lengthwise.automata.labeled import difference

    sources = (first, second)
    given = _machines(sources, alphabet, accept, rename)
    taken = _taken(sources, given)
    with _naming_options():
        shortest = difference(*(one.compared for one in given))
    not_compared = _not_compared(sources, given)
    if as_json:
        string, answers = (None, None) if shortest is None else (list(shortest.string), list(shortest.answers))
        compared = {"equal": shortest is None, "string": string, "answers": answers}
        write_object({**compared, "not_compared": not_compared, "taken": taken})
        return 0 if shortest is None else 1
    lines = ["equal" if shortest is None else "different"]
    if shortest is not None:
        lines.append(f"string: {given[0].labeled.text(shortest.string) or 'the empty one'}")
        lines += [f"{source}: {answer}" for source, answer in zip(sources, shortest.answers, strict=True)]
    lines += [f"taken: {sentence}" for sentence in taken]
    lines += [f"not compared: {strings}" for strings in not_compared]
    write_lines(lines)
    return 0 if shortest is None else 1


def _is_net(source: str) -> bool:
    """Return whether a source is a TOML file about a net, or a folder with weights."""
    path = Path(source)
    return (path.suffix == ".toml" and path.is_file()) or (path.is_dir() and any(path.glob("*.safetensors")))


def _diff_nets(first: Path, second: Path, min_level: str | None, budget: float | None, seed: int, as_json: bool) -> int:
    from lengthwise.certification.certificate import parse_level
    from lengthwise.runs.certified import compare_nets

    minimum = parse_level(min_level or "bounded")
    result, matched = compare_nets(first, second, seed, budget, report=_say_step)
    if as_json:
        content = {"equal": result.equal, **result.model_dump(mode="json")}
        write_object(content | ({"taken": [matched]} if matched else {}))
    else:
        lines = [*result.lines((str(first), str(second))), *([("taken", matched)] if matched else [])]
        write_lines(f"{name}: {sentence}" for name, sentence in lines)
    if result.reaches(minimum):
        return 0
    if result.equal is False:
        return 1
    if min_level is None:
        return say(f"not decided; `--min-level {result.level}` exits with code 0 at this level", 1)
    way_out = "train the nets further, or lower --min-level"
    return say(f"--min-level: expected {minimum} or higher, got {result.level}; {way_out}", 1)


def _say_step(sentence: str) -> None:
    say(sentence, 0)


def _taken(sources: Sequence[str], given: "Sequence[Given]") -> list[str]:
    """Return sentences about labels that are matched with accept and reject, if machines name answers differently."""
    from lengthwise.automata.answers import acceptor_index

    if len({frozenset(one.labeled.classes) for one in given}) == 1:
        return []
    sentences = [_taken_of(one.labeled) for one in given]
    if None in [acceptor_index(one.labeled.classes) for one in given]:
        return []
    return [f"{sentence} in {source}" for source, sentence in zip(sources, sentences, strict=True) if sentence]


def _taken_of(labeled: "LabeledMachine") -> str | None:
    """Return a phrase with the labels matched with accept and reject; None for automata and for other labels."""
    from lengthwise.automata.answers import acceptor_index

    index = acceptor_index(labeled.classes)
    if index is None or labeled.accepting_class is not None:
        return None
    return f"{labeled.classes[index]} as accept, {labeled.classes[1 - index]} as reject"


def _not_compared(sources: Sequence[str], given: "Sequence[Given]") -> list[str]:
    """Describe the strings that are not compared because a machine does not answer them."""
    strings = []
    for source, one in zip(sources, given, strict=True):
        if not one.answers_empty:
            strings.append(_empty_string(source))
        elif num_unanswered := one.labeled.num_unanswered:
            strings.append(f"strings that {source} does not answer (states without an answer: {num_unanswered})")
    return strings


def _empty_string(source: str) -> str:
    return f"the empty string, which {source} does not answer"


def convert(
    machine: Source,
    file: Annotated[Path, Parameter(help="File to write; its suffix, such as .dot, selects the format.")],
    /,
    *,
    alphabet: Alphabet = "",
    accept: Accept = None,
    rename: Rename = (),
    mealy: Annotated[
        bool,
        Parameter(
            help="Write DOT as a Mealy machine: with outputs on edges, and without an answer to the empty string."
        ),
    ] = False,
    with_sinks: Annotated[
        bool, Parameter(help="Draw the sinks (rejecting or without an answer) that a drawing otherwise omits.")
    ] = False,
) -> int:
    """Write a machine in another format."""
    from lengthwise.formats.files import format_of

    format_of(file)
    (given,) = _machines([machine], alphabet, accept, rename)
    write_lines(_write(given.labeled, file, mealy=mealy, with_sinks=with_sinks))
    return 0


def _write(labeled: "LabeledMachine", file: Path, *, mealy: bool = False, with_sinks: bool = False) -> list[str]:
    """Write a machine, and return the lines to print: its size, its unanswered states and its file."""
    from lengthwise.cli.outputs import check_writable
    from lengthwise.formats.files import format_of, write_machine

    check_writable(file)
    # Checked before writing, because afterwards the file always exists.
    wrote = "replaced" if file.exists() else "wrote"
    with _naming_options():
        write_machine(labeled, file, mealy=mealy, with_sinks=with_sinks)
    kind, num_states = (
        ("Mealy machine", labeled.mealy()[0].num_states) if mealy else ("machine", labeled.machine.num_states)
    )
    size = f"{counted(num_states, 'state')}, {counted(len(labeled.symbols), 'symbol')}"
    lines = [f"{kind}: {size}, answers {', '.join(labeled.classes)}"]
    if labeled.num_unanswered and not mealy:
        lines.append(
            f"no answer: in {counted(labeled.num_unanswered, 'state')}; in a format that cannot express this, such "
            "states reject"
        )
    if format_of(file).holds_automata_alone and (taken := _taken_of(labeled)):
        lines.append(f"taken: {taken}")
    return [*lines, f"{wrote}: {file}"]


OPERATORS: Mapping[str, "Callable[[DFA, DFA], DFA]"] = {"and": operator.and_, "or": operator.or_, "minus": operator.sub}
"""The words between two machines, and their operators."""

NOT = "not"
"""The word that requests the complement of the machine after it."""


def combine(
    *terms: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="Machines joined by 'and', 'or' or 'minus', as in A and not B; 'not' selects a machine's complement.",
        ),
    ],
    out: Annotated[Path, Parameter(help="File to write; its suffix, such as .dot, selects the format.")],
    alphabet: Alphabet = "",
    accept: Accept = None,
    rename: Rename = (),
) -> int:
    """Write the smallest automaton of an intersection, union, difference or complement of languages.

    The words 'and', 'or' and 'minus' apply from left to right: A or B and C means (A or B) and C. The word 'not'
    applies to the next machine.
    """
    from lengthwise.automata.labeled import labeled_dfa
    from lengthwise.formats.files import format_of

    format_of(out)
    steps = _steps(terms)
    sources = [source for _, _, source in steps]
    given = _machines(sources, alphabet, accept, rename)
    result = None
    with _naming_options():
        for (word, is_complement, _), one in zip(steps, given, strict=True):
            language = ~one.labeled.dfa() if is_complement else one.labeled.dfa()
            result = language if result is None else OPERATORS[word](result, language)
    assert result is not None
    lines = _write(labeled_dfa(result.minimize()), out)
    for source, one in dict(zip(sources, given, strict=True)).items():
        lines += _assumed(source, one)
    write_lines(lines)
    return 0


def _assumed(source: str, given: "Given") -> list[str]:
    """Return lines about the answers that count as accept and reject, and about strings without an answer."""
    lines = [f"taken: {taken} in {source}"] if (taken := _taken_of(given.labeled)) else []
    # If a machine does not answer the empty string, it has an unanswered state for this string alone. This state is not
    # counted, because the empty string has its own line.
    if num_states := given.compared.num_unanswered - (not given.answers_empty):
        lines.append(f"no answer: in {counted(num_states, 'state')} of {source}; strings that lead there are rejected")
    return lines if given.answers_empty else [*lines, f"not covered: {_empty_string(source)}"]


def _steps(terms: Sequence[str]) -> list[tuple[str, bool, str]]:
    """Return for each machine the word before it (empty for the first), whether it is complemented, and its source."""
    steps: list[tuple[str, bool, str]] = []
    waiting = list(terms)
    words = f"one of {', '.join(map(repr, OPERATORS))}"
    while waiting or not steps:
        word = waiting.pop(0) if steps else ""
        if steps and word not in OPERATORS:
            raise ValueError(
                f"terms: expected {words} after {steps[-1][2]}, got {word!r}; write one of these words between machines"
            )
        is_complement = waiting[:1] == [NOT]
        waiting = waiting[is_complement:]
        if not waiting or waiting[0] in (*OPERATORS, NOT):
            got, way_out = (
                (repr(waiting[0]), "name a file of this name as ./NAME") if waiting else ("none", "add a machine")
            )
            before = NOT if is_complement else word or "combine"
            raise ValueError(f"terms: expected a machine after {before!r}, got {got}; {way_out}")
        steps.append((word, is_complement, waiting.pop(0)))
    return steps


def _machines(
    sources: Sequence[str], alphabet: str, accept: str | None = None, rename: Sequence[str] = ()
) -> "list[Given]":
    """Return the machine of each source, with the symbols in `alphabet` added.

    Answers are renamed first. Then the accepting answer is chosen. Symbols that a net does not read raise a ValueError.
    """
    from lengthwise.runs.machine_sources import given_machines

    listed = alphabet.split() if " " in alphabet else list(alphabet)
    machines = _with_answers(given_machines(sources, listed), accept, rename)
    for index, (source, one) in enumerate(zip(sources, machines, strict=True)):
        symbols = alphabet.split() if one.labeled.separator else listed
        # A net reads only the symbols of its training, so nothing can be claimed about other symbols.
        new = [symbol for symbol in symbols if symbol not in one.labeled.symbols]
        if new and (not one.answers_empty or Path(source).is_dir()):
            raise ValueError(
                f"alphabet: expected symbols that the net at {source} reads, got {new[0]!r}; leave out {new[0]!r}"
            )
        machines[index] = one._replace(labeled=one.labeled.with_symbols(symbols))
    return machines


@contextmanager
def _naming_options() -> Iterator[None]:
    """Name options instead of arguments in errors about answers."""
    try:
        yield
    except ValueError as error:
        sentence = str(error).replace("(accept)", "(--accept ANSWER)").replace("(rename)", "(--rename OLD=NEW)")
        sentence = sentence.replace("(with_symbols)", "(--alphabet SYMBOLS)")
        raise ValueError(sentence) from None


def _with_answers(machines: "list[Given]", accept: str | None, rename: Sequence[str]) -> "list[Given]":
    for assignment in rename:
        old, equals, new = assignment.partition("=")
        if not (old and equals and new):
            raise ValueError(f"--rename: expected OLD=NEW, got {assignment!r}; write for example --rename FAIL=reject")
        _check_has(machines, old, "--rename")
        machines = [
            one._replace(labeled=one.labeled.renamed({old: new})) if old in one.labeled.classes else one
            for one in machines
        ]
    if accept is not None:
        _check_has(machines, accept, "--accept")
        machines = [
            one._replace(labeled=one.labeled.accepting(accept)) if accept in one.labeled.classes else one
            for one in machines
        ]
    return machines


def _check_has(machines: "Sequence[Given]", answer: str, option: str) -> None:
    """Raise a ValueError if no machine has this answer; `option` is the option that names it."""
    check_known(option, answer, dict.fromkeys(name for one in machines for name in one.labeled.classes))


COMMANDS = {"describe": describe, "diff": diff, "convert": convert, "combine": combine}
