"""The command that measures models by published protocols."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from lengthwise.cli.budget import Budget, BudgetedSweep, RunOptions
from lengthwise.cli.devices import check_alone, workers_on
from lengthwise.cli.experimenting import Page, print_outcomes
from lengthwise.cli.options import folder, repeated
from lengthwise.cli.outputs import AsJSON, check_writable, write_object
from lengthwise.cli.streams import Output
from lengthwise.display import counted
from lengthwise.files import check_suffix
from lengthwise.printing import write_lines
from lengthwise.registry import EXTENSIONS, file_of, load_extensions

if TYPE_CHECKING:
    from lengthwise.experiment import Experiment, Scale
    from lengthwise.report.pages.benchmark import BenchmarkReport
    from lengthwise.report.tables.benchmark import Measured
    from lengthwise.runs.pools.outcome import Outcome
    from lengthwise.runs.result import RunResult
    from lengthwise.studies.benchmarks.benchmark import Benchmark
    from lengthwise.studies.leaderboard.experiments.leaderboard import Entrant


DEFAULT_OPTIONS = RunOptions()
RUNS, PAGES = DEFAULT_OPTIONS.runs, Path("docs/results")

Out = Annotated[tuple[Path, ...], repeated("Write the table as .md, .csv, .json or .tex, or the cited papers as .bib")]
Tables = Annotated[tuple[Path, ...], repeated("Also show the numbers of a paper in this TOML file")]


def bench(
    name: Annotated[str | None, Parameter(help="Name of the benchmark; without a name, all are listed.")] = None,
    /,
    *,
    model: Annotated[
        str | None,
        Parameter(help="Your model: a registered name, or a Python file that registers models."),
    ] = None,
    rows: Annotated[str, Parameter(help="Run only these tasks, as in parity,even-pairs.")] = "",
    columns: Annotated[str, Parameter(help="Run only the columns of these models, as in gru,lstm.")] = "",
    scale: Annotated[
        str, Parameter(help="smoke (seconds), small (a laptop) or paper (the published steps, if there are any).")
    ] = "small",
    out: Out = (),
    pages: Annotated[
        Path,
        Parameter(
            converter=folder, help="Folder for the page. If it has no recorded results, the package's results are used."
        ),
    ] = PAGES,
    published: Tables = (),
    options: RunOptions = DEFAULT_OPTIONS,
    as_json: AsJSON = False,
) -> int:
    """Measure a model by the protocol of a benchmark, next to recorded and published numbers.

    Without --model, our own models are measured. If the protocol sets no learning rate, your model gets the rate with
    the lowest training loss on the task of `leaderboard/rates`, as our models do. This command loads your file; for
    other commands, name the file in the environment variable LENGTHWISE_EXTENSIONS. Even if you stop the command, it
    writes the benchmark's page again, with your column last.
    """
    from lengthwise.experiment import parse_scale
    from lengthwise.report.pages.benchmark import WRITERS, write_benchmark
    from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, with_published

    console, size = Output(is_error=as_json), parse_scale(scale)
    if name is None:
        return _list(as_json)
    check_alone("name", "use `lengthwise train`")
    benchmark = BENCHMARKS[name]()
    for file in published:
        benchmark = with_published(benchmark, file, size)
    for file in out:
        check_suffix("out", file, WRITERS)
        check_writable(file)
    entrants = [] if model is None else _entrants(_models_of(model), benchmark)
    given = {"--model": model, "--runs": _unless(options.runs, RUNS), "--pages": _unless(pages, PAGES)}
    tables = [word for file in published for word in ("--published", str(file))]
    command = shlex.join(["lengthwise", "bench", name, *_words(given), *tables])
    request = _Request(benchmark, size, rows, columns, pages, command)
    report, code = _measure(request, entrants, BudgetedSweep(options, Budget(options.budget, options.runs)), console)
    for file in out:
        write_benchmark(report, file)
        console.print_line(f"wrote {file}")
    if as_json:
        write_object(report.to_json())
    return code


def _list(as_json: bool) -> int:
    from lengthwise.studies.benchmarks.benchmark import BENCHMARKS

    about = {key: (make.__doc__ or "").strip().splitlines()[0] for key, make in BENCHMARKS.items()}
    if as_json:
        write_object({"benchmarks": about})
    else:
        write_lines(f"{key}: {sentence}" for key, sentence in about.items())
    return 0


def _words(options: Mapping[str, str | None]) -> list[str]:
    """Return the words of a command line for the options that have a value."""
    return [word for option, value in options.items() if value for word in (option, value)]


def _unless(given: Path, default: Path) -> str | None:
    return None if given == default else str(given)


class _Request(NamedTuple):
    """A request to measure a benchmark: scale, rows and columns (`Experiment.select`), folder of the page, command."""

    benchmark: "Benchmark"
    scale: "Scale"
    rows: str
    columns: str
    pages: Path
    command: str

    def experiment(self, entrants: "Sequence[Entrant]") -> "Experiment":
        """Return the benchmark's experiment on `entrants` or, by default, our models, with only the requested cells."""
        return self.benchmark.make(entrants or self.benchmark.entrants, self.scale).select(self.rows, self.columns)

    def records(self) -> "tuple[Path, list[RunResult]]":
        """Return the file of the benchmark's records, and its results; if no file exists, the results are empty."""
        from lengthwise.report.pages.results import file_stem
        from lengthwise.runs.records import read_records, records_file

        records = records_file(self.pages, file_stem(self.benchmark.experiment, self.scale))
        return records, read_records(records) if records.exists() else []


