"""Commands that run whole experiments: demo, reproduce."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from lengthwise.cli.devices import VARIABLE, check_alone, workers_on
from lengthwise.cli.options import Device, Root, Workers, folder
from lengthwise.cli.outputs import AsJSON, check_writable, write_object
from lengthwise.cli.streams import Output
from lengthwise.display import counted
from lengthwise.files import check_suffix

if TYPE_CHECKING:
    from lengthwise.experiment import Experiment
    from lengthwise.report.tables.table import Table
    from lengthwise.runs.pools.base import PoolOptions
    from lengthwise.runs.pools.outcome import Outcome
    from lengthwise.runs.result import RunResult


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the runs and the report.")] = Path("demo"),
    workers: Workers = 3,
    scale: Annotated[str, Parameter(help="small (the real experiment) or smoke (seconds).")] = "small",
) -> int:
    """Train nets on six tasks until the nets are proved right, and then measure the nets up to length 100,000.

    The nets are trained at lengths up to 40.
    """
    from lengthwise.cli.progress import run_all
    from lengthwise.cli.reporting import report
    from lengthwise.experiment import EXPERIMENTS, parse_scale
    from lengthwise.report.pages.terminal import print_failures, print_results
    from lengthwise.report.tables.settings import task_of
    from lengthwise.runs.goal import attempts_text
    from lengthwise.runs.pools.base import PoolOptions

    console = Output()
    out = out if scale != "smoke" else out / "smoke"
    experiment = EXPERIMENTS["demo"](parse_scale(scale))
    outcomes = run_all(experiment.specs, experiment.plans, out / "runs", PoolOptions(workers))
    results = [outcome.result for outcome in outcomes if outcome.result]
    print_results(console, results, experiment.title)
    console.print_lines(
        f"{task_of(result)}: {'; '.join(attempts_text(result.training.attempts))}" for result in results
    )
    failed = print_failures(console, outcomes)
    finished = tuple(out / "runs" / outcome.spec.id for outcome in outcomes if outcome.result)
    if finished:
        report(finished, out=out / "report.html")
    return 1 if failed else 0


@Parameter(name="*")
@dataclass(frozen=True)
class Sweep:
    """Options for executing the runs of an experiment."""

    workers: Annotated[Workers | None, Parameter(help="Runs at a time, one core each; 2 if not given.")] = None
    pool: Annotated[str, Parameter(help="Pool of runs: local, shared (by several commands), dask or ray.")] = "local"
    scheduler: Annotated[
        str | None, Parameter(help="Address of the pool's cluster; by default, a cluster is started on this machine.")
    ] = None
    shard: Annotated[
        str | None,
        Parameter(help="I/N, such as 2/3: run every N-th run, beginning with the I-th; write no table or page."),
    ] = None
    device: Device = "cpu"


ONE_MACHINE = Sweep()


def reproduce(
    name: Annotated[str, Parameter(help="Name of the experiment; see `lengthwise list experiments`.")],
    /,
    *,
    scale: Annotated[
        str, Parameter(help="smoke (seconds), small (a laptop) or paper (if the experiment has it).")
    ] = "small",
    runs: Root = Path("runs"),
    pages: Annotated[Path, Parameter(converter=folder, help="Folder for the page of results.")] = Path("docs/results"),
    recorded: Annotated[
        bool, Parameter(help="Count runs with records (next to the page, else in the package) as finished.")
    ] = False,
    page_only: Annotated[bool, Parameter(help="Do not train; write the page from finished runs.")] = False,
    rows: Annotated[str, Parameter(help="Run only these rows, as in parity,even-pairs; write no page.")] = "",
    columns: Annotated[str, Parameter(help="Run only these columns, as in gru,lstm; write no page.")] = "",
    out: Annotated[Path | None, Parameter(help="Also write the printed tables: .tex, .md or .csv.")] = None,
    sweep: Sweep = ONE_MACHINE,
    as_json: AsJSON = False,
) -> int:
    """Run an experiment and write its page: our numbers next to the paper's.

    Finished runs are not repeated; after an interruption, the same command continues the experiment. While runs
    execute, the page is written every quarter of an hour. The folder records/ next to the page keeps all results.
    """
    from lengthwise.cli.progress import page_updates, run_all
    from lengthwise.experiment import EXPERIMENTS, parse_scale
    from lengthwise.report.pages.results import file_stem
    from lengthwise.runs.pools.base import PoolOptions
    from lengthwise.runs.pools.outcome import finished

    options = PoolOptions(sweep.workers, sweep.scheduler)
    _check_page_only(page_only, **vars(sweep))
    _check_output(out, sweep.shard, as_json)
    console = Output(is_error=as_json)
    experiment = EXPERIMENTS[name](parse_scale(scale)).select(rows, columns)
    _announce(experiment, console, runs_anything=not page_only, takes_records=recorded)
    before = _on_record(pages, file_stem(name, scale), runs, console, counts=recorded)
    page = Page(name, scale, experiment, runs, pages, before) if not (rows or columns) else None
    if page_only:
        outcomes = finished(experiment.specs, runs, experiment.plans)
    else:
        check_alone("name", "use `lengthwise train`")
        with workers_on(sweep.device):
            if sweep.shard is not None:
                return _run_shard(sweep.shard, experiment, runs, console, options, sweep.pool)
            # A sweep can take hours, and its user wants to see the page before the sweep ends.
            also = page and page_updates(page.write)
            outcomes = run_all(experiment.specs, experiment.plans, runs, options, sweep.pool, also)
    tables = outcome_tables(experiment, outcomes)
    code = print_outcomes(experiment, outcomes, console, tables)
    if page is None:
        # A page contains these notes on the scale. Without a page, they are printed.
        console.print_lines(f"  {note}" for note in experiment.scale_notes(scale))
    files = _write_files(page, outcomes, tables, out)
    console.print_lines(f"wrote {path}" for path in files)
    if as_json:
        _write_object(tables, outcomes, files)
    return code


def _write_files(
    page: "Page | None", outcomes: "list[Outcome]", tables: "dict[str, Table]", out: Path | None
) -> list[Path]:
    from lengthwise.report.tables.files import write_tables

    files = page.write(outcomes) if page else []
    if out is not None:
        write_tables(tables, out)
        files.append(out)
    return files


def _write_object(tables: "dict[str, Table]", outcomes: "list[Outcome]", files: list[Path]) -> None:
    failed = [outcome.spec.id for outcome in outcomes if outcome.result is None]
    rows = {title: table.to_rows() for title, table in tables.items()}
    write_object({"tables": rows, "failed": failed, "files": list(map(str, files))})


def _check_output(out: Path | None, shard: str | None, as_json: bool) -> None:
    """Raise a ValueError if tables cannot be written, or are requested for a shard, which has no tables."""
    from lengthwise.report.tables.files import SUFFIXES

    if out is not None:
        check_suffix("out", out, SUFFIXES)
        check_writable(out)
    if shard is not None and (as_json or out is not None):
        option = "--json" if as_json else "--out"
        raise ValueError(f"{option}: not allowed with --shard, which makes no table; leave out {option} or --shard")


def _announce(experiment: "Experiment", console: Output, *, runs_anything: bool, takes_records: bool) -> None:
    """Print what an experiment requires; raise a ValueError if it cannot run, or needs weights that records lack."""
    if takes_records and experiment.requires.weights:
        raise ValueError(
            "recorded: this experiment reads the weights of its nets, which records do not contain; leave out "
            "--recorded"
        )
    needs, lacks = experiment.requires.needs, experiment.requires.lacks
    if needs:
        needs += " --device selects the device, and --columns or --shard a part of the runs."
    if lacks:
        raise ValueError(f"{lacks}. {needs}" if needs else lacks)
    if needs and runs_anything:
        console.print_line(needs)


def _on_record(pages: Path, stem: str, runs: Path, console: Output, *, counts: bool) -> "list[RunResult]":
    """Return the recorded results of an experiment, from the file next to its page.

    With `counts`, the package's file replaces a missing file, and the recorded runs are restored as finished runs.
    """
    from lengthwise.runs.records import read_diverged, read_records, records_file, restore, restore_diverged

    records = records_file(pages, stem) if counts else pages / "records" / f"{stem}.jsonl.gz"
    before = read_records(records) if counts or records.exists() else []
    if counts:
        num_taken, count = restore(before, runs)
        console.print_line(f"{counted(num_taken, 'run')} taken from {records}")
        if count:
            console.print_line(
                f"{counted(count, 'recorded result')} not taken, because {runs} has other measurements of the "
                "same runs; give another folder with --runs to read all records"
            )
        # Diverged runs have no result, but training them again would only diverge again.
        restore_diverged(read_diverged(records), runs)
    return before


def _check_page_only(page_only: bool, **given: object) -> None:
    """Raise a ValueError if options about execution are given with --page-only; the environment may set the device."""
    defaults = (None, "local", "cpu", os.environ.get(VARIABLE))
    for option, value in given.items():
        if page_only and value not in defaults:
            raise ValueError(
                f"{option}: not allowed with --page-only, which runs nothing, got {value}; leave one of the two out"
            )


def _run_shard(
    text: str, experiment: "Experiment", runs: Path, console: Output, options: "PoolOptions", pool: str
) -> int:
    """Run one shard of the runs. A later command writes the page."""
    from lengthwise.cli.progress import run_all
    from lengthwise.report.pages.terminal import print_failures
    from lengthwise.runs.pools.shard import parse_shard

    shard = parse_shard(text)
    specs = shard.select(experiment.specs)
    outcomes = run_all(specs, shard.select(experiment.plans), runs, options, pool)
    failed = print_failures(console, outcomes)
    done = sum(outcome.result is not None for outcome in outcomes)
    console.print_line(
        f"{done} of the {len(specs)} runs of shard {text} are finished; after all shards, the same command with "
        "--page-only instead of --shard writes the page"
    )
    return 1 if failed else 0


def outcome_tables(experiment: "Experiment", outcomes: "list[Outcome]") -> "dict[str, Table]":
    """Return the tables of an experiment in a dictionary, by the titles of the tables.

    An experiment that is a matrix (`is_matrix`) has one table for each part, and other experiments have one table.
    """
    from lengthwise.report.tables.experiment import main_table
    from lengthwise.report.tables.matrix import column_tables, entries_of

    if not experiment.is_matrix:
        return {experiment.title: main_table(experiment, outcomes)} if experiment.cells else {}
    parts = column_tables(experiment, entries_of(experiment, outcomes))
    return {f"{experiment.title}: {part}" if part else experiment.title: t.without_empty() for part, t in parts.items()}


def print_outcomes(
    experiment: "Experiment",
    outcomes: "Sequence[Outcome]",
    console: Output,
    tables: "Mapping[str, Table]",
    notes: Iterable[str] = (),
) -> int:
    """Print an experiment's tables, notes, sources of the numbers and failed runs; return the exit code."""
    from lengthwise.report.pages.terminal import print_failures, print_table
    from lengthwise.report.tables.sources import source_lines

    for title, table in tables.items():
        print_table(console, title, table)
    console.print_lines(f"  {line}" for line in (*notes, *source_lines(experiment, outcomes)))
    return 1 if print_failures(console, outcomes) else 0


