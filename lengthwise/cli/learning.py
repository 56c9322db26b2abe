"""The command learn."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count as numbers_from
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from lengthwise.cli.messages import named_by_file
from lengthwise.cli.options import USUAL_COLUMNS, Columns, whole_number
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


def learn(
    file: Annotated[
        Path, Parameter(help="Labeled strings: .csv, .tsv, .jsonl, .parquet, or .dat as in Abbadingo or StaMInA.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for machine, picture, net, certificate and numbers.")],
    columns: Columns = USUAL_COLUMNS,
    supervision: Annotated[
        Literal["last", "prefix"], Parameter(help="last: one label for each string; prefix: one label for each symbol.")
    ] = "last",
    budget: Annotated[float, Parameter(help="CPU seconds after which no further attempt begins.")] = 60.0,
    seed: Annotated[
        int, Parameter(converter=whole_number, help="Seed of the models and of the choice of held-out strings.")
    ] = 0,
    exact: Annotated[
        bool, Parameter(negative=(), help="All labels are right: prefer machines that contradict no label.")
    ] = False,
    min_accuracy: Annotated[
        float | None, Parameter(help="Exit with code 1 if the machine is right on a smaller part of held-out labels.")
    ] = None,
    as_json: AsJSON = False,
) -> int:
    """Learn a finite machine from labeled strings, and prove that a net is that machine at every length.

    The longest strings, up to a fifth of all, and a tenth of the others are held out. The proof shows that the net
    answers like the machine. Only the held-out strings can show whether the machine is the right one.
    """
    if min_accuracy is not None and not 0 <= min_accuracy <= 1:
        raise ValueError(f"min_accuracy: expected a fraction from 0 to 1, got {min_accuracy:g}; write 0.95 for 95 %")
    unfinished = out / UNFINISHED
    check_folder(out, "learn", exists(out / "learned.json") or exists(unfinished / "compiled.json"))
    from lengthwise.learning.learned import learn as learn_machine
    from lengthwise.report.tables.learned import learned_lines
    from lengthwise.runs.compiled import save_compiled

    if file.is_file() and budget > 0:
        say(f"{file}: reading, then merging states, and training small nets if needed, for up to {budget:g} CPU s", 0)

    with named_by_file(file), _naming_unfinished(unfinished):
        learned = learn_machine(
            file,
            **vars(columns),
            supervision=supervision,
            budget=budget,
            seed=seed,
            exact=exact,
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
    return 0 if min_accuracy is None else _code_of_accuracy(learned, min_accuracy)


def _save(learned: "Learned", out: Path) -> None:
    from lengthwise.report.pages.learned import write_learned_page

    if (out / "learned.json").exists():
        say(f"{out}: replaces the machine that was learned before", 0)
    # If a later write fails, the old page must not stay next to the new machine.
    (out / "report.html").unlink(missing_ok=True)
    learned.save(out)
    write_learned_page(learned, out / "report.html")


def _code_of_accuracy(learned: "Learned", minimum: float) -> int:
    """Return 0 if the machine reaches an accuracy on all held-out labels together, else say so and return 1."""
    right, total = learned.held_out()
    if total and right >= minimum * total:
        return 0
    got = f"{right:,} of {counted(total, 'label')}"
    return say(f"--min-accuracy: expected {percent(minimum)} of the held-out labels, got {got}; give more examples", 1)


@contextmanager
def _naming_unfinished(unfinished: Path) -> Iterator[None]:
    """Name the folder of the best net so far if the user stops the search."""
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


COMMANDS = {"learn": learn}