def _measure(
    request: _Request, entrants: "list[Entrant]", sweep: BudgetedSweep, console: Output
) -> "tuple[BenchmarkReport, int]":
    """Run the models, write the page and print the table; return the report and the exit code."""
    from lengthwise.report.tables.benchmark import Measured
    from lengthwise.runs.pools.outcome import older_files

    benchmark, scale = request.benchmark, request.scale
    # A wrong row or setting ends the command here, before the first run trains.
    planned = request.experiment(entrants)
    if planned.requires.lacks:
        raise ValueError(planned.requires.lacks)
    entrants = [each for each in entrants if each.column in {cell.column for cell in planned.cells}]
    records, before = request.records()
    with workers_on(sweep.options.device):
        _announce(planned, benchmark.make([*benchmark.entrants, *entrants], scale), records, before, console)
        if benchmark.rates is not None:
            entrants = [_with_rate(each, benchmark.rates([each], scale), sweep, console) for each in entrants]
        _restore(records, before, sweep.options.runs)
        own = request.experiment(entrants)
        whole = benchmark.make([*benchmark.entrants, *entrants], scale)
        page = Page(benchmark.experiment, scale, whole, sweep.options.runs, request.pages, before, request.command)
        outcomes = _run(own, page, sweep, console)
    # Results at scale `smoke` are shown next to the recorded results at scale `small`, because numbers at scale `smoke`
    # have no meaning.
    compared = request._replace(scale="small") if scale == "smoke" else request
    is_compared = bool(entrants) or scale == "smoke"
    recorded = [_recorded(compared, before if compared is request else compared.records()[1])] if is_compared else []
    older = older_files(outcomes, sweep.options.runs)
    report = _report(request, [*recorded, Measured(own, outcomes, f"scale {scale}", older)])
    return report, _print(report, own, outcomes, console)


def _run(own: "Experiment", page: Page, sweep: BudgetedSweep, console: Output) -> "list[Outcome]":
    """Run the cells of `own`, and return the outcomes; the page is also written if the runs are stopped."""
    from lengthwise.cli.progress import page_updates
    from lengthwise.runs.signals import Interrupted

    try:
        outcomes = sweep.run(own, console, page_updates(page.write))
    except Interrupted:
        console.print_line("stopped; writing the page of the finished runs, which takes half a minute")
        console.print_lines(f"wrote {path}" for path in page.write())
        raise
    console.print_lines(f"wrote {path}" for path in page.write())
    return outcomes


def _restore(records: Path, before: "list[RunResult]", runs: Path) -> None:
    """Restore all recorded runs, finished or diverged, in the folder of runs."""
    from lengthwise.runs.records import read_diverged, restore, restore_diverged

    restore(before, runs)
    restore_diverged(read_diverged(records) if before else [], runs)


def _recorded(request: _Request, before: "list[RunResult]") -> "Measured":
    """Return the recorded results of the benchmark's own models."""
    from lengthwise.report.tables.benchmark import Measured
    from lengthwise.runs.pools.outcome import Outcome

    results = {result.run_id: result for result in before}
    experiment = request._replace(columns="").experiment([])
    outcomes = [Outcome(spec, results.get(spec.id)) for spec in experiment.specs]
    return Measured(experiment, outcomes, f"recorded, scale {request.scale}")


def _report(request: _Request, measured: "Sequence[Measured]") -> "BenchmarkReport":
    from lengthwise.report.pages.benchmark import BenchmarkReport
    from lengthwise.report.tables.benchmark import benchmark_tables, citations

    benchmark = request.benchmark
    score = max if benchmark.score == "best" else fmean
    given = {"--rows": request.rows, "--columns": request.columns, "--scale": request.scale}
    tables, notes = benchmark_tables(measured, benchmark.published, score)
    return BenchmarkReport(
        title=benchmark.title,
        source=benchmark.source,
        scale=request.scale,
        command=f"{request.command} {shlex.join(_words(given))}",
        tables=tables,
        notes=notes,
        protocol=benchmark.protocol,
        bibtex=benchmark.bibtex,
        citations=citations(benchmark.published, notes),
    )


