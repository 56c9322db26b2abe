"""The command that adds a user's own models to the leaderboard."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.devices import check_alone, workers_on
from lengthwise.cli.experimenting import Page, Sweep, print_outcomes, reproduce
from lengthwise.cli.options import Device, Root, Workers, folder
from lengthwise.cli.streams import Output
from lengthwise.registry import EXTENSIONS, file_of, load_extensions

if TYPE_CHECKING:
    from lengthwise.experiment import Experiment, Scale
    from lengthwise.runs.pools.base import PoolOptions
    from lengthwise.runs.result import RunResult
    from lengthwise.studies.leaderboard.experiments.leaderboard import Entrant


def leaderboard(
    *,
    model: Annotated[
        str | None,
        Parameter(help="A model's name, or a Python file that registers models: run only their cells."),
    ] = None,
    row: Annotated[str | None, Parameter(help="Run only the cells of this task.")] = None,
    scale: Annotated[
        str, Parameter(help="small, the size of the recorded runs, or smoke (seconds), to try a model.")
    ] = "small",
    workers: Annotated[Workers | None, Parameter(help="Runs at a time, one core each; 2 if not given.")] = None,
    runs: Root = Path("runs"),
    pages: Annotated[
        Path, Parameter(converter=folder, help="Folder for the page; without records there, the package's are used.")
    ] = Path("docs/results"),
    device: Device = "cpu",
) -> int:
    """Measure all models on all regular tasks by one protocol, or add your own to the recorded ones.

    The learning rate of your model is chosen like all others, by the lowest training loss on the task of
    `leaderboard/rates`. This command loads your file; for other commands, name the file in the environment variable
    LENGTHWISE_EXTENSIONS. The page is written again, with your column last, even if you stop the command.
    """
    from lengthwise.experiment import parse_scale
    from lengthwise.report.pages.results import file_stem
    from lengthwise.runs.pools.base import PoolOptions
    from lengthwise.runs.records import read_records, records_file
    from lengthwise.studies.leaderboard.experiments.leaderboard import ENTRANTS, leaderboard_of

    _check_given(scale, pages)
    records = records_file(pages, file_stem("leaderboard", scale))
    if model is None:
        return reproduce(
            "leaderboard",
            scale=scale,
            runs=runs,
            pages=pages,
            recorded=records.exists(),
            row=row,
            sweep=Sweep(workers=workers, device=device),
        )
    check_alone("model", "lengthwise train")
    console = Output()
    names = _models_of(model)
    _check_is_new(names, {entrant.model: entrant.column for entrant in ENTRANTS})
    before = read_records(records) if records.exists() else []
    _print_recorded(records, before, [*(entrant.model for entrant in ENTRANTS), *names], scale, console)
    size = parse_scale(scale)
    options = PoolOptions(workers)
    _announce(names, row, size, console)
    with workers_on(device):
        added = [_with_rate(name, size, runs, console, options) for name in names]
        _restore(records, before, runs)
        own = leaderboard_of(added, size).select(row)
        whole = leaderboard_of([*ENTRANTS, *added], size)
        page = Page("leaderboard", scale, whole, runs, pages, before, f"lengthwise leaderboard --model {model}")
        return _run(own, page, console, options)


def _announce(names: Sequence[str], row: str | None, size: "Scale", console: Output) -> None:
    """Print how many runs each model needs. A wrong setting is found here, before the first run trains."""
    from lengthwise.studies.leaderboard.experiments.leaderboard import RATES, Entrant, leaderboard_of

    planned = leaderboard_of([Entrant(name, name, {}, RATES[0]) for name in names], size).select(row)
    console.print_line(
        f"{', '.join(names)}: {len(RATES)} runs each for a learning rate, then {len(planned.specs) // len(names)} each"
    )


def _restore(records: Path, before: "list[RunResult]", runs: Path) -> None:
    """Restore the recorded runs, finished and diverged ones, in the folder of runs."""
    from lengthwise.runs.records import read_diverged, restore, restore_diverged

    restore(before, runs)
    restore_diverged(read_diverged(records) if before else [], runs)


def _run(own: "Experiment", page: Page, console: Output, options: "PoolOptions") -> int:
    """Run these cells and write the whole page, even after an interruption; return the exit code."""
    from lengthwise.cli.progress import page_updates, run_all
    from lengthwise.runs.signals import Interrupted

    try:
        outcomes = run_all(own.specs, own.plans, page.runs, console, options, also=page_updates(page.write))
        code = print_outcomes(own, outcomes, console)
    except Interrupted:
        console.print_line("stopped; writing the page of the finished runs takes half a minute")
        _write(page, console)
        raise
    _write(page, console)
    return code


def _write(page: Page, console: Output) -> None:
    for path in page.write():
        console.print_line(f"wrote {path}")


def _check_given(scale: str, pages: Path) -> None:
    if scale not in ("smoke", "small"):
        raise ValueError(f"scale: expected smoke or small, got {scale!r}; the leaderboard has no other")
    if pages.exists() and not pages.is_dir():
        raise ValueError(f"pages: expected a folder, got {pages}, which is a file; name another")


def _check_is_new(names: Sequence[str], columns: Mapping[str, str]) -> None:
    """Raise a ValueError if a model already has a column."""
    for name in names:
        if name in columns:
            raise ValueError(
                f"model: expected a model that is not on the leaderboard, got {name}, the column {columns[name]!r}; "
                f"`lengthwise reproduce leaderboard --column {columns[name]!r}` runs its cells"
            )


def _print_recorded(
    records: Path, before: "Sequence[RunResult]", on_page: Sequence[str], scale: str, console: Output
) -> None:
    """Print whether other models are recorded, and which recorded models the page will not show."""
    others = sorted({str(result.spec["model"]["name"]) for result in before} - {*on_page})
    if not before:
        way_out = "name its folder, --pages" if scale != "smoke" else "at --scale small they are in docs/results"
        console.print_line(f"{records} has no records of other models, so the page shows only yours; {way_out}")
    else:
        console.print_line(f"the other models' results come from {records}")
    if others:
        console.print_line(
            f"these models are recorded in {records}, but the page shows only models of one file: {', '.join(others)}; "
            "put all into one file"
        )


def _models_of(text: str) -> list[str]:
    """Return a model's name, or the names of the models that a file registers."""
    from lengthwise.models.base import MODELS

    if not text.endswith(".py"):
        if text not in MODELS and Path(f"{text}.py").is_file():
            raise ValueError(f"model: expected a model's name or a file that registers one, got {text}; give {text}.py")
        return [MODELS[text].name]
    if not Path(text).is_file():
        raise ValueError(f"model: expected a model's name or a file that registers one, got {text}, not found")
    # An absolute path stays valid in workers, whatever their working folder is.
    path = str(Path(text).resolve())
    # Jobs carry the files in this variable to workers in other processes.
    os.environ[EXTENSIONS] = os.pathsep.join(filter(None, [os.environ.get(EXTENSIONS), path]))
    load_extensions()
    names = [name for name, registered in MODELS.items() if file_of(registered) == path]
    if not names:
        raise ValueError(f"model: expected a file that registers a model, got {text} without one")
    return names


def _with_rate(name: str, scale: "Scale", runs: Path, console: Output, options: "PoolOptions") -> "Entrant":
    """Return the model with the learning rate that has the lowest training loss on the held-out task."""
    from lengthwise.cli.progress import run_all
    from lengthwise.report.tables.cells import best_by_loss
    from lengthwise.studies.leaderboard.experiments.leaderboard import RATES, Entrant, rates_of

    search = rates_of([Entrant(name, name, {}, RATES[0])], scale)
    outcomes = run_all(search.specs, search.plans, runs, console, options)
    best = best_by_loss([outcome.result for outcome in outcomes if outcome.result is not None])
    if best is None:
        reasons = "; ".join(dict.fromkeys(outcome.reason for outcome in outcomes))
        raise ValueError(f"model: no net of {name} was trained on the task that chooses its learning rate: {reasons}")
    rate = float(best.spec["train"]["optimizer"]["learning_rate"])
    console.print_line(f"{name}: learning rate {rate:g}, by the lowest training loss of {len(search.specs)}")
    return Entrant(name, name, {}, rate)


COMMANDS = {"leaderboard": leaderboard}
