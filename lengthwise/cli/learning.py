"""The command learn."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from lengthwise.cli.messages import named_by_file
from lengthwise.cli.options import whole_number
from lengthwise.cli.outputs import check_folder
from lengthwise.cli.streams import say
from lengthwise.display import counted
from lengthwise.files import exists
from lengthwise.printing import write_lines

UNFINISHED = "unfinished"
"""The subfolder of the results that contains the best net so far if a search is interrupted."""

if TYPE_CHECKING:
    from lengthwise.learning.search import Attempt


def learn(
    file: Annotated[
        Path, Parameter(help="Labeled strings: .csv, .tsv, .jsonl, .parquet, or .dat as in Abbadingo or StaMInA.")
    ],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for machine, picture, net, certificate and numbers.")],
    separator: Annotated[str, Parameter(help="The text between symbols; without it each character is a symbol.")] = "",
    string: Annotated[str | None, Parameter(help="Column of the strings; by default one with a usual name.")] = None,
    label: Annotated[str | None, Parameter(help="Column of the labels; by default one with a usual name.")] = None,
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
) -> int:
    """Learn a finite machine from labeled strings, and prove that a net is that machine at every length.

    The longest strings, up to a fifth of all, and a tenth of the others are held out. The proof shows that the net
    answers like the machine. Only the held-out strings can show whether the machine is the right one.
    """
    unfinished = out / UNFINISHED
    check_folder(out, "learn", exists(out / "learned.json") or exists(unfinished / "compiled.json"))
    from lengthwise.learning.learned import learn as learn_machine
    from lengthwise.report.pages.learned import write_learned_page
    from lengthwise.report.tables.learned import learned_lines
    from lengthwise.runs.compiled import save_compiled

    if file.is_file() and budget > 0:
        say(f"{file}: reading, then merging states, and training small nets if needed, for up to {budget:g} CPU s", 0)

    with named_by_file(file), _naming_unfinished(unfinished):
        learned = learn_machine(
            file,
            separator=separator,
            string=string,
            label=label,
            supervision=supervision,
            budget=budget,
            seed=seed,
            exact=exact,
            report=partial(_say_attempt, count(1)),
            keep=partial(save_compiled, folder=unfinished),
        )
    if (out / "learned.json").exists():
        say(f"{out}: replaces the machine that was learned before", 0)
    # If a later write fails, the old page must not stay next to the new machine.
    (out / "report.html").unlink(missing_ok=True)
    learned.save(out)
    write_learned_page(learned, out / "report.html")
    # The best net so far is removed last, when the results are complete.
    rmtree(unfinished, ignore_errors=True)
    lines = [*learned_lines(learned), ("wrote", f"{out}: report.html, machine.dot and others")]
    write_lines(f"{name}: {sentence}" for name, sentence in lines)
    return 0


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