def _print(report: "BenchmarkReport", own: "Experiment", outcomes: "Sequence[Outcome]", console: Output) -> int:
    """Print the tables, the sources of their numbers and the failed runs, and return the exit code."""
    named = {f"{report.title}: {part}" if part else report.title: table for part, table in report.tables.items()}
    tables = {title: table.without_empty() for title, table in named.items()}
    return print_outcomes(own, outcomes, console, tables, [*report.notes, *report.protocol])


def _entrants(names: Sequence[str], benchmark: "Benchmark") -> "list[Entrant]":
    """Return an entrant for each model, with a provisional learning rate; reject models that already have a column."""
    from lengthwise.studies.leaderboard.experiments.leaderboard import RATES, Entrant

    columns = {entrant.model: entrant.column for entrant in benchmark.entrants}
    published = {model for entries in benchmark.published.values() for _, model in entries}
    taken = {entrant.column for entrant in benchmark.entrants} | published
    for name in names:
        if name in columns:
            raise ValueError(
                f"model: expected a model that is not in the benchmark, got {name}, which has the column "
                f"{columns[name]!r}; to measure this column, run `lengthwise reproduce {benchmark.experiment} "
                f"--columns {columns[name]!r}`"
            )
        if name in taken:
            raise ValueError(
                f"model: expected a name that is not in the benchmark's table, got {name}; register your model under "
                "another name"
            )
    return [Entrant(name, name, {}, RATES[0]) for name in names]


def _announce(
    planned: "Experiment", whole: "Experiment", records: Path, before: "list[RunResult]", console: Output
) -> None:
    """Print the number of runs, the file of recorded results, and the recorded models that the page will not show."""
    columns = dict.fromkeys(cell.column for cell in planned.cells)
    console.print_line(f"{', '.join(columns)}: {counted(len(planned.specs), 'run')}")
    own, on_page = ({spec.model_name for spec in experiment.specs} for experiment in (planned, whole))
    others = {str(result.spec["model"]["name"]) for result in before} - own
    if others & on_page:
        console.print_line(f"the other models' results come from {records}")
    elif not others:
        console.print_line(f"{records} has no records of other models, so the page will show only this run's models")
    if hidden := sorted(others - on_page):
        console.print_line(
            f"these models are recorded in {records}, but not shown on the page: {', '.join(hidden)}; to show them, "
            "put all models into one file, and name it with --model"
        )


def _models_of(text: str) -> list[str]:
    """Return a model's name, or the names of the models that a file registers."""
    from lengthwise.models.base import MODELS

    if not text.endswith(".py"):
        if text not in MODELS and Path(f"{text}.py").is_file():
            raise ValueError(
                f"model: expected a model's name or a file that registers a model, got {text}; give {text}.py"
            )
        return [MODELS[text].name]
    if not Path(text).is_file():
        raise ValueError(
            f"model: expected a model or its file, got {text}, which does not exist; name an existing file"
        )
    # An absolute path stays valid in workers, whatever their working folder is.
    path = str(Path(text).resolve())
    # Jobs carry the files in this variable to workers in other processes.
    os.environ[EXTENSIONS] = os.pathsep.join(filter(None, [os.environ.get(EXTENSIONS), path]))
    load_extensions()
    names = [name for name, registered in MODELS.items() if file_of(registered) == path]
    if not names:
        raise ValueError(
            f"model: expected a file that registers a model, got {text}, which registers no model; write "
            '@MODELS.register("NAME") above the class of the model'
        )
    return names


def _with_rate(entrant: "Entrant", search: "Experiment", sweep: BudgetedSweep, console: Output) -> "Entrant":
    """Return the model with the learning rate of the run that has the lowest training loss in a search."""
    from lengthwise.report.tables.benchmark import older_lines
    from lengthwise.report.tables.cells import best_by_loss
    from lengthwise.runs.pools.outcome import NOT_RUN, older_files
    from lengthwise.runs.signals import Interrupted

    outcomes = sweep.run(search, console)
    # A rate chosen from fewer runs could differ from the rate that the command chooses without a budget.
    if any(outcome.reason == NOT_RUN for outcome in outcomes):
        raise Interrupted(
            f"{entrant.model}: the learning rate is not chosen yet, because some runs have not ended; to continue, run "
            "the same command again"
        )
    best = best_by_loss([outcome.result for outcome in outcomes if outcome.result is not None])
    if best is None:
        reasons = "; ".join(dict.fromkeys(outcome.reason for outcome in outcomes))
        raise ValueError(
            f"model: no net of {entrant.model} was trained on the task that chooses its learning rate ({reasons}); "
            "remove these causes, and run the command again"
        )
    console.print_lines(older_lines(older_files(outcomes, sweep.options.runs)))
    rate = float(best.spec["train"]["optimizer"]["learning_rate"])
    console.print_line(
        f"{entrant.model}: learning rate {rate:g}, with the lowest training loss in {counted(len(search.specs), 'run')}"
    )
    return entrant._replace(rate=rate)


COMMANDS = {"bench": bench}
