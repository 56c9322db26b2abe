"""The command learn."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from itertools import count as numbers_from
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from lengthwise.cli.messages import named_by_file
from lengthwise.cli.options import USUAL_COLUMNS, Columns, whole_number
from lengthwise.cli.options import count as positive
from lengthwise.cli.outputs import AsJSON, check_folder, write_object
from lengthwise.cli.streams import say
from lengthwise.display import counted, percent
from lengthwise.files import exists
from lengthwise.printing import write_lines

UNFINISHED = "unfinished"
"""The subfolder of the results that contains the best net so far if a search is interrupted."""

if TYPE_CHECKING:
    from lengthwise.learning.learned import Learned
    from lengthwise.learning.search import Attempt
    from lengthwise.learning.systems import QueryCounts


@Parameter(name="*")
@dataclass(frozen=True)
class ExampleOptions:
    """Options for learning from a file of labeled strings."""

    supervision: Annotated[
        Literal["last", "prefix"], Parameter(help="last: one label for each string; prefix: one label for each symbol.")
    ] = "last"
    budget: Annotated[float, Parameter(help="CPU seconds after which no further attempt begins.")] = 60.0
    seed: Annotated[
        int, Parameter(converter=whole_number, help="Seed of the models and of the choice of held-out strings.")
    ] = 0
    exact: Annotated[bool, Parameter(help="Treat all labels as right: prefer machines that contradict no label.")] = (
        False
    )
    min_accuracy: Annotated[
        float | None,
        Parameter(help="Exit with code 1 if the accuracy on all held-out labels is lower than this fraction."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class SystemOptions:
    """Options for learning from a program instead of a file: its command and symbols, and the limits of queries."""

    system: Annotated[
        str | None,
        Parameter(
            help="Instead of FILE: a command that reads one symbol per line, and answers each line with one line."
        ),
    ] = None
    symbols: Annotated[str, Parameter(help="Symbols of the system: characters, or words with spaces between them.")] = (
        ""
    )
    max_states: Annotated[
        int | None,
        Parameter(converter=positive, help="The machine is exact if the system has at most this number of states."),
    ] = None
    max_steps: Annotated[
        int, Parameter(converter=positive, help="The largest total number of symbols that the system reads.")
    ] = 1_000_000
    timeout: Annotated[float, Parameter(help="Seconds to wait for each line of output.")] = 10.0


EXAMPLES, SYSTEM = ExampleOptions(), SystemOptions()


def learn(
    file: Annotated[
        Path | None,
        Parameter(help="Labeled strings: .csv, .tsv, .jsonl, .parquet, .dat, .txt (MLRegTest), a FLaRe folder."),
    ] = None,
    /,
    *,
    out: Annotated[
        Path, Parameter(help="Folder for the machine, its picture, the net, its certificate and the statistics.")
    ],
    columns: Columns = USUAL_COLUMNS,
    examples: ExampleOptions = EXAMPLES,
    live: SystemOptions = SYSTEM,
    as_json: AsJSON = False,
) -> int:
    """Learn a finite machine from labeled strings, and prove that a net answers like this machine at every length.

    The longest strings (at most a fifth of all strings) and a tenth of the others are held out. The proof shows that
    the net answers like the machine. Only the held-out strings can show whether the machine is the right one.

    With --system, the machine is learned from the answers of a live program to strings that the learner chooses.
    """
    if live.system is not None:
        _check_default(columns, USUAL_COLUMNS, "with")
        _check_default(examples, EXAMPLES, "with")
        if file is not None:
            raise ValueError(
                f"--system: expected no FILE together with --system, got {file}; leave out FILE or --system"
            )
        return _learn_from_program(live, live.system, out, as_json)
    _check_default(live, SYSTEM, "without")
    if file is None:
        raise ValueError("learn: expected FILE or --system, got neither; `lengthwise learn --help` explains both")
    return _learn_from_file(file, columns, examples, out, as_json)


def _learn_from_file(file: Path, columns: Columns, examples: ExampleOptions, out: Path, as_json: bool) -> int:
    """Learn a machine from labeled strings, and write it with a net and a page."""
    minimum = examples.min_accuracy
    if minimum is not None and not 0 <= minimum <= 1:
        raise ValueError(f"min_accuracy: expected a fraction from 0 to 1, got {minimum:g}; write 0.95 for 95 %")
    unfinished = out / UNFINISHED
    check_folder(out, "learn", exists(out / "learned.json") or exists(unfinished / "compiled.json"))
    from lengthwise.learning.learned import learn as learn_machine
    from lengthwise.report.tables.learned import learned_lines
    from lengthwise.runs.compiled import save_compiled

    if file.exists() and examples.budget > 0:
        budget = f"up to {examples.budget:g} CPU s"
        say(f"{file}: reading, then merging states, and training small nets if needed, for {budget}", 0)

    with named_by_file(file), _naming_unfinished(unfinished):
        learned = learn_machine(
            file,
            **vars(columns),
            supervision=examples.supervision,
            budget=examples.budget,
            seed=examples.seed,
            exact=examples.exact,
            report=partial(_say_attempt, numbers_from(1)),
            keep=partial(save_compiled, folder=unfinished),
        )
    _save(learned, out)
    # The best net so far is removed last, when the results are complete.
    rmtree(unfinished, ignore_errors=True)
    if as_json:
        names = {"symbols": learned.machine.symbols, "answers": learned.classes}
        write_object({"folder": str(out), "claim": learned.claim, **names, **learned.to_json()})
    else:
        lines = [*learned_lines(learned), ("wrote", f"{out}: report.html, machine.dot and others")]
        write_lines(f"{name}: {sentence}" for name, sentence in lines)
    return 0 if minimum is None else _code_of_accuracy(learned, minimum)


def _save(learned: "Learned", out: Path) -> None:
    from lengthwise.report.pages.learned import write_learned_page

    _remove_earlier(out)
    learned.save(out)
    write_learned_page(learned, out / "report.html")


def _code_of_accuracy(learned: "Learned", minimum: float) -> int:
    """Return 0 if the accuracy on all held-out labels together reaches a minimum; else write a message and return 1."""
    right, total = learned.held_out()
    if total and right >= minimum * total:
        return 0
    got = f"{right:,} of {counted(total, 'label')}"
    expected = f"{percent(minimum)} of the held-out labels to be right"
    return say(f"--min-accuracy: expected {expected}, got {got}; give more examples, or lower --min-accuracy", 1)


def _learn_from_program(options: SystemOptions, command: str, out: Path, as_json: bool) -> int:
    """Learn a machine from a program, and write it with a net."""
    check_folder(out, "learn", exists(out / "learned.json"))
    if options.max_states is None or not options.symbols:
        lacking = "--symbols" if options.max_states else "--max-states"
        raise ValueError(f"{lacking}: expected a value with --system, got none; add {lacking} with a value")
    if "," in options.symbols and " " not in options.symbols:
        raise ValueError(
            f"--symbols: expected no comma, or spaces between all symbols, got {options.symbols!r}; separate the "
            "symbols by spaces, even if the comma is one of them"
        )
    from lengthwise.learning.program import Program
    from lengthwise.learning.systems import learn_system

    symbols = options.symbols.split() if " " in options.symbols else list(options.symbols)
    with Program(command, timeout=options.timeout) as program:
        learned = learn_system(
            program, symbols, max_states=options.max_states, max_steps=options.max_steps, report=_say_hypothesis
        )
    _remove_earlier(out)
    certificate = learned.save(out)
    if as_json:
        names = {"symbols": learned.machine.symbols, "answers": learned.classes}
        level = None if certificate is None else certificate.level
        write_object({"folder": str(out), **names, "level": level, **learned.to_json()})
        return 0
    num_states, num_strings, num_steps = learned.counts
    lines = [
        f"machine: {counted(num_states, 'state')}, {counted(len(symbols), 'symbol')}, as a Mealy machine",
        f"queries: {counted(num_strings, 'string')}, {counted(num_steps, 'step')}",
        f"claim: {learned.claim}",
    ]
    if learned.max_states < options.max_states:
        lines.append(f"note: the steps did not suffice for {counted(options.max_states, 'state')}; raise --max-steps")
    net = (
        "none, because the machine is too large"
        if certificate is None
        else f"{certificate.level}: it answers like the machine"
    )
    write_lines([*lines, f"net: {net}", f"wrote: {out}: machine.dot and others"])
    return 0


def _check_default(options: Columns | ExampleOptions | SystemOptions, defaults: object, case: str) -> None:
    """Raise a ValueError that names the first option with a value other than its default."""
    for field in fields(options):
        if (value := getattr(options, field.name)) != getattr(defaults, field.name):
            flag = f"--{field.name.replace('_', '-')}"
            raise ValueError(f"{flag}: not allowed {case} --system, got {value}; leave {flag} out")


def _remove_earlier(out: Path) -> None:
    """Remove the page of an earlier machine, which must not stay next to the new machine if a later write fails."""
    if (out / "learned.json").exists():
        say(f"{out}: replaces the machine that was learned before", 0)
    (out / "report.html").unlink(missing_ok=True)


@contextmanager
def _naming_unfinished(unfinished: Path) -> Iterator[None]:
    """Print the folder of the best net so far if the user stops the search."""
    try:
        yield
    except KeyboardInterrupt:
        if unfinished.exists():
            say(f"{unfinished}: the best net so far, which commands accept like a compiled one", 0)
        raise


def _say_attempt(numbers: Iterator[int], attempt: "Attempt") -> None:
    by_net = f", a net of {counted(attempt.size, 'state')}" if attempt.method == "net" else f", {attempt.method}"
    say(
        f"attempt {next(numbers)}{by_net}: a machine of {counted(attempt.num_states, 'state')}, "
        f"{counted(attempt.num_errors, 'error')}, {attempt.seconds:.1f} CPU s",
        0,
    )


def _say_hypothesis(counts: "QueryCounts") -> None:
    num_states, num_strings, num_steps = counts
    after = f"{counted(num_strings, 'string')} and {counted(num_steps, 'step')}"
    say(f"hypothesis of {counted(num_states, 'state')} after {after}", 0)


COMMANDS = {"learn": learn}
