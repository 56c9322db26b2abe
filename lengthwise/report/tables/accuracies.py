"""Accuracies of the cells of an experiment."""

from collections.abc import Sequence
from statistics import fmean

from lengthwise.evaluation.interval import are_equal, mean_interval, wilson_interval
from lengthwise.evaluation.length_curve import LengthPoint
from lengthwise.evaluation.probe import PROBE_EVERY, PROBE_LENGTHS, TEST_EVERY, TEST_STRINGS, best_of_guesses
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, fit_text, table_of_cells
from lengthwise.report.tables.numbers import NOTHING, percent, percent_span, span
from lengthwise.report.tables.runs import run_rows
from lengthwise.report.tables.table import Table, is_length
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

COLUMNS = {
    "mean": "accuracy of the final answer, averaged over runs and lengths",
    "interval": (
        "a 95 % interval for the mean over all random tasks of this kind. The cell has a sample of these tasks. If all "
        "scores are equal, there is no interval, because equal scores do not show how much other tasks would differ"
    ),
    "proved": (
        "runs whose net is proved right at every length, with a 95 % interval for the share of such nets over all "
        "random tasks of this kind"
    ),
    "lowest": "the lowest accuracy of any run at any length",
    "best run": "the highest accuracy of a run, averaged over lengths",
    "solved": "runs without an error at any scored length",
    "chance": "accuracy of the best constant answer, averaged over lengths",
    "structured": (
        "the lowest accuracy of any run on the structured strings of one family and length (in brackets: the accuracy "
        "of the best constant answer on the same strings)"
    ),
    "at step": (
        f"every {PROBE_EVERY} steps, a run is tested on a fixed set of separately drawn strings of 48 to 500 symbols. "
        "(If a task has no strings of these lengths, its longest strings are used.) For each solved run, take the "
        "first test such that neither it nor a later test has an error. The column contains the steps of these tests. "
        '"-" means that the cell has no such test, or that its nets were trained on another task (for example, with '
        "another probability of ones)"
    ),
    "after CPU s": "the CPU seconds of training up to that step",
    "CPU s": (
        "CPU seconds of training; for a run with several attempts, the sum over all attempts and their certificates"
    ),
    "attempts": "the number of nets that a run trained; the last net was measured",
    "best test": (
        f"the highest test accuracy of a run, averaged over runs. Every {TEST_EVERY:,} steps, a run is tested on "
        f"{TEST_STRINGS} new strings of {PROBE_LENGTHS[-1]} symbols. (If a task has no strings of this length, its "
        "longest strings below this length are used.) Like the score of Fan et al. (2024), this score selects on "
        "test data"
    ),
    "fits": (
        "whether every run is right on nearly all strings of the longest training length (see the notes). If not, the "
        "lowest accuracy at that length is in brackets, and scores at longer lengths do not measure generalization"
    ),
    "guesses": "the expected *best test* of a net that always gives the most frequent answer",
}
"""The meaning of each column of the tables of accuracies, by the column's name."""


