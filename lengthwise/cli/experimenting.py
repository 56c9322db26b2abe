"""Commands that run whole experiments: demo, reproduce."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from lengthwise.cli.devices import check_alone, workers_on
from lengthwise.cli.options import Device, Root, Workers
from lengthwise.cli.streams import Output


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the runs and the report.")] = Path("demo"),
    workers: Workers = 3,
    scale: Annotated[str, Parameter(help="small (the real thing) or smoke (seconds).")] = "small",
) -> int:
    """Train nets on six tasks at lengths up to 40 until they are proved, and measure them up to length 100,000."""
    from lengthwise.cli.progress import run_experiment
    from lengthwise.cli.reporting import report
    from lengthwise.experiments.base import EXPERIMENTS, parse_scale
    from lengthwise.report.pages.terminal import print_failures, print_results
    from lengthwise.report.tables.settings import task_of
    from lengthwise.runs.until import attempts_text

    console = Output()
    out = out if scale != "smoke" else out / "smoke"
    experiment = EXPERIMENTS["demo"](parse_scale(scale))
    outcomes = run_experiment(experiment, out / "runs", workers, console)
    results = [outcome.result for outcome in outcomes if outcome.result]
    print_results(console, results, experiment.title)
    for result in results:
        console.print_line(f"{task_of(result)}: {'; '.join(attempts_text(result.training.attempts))}")
    failed = print_failures(console, outcomes)
    finished = tuple(out / "runs" / outcome.spec.id for outcome in outcomes if outcome.result)
    if finished:
        report(finished, out=out / "report.html")
    return 1 if failed else 0


def reproduce(
    name: Annotated[str, Parameter(help="Name of the experiment; see `lengthwise list experiments`.")],
    /,
    *,
    scale: Annotated[
        str, Parameter(help="smoke (seconds), small (a laptop) or paper (where an experiment has it).")
    ] = "small",
    workers: Workers = 2,
    runs: Root = Path("runs"),
    pages: Annotated[Path, Parameter(help="Folder for the page with the results.")] = Path("docs/results"),
    recorded: Annotated[
        bool, Parameter(negative=(), help="Count runs recorded next to the page as finished, too.")
    ] = False,
    page_only: Annotated[
        bool, Parameter(negative=(), help="Run no run: write the page of those that are finished.")
    ] = False,
    row: Annotated[str | None, Parameter(help="Run only this row's cells, and write no page.")] = None,
    column: Annotated[str | None, Parameter(help="Run only this column's cells, and write no page.")] = None,
    device: Device = "cpu",
) -> int:
    """Run an experiment and write its page: our numbers next to the paper's.

    Finished runs are not repeated; after an interruption the same command goes on. The page is written again. All
    results are kept next to it, in records/, compressed, with those that stood there of runs that this time have none.
    """
    from lengthwise.cli.progress import run_experiment
    from lengthwise.experiments.base import EXPERIMENTS, parse_scale
    from lengthwise.report.pages.results import file_stem, write_page
    from lengthwise.report.pages.terminal import print_failures, print_table
    from lengthwise.report.tables.experiment import main_table
    from lengthwise.runs.pool import finished
    from lengthwise.runs.records import read_records, restore, with_earlier, write_records

    console = Output()
    experiment = EXPERIMENTS[name](parse_scale(scale)).select(row, column)
    if experiment.lacks:
        raise ValueError(experiment.lacks)
    is_whole = row is None and column is None
    stem = file_stem(name, scale)
    records = pages / "records" / f"{stem}.jsonl.gz"
    before = read_records(records) if recorded or records.exists() else []
    if recorded:
        console.print_line(f"{restore(before, runs)} runs taken from {records}")
    if page_only:
        outcomes = finished(experiment.specs, runs, experiment.plans)
    else:
        check_alone("name", "lengthwise train")
        with workers_on(device):
            outcomes = run_experiment(experiment, runs, workers, console)
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    if is_whole and experiment.cells:
        write_records(records, with_earlier(results, before, experiment.specs))
    if experiment.cells:
        print_table(console, experiment.title, main_table(experiment, outcomes))
    failed = print_failures(console, outcomes)
    if is_whole:
        command = f"lengthwise reproduce {name} --scale {scale}"
        for path in write_page(name, scale, command, experiment, outcomes, runs, pages / f"{stem}.md"):
            console.print_line(f"wrote {path}")
    return 1 if failed else 0


COMMANDS = {"demo": demo, "reproduce": reproduce}
