"""Runs that train until a goal: one line for each cell with the cost of its runs."""

from collections.abc import Sequence
from statistics import median

from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import table_of_cells
from lengthwise.report.tables.numbers import NOTHING, percent, span
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

MAIN_COLUMNS = ("row", "column", "reached", "CPU s, median", "CPU s, max", "attempts", "restarts", "sizes")
"""The columns of `attempts_table` that the main table of a page shows."""

COLUMNS = {
    "reached": "runs whose certificate reached the level of their goal",
    "CPU s, median": "CPU seconds of all attempts of a run, with their certificates: the median over runs",
    "CPU s, max": "the CPU seconds of the run that took the longest",
    "attempts": "the number of nets that a run trained; the last net is the result",
    "restarts": (
        "the number of attempts, over all runs, that ended with a certificate below the level of the goal. Other "
        "failed attempts ended because of their loss"
    ),
    "sizes": "the smallest and the largest size of the model in the last attempts",
    "steps": "training steps of all attempts of a run",
    "states": "states of the minimal machine read off the last net",
    "certificate CPU s": "CPU seconds of the last certificate",
    "accuracy": "the lowest accuracy of any run at any length that was measured after training",
}
"""The meaning of each column of `attempts_table`, by the column's name."""


def attempts_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: how many runs reached the level of their goal, and the runs' cost."""
    return table_of_cells(experiment, outcomes, [*COLUMNS], _numbers)


def _numbers(cell: Cell, results: Sequence[RunResult], experiment: Experiment) -> Sequence[str]:
    if not results:
        return ()
    seconds = [result.training.cpu_seconds for result in results]
    attempts = [result.training.attempts for result in results]
    certificates = [result.certificate for result in results if result.certificate]
    is_reached = [result.training.status == "reached" for result in results]
    num_restarts = sum(
        attempt.level is not None
        for tried, reached in zip(attempts, is_reached, strict=True)
        # The attempt that reached the goal was not a restart, although it has a certificate.
        for attempt in (tried[:-1] if reached else tried)
    )
    points = [point for result in results for curve in result.curves for point in curve.points]
    return (
        f"{sum(is_reached)} of {len(results)}",
        f"{median(seconds):.1f}",
        f"{max(seconds):.1f}",
        span([len(tried) for tried in attempts]),
        str(num_restarts),
        span(sorted({size for tried in attempts if tried for size in tried[-1].model.values()})),
        span([result.training.step for result in results]),
        span([certificate.num_classes[0] for certificate in certificates if certificate.machine]),
        f"{max((certificate.seconds for certificate in certificates), default=0.0):.1f}",
        percent(min(point.accuracy for point in points)) if points else NOTHING,
    )