class Page(NamedTuple):
    """The page of an experiment and the records of its runs; `before` contains the results that were recorded earlier.

    `command` is the command that makes the page, if it is not `lengthwise reproduce`.
    """

    name: str
    scale: str
    experiment: "Experiment"
    runs: Path
    pages: Path
    before: "list[RunResult]"
    command: str = ""

    def write(self, outcomes: "list[Outcome] | None" = None) -> list[Path]:
        """Write page and records from `outcomes` (by default, from all finished runs); return the files of the page."""
        from lengthwise.report.pages.results import file_stem, write_page
        from lengthwise.runs.pools.outcome import finished
        from lengthwise.runs.records import diverged_now, read_diverged, records_file, with_earlier, write_records

        experiment, stem = self.experiment, file_stem(self.name, self.scale)
        if outcomes is None:
            outcomes = finished(experiment.specs, self.runs, experiment.plans)
        if experiment.cells:
            results = [outcome.result for outcome in outcomes if outcome.result is not None]
            records = self.pages / "records" / f"{stem}.jsonl.gz"
            # If only some runs of the experiment are finished, the results that were recorded before must stay.
            kept = with_earlier(results, self.before, experiment.specs)
            earlier = read_diverged(records) if records.exists() else []
            diverged = diverged_now(experiment.specs, self.runs, earlier, kept)
            write_records(records, kept, diverged, records_file(self.pages, stem))
        command = f"{self.command or f'lengthwise reproduce {self.name}'} --scale {self.scale}"
        page = self.pages / f"{stem}.md"
        return write_page(self.name, self.scale, command, experiment, outcomes, self.runs, page)


COMMANDS = {"demo": demo, "reproduce": reproduce}