def accuracy_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: mean and extremes of its runs' accuracy at the scored lengths (see `COLUMNS`).

    Each long length has a separate column with the lowest accuracy of any run.
    """
    long = [f"{length:,}" for length, _ in experiment.plan.long]
    best = ("best test", "guesses") if experiment.scoring.best_test else ()
    fits = ("fits",) if experiment.scoring.fit else ()
    columns = (
        *("lengths", "mean", "best run", "lowest", "solved", "at step", "after CPU s", *long, "structured", "chance"),
        *("interval", "proved", "steps", "CPU s", "attempts", *fits, *best),
    )
    return table_of_cells(experiment, outcomes, columns, _numbers)


def main_columns(experiment: Experiment) -> tuple[str, ...]:
    """Return the eight most important columns, which depend on the scoring and the lengths of the experiment."""
    if experiment.scoring.best_test and experiment.scoring.fit:
        return ("row", "column", "fits", "mean", "best test", "guesses", "chance", "paper")
    if experiment.scoring.best_test:
        return ("row", "column", "mean", "solved", "best test", "guesses", "chance", "paper")
    if not experiment.plan.long:
        return ("row", "column", "mean", "best run", "lowest", "solved", "chance", "paper")
    longest = f"{max(length for length, _ in experiment.plan.long):,}"
    return ("row", "column", "mean", "lowest", longest, "solved", "chance", "paper")


def about_accuracies(table: Table) -> list[tuple[str, str]]:
    """Return pairs (column, meaning) for the columns of a table that need an explanation."""
    long = ", ".join(filter(is_length, table.header))
    return [
        *((name, COLUMNS[name]) for name in table.header if name in COLUMNS),
        *([(long, "the lowest accuracy of any run at that length")] if long else []),
    ]


def _numbers(cell: Cell, results: Sequence[RunResult], experiment: Experiment) -> Sequence[str]:
    lengths = span(cell.window or experiment.plan.dense)
    if not results:
        return (lengths,)
    rows = run_rows(results)
    curves = [accuracies_scored(result, cell, experiment) for result in results]
    means = [curve.mean() for curve in curves]
    solved = [result for result, curve in zip(results, curves, strict=True) if curve.min() == 1.0]
    # Probes (tests during training) use the learned task, so cells with another task have no step at which a run was
    # solved.
    solved_at = [probe for result in solved if cell.task is None and (probe := result.first_flawless_probe)]
    return (
        lengths,
        percent(sum(means) / len(means)),
        percent(max(means)),
        percent(min(curve.min() for curve in curves)),
        f"{len(solved)} of {len(rows)}",
        span([probe.step for probe in solved_at]),
        span([round(probe.cpu_seconds) for probe in solved_at]),
        *(_lowest([row.long[n] for row in rows if n in row.long]) for n, _ in experiment.plan.long),
        _lowest_and_chance([point for row in rows for point in row.structured]),
        percent(fmean(curve.baseline() for curve in curves)),
        *_over_tasks(cell, results, means),
        span([row.steps for row in rows]),
        span([round(result.training.cpu_seconds) for result in results]),
        span([len(result.training.attempts) for result in results if result.training.attempts]),
        *([fit_text(results, experiment)] if experiment.scoring.fit else []),
        *(_best_tests(results) if experiment.scoring.best_test else ()),
    )


def _over_tasks(cell: Cell, results: Sequence[RunResult], means: Sequence[float]) -> tuple[str, str]:
    """Return the interval of a cell's mean and its share of proved runs, if the runs have different tasks.

    Both entries are "-" if all runs have the same task, or if fewer than two runs have results.
    """
    if len({spec.task for spec in cell.specs}) == 1 or len(means) < 2:
        return NOTHING, NOTHING
    low, high = mean_interval(means)
    interval = NOTHING if are_equal(means) else percent_span(max(0.0, low), min(1.0, high))
    levels = [result.certificate.level for result in results if result.certificate]
    if not levels:
        return interval, NOTHING
    proved = levels.count("proved")
    return interval, f"{proved} of {len(levels)} ({percent_span(*wilson_interval(proved, len(levels)))})"


def _best_tests(results: Sequence[RunResult]) -> tuple[str, str]:
    """Return the mean over runs of the best test accuracy, and of the best accuracy expected from guesses."""
    tests = [result.fresh_tests for result in results]
    if not all(tests):
        return NOTHING, NOTHING
    best = [max(accuracies) for accuracies in tests]
    guesses = [
        best_of_guesses(result.dense.points[-1].baseline, len(accuracies))
        for result, accuracies in zip(results, tests, strict=True)
    ]
    return percent(sum(best) / len(best)), percent(sum(guesses) / len(guesses))


def _lowest(points: Sequence[LengthPoint]) -> str:
    return percent(min(point.accuracy for point in points)) if points else NOTHING


def _lowest_and_chance(points: Sequence[LengthPoint]) -> str:
    """Return the lowest accuracy with the chance level at the same point."""
    lowest = min(points, key=lambda point: (point.accuracy, point.baseline), default=None)
    return f"{percent(lowest.accuracy)} ({percent(lowest.baseline)})" if lowest else NOTHING
