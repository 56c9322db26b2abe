"""Tables of squared errors: of the cells of an experiment, and of single runs."""

import math
from collections.abc import Sequence

from lengthwise.evaluation.interval import mean_interval
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import last_error, table_of_cells
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.settings import model_of, task_of
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

MAIN_COLUMNS = ("row", "column", "error", "95 % interval", "mean predicted", "paper")
"""The columns of `error_table` that the main table of a page shows."""

COLUMNS = {
    "error": (
        "squared error of the last answer of a prompt, averaged over runs. Before this answer, the net reads all "
        "other points and their values. The error is divided by the dimension of the inputs, as in the paper's code"
    ),
    "95 % interval": "Student's interval over the seeds of the cell",
    "lowest run": "the lowest error of any run",
    "over all": "the mean error over all positions of a prompt",
    "mean predicted": "the error of the best constant answer",
    "CPU s": "CPU seconds of training",
}
"""The meaning of columns of `error_table`, by the column's name."""


def error_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: the squared errors of its runs."""
    columns = ("examples", "error", "95 % interval", "lowest run", "over all", "mean predicted", "steps", "CPU s")
    return table_of_cells(experiment, outcomes, columns, _numbers)


def _numbers(cell: Cell, results: Sequence[RunResult], experiment: Experiment) -> Sequence[str]:
    curves = [result.errors for result in results if result.errors is not None]
    if not curves:
        return ()
    last = [last_error(curve) for curve in curves]
    low, high = mean_interval(last)
    return (
        span([curve.last.num_examples for curve in curves]),
        _error(sum(last) / len(last)),
        NOTHING if math.isnan(low) else f"{_error(max(low, 0.0))} to {_error(high)}",
        _error(min(last)),
        _error(sum(curve.mean / curve.input_dim for curve in curves) / len(curves)),
        _error(max(curve.baseline / curve.input_dim for curve in curves)),
        span([result.training.step for result in results]),
        span([round(result.training.cpu_seconds) for result in results]),
    )


def error_run_table(results: Sequence[RunResult]) -> Table:
    """Return one line for each run with errors: the error of the last answer, with its bootstrap interval."""
    header = ("task", "model", "seed", "prompts", "examples", "error", "5 to 95 %", "over all", "mean predicted")
    lines: list[tuple[str, ...]] = []
    for result in results:
        if (curve := result.errors) is None:
            continue
        numbers = [curve.last.error, curve.last.low, curve.last.high, curve.mean, curve.baseline]
        error, low, high, mean, baseline = (_error(number / curve.input_dim) for number in numbers)
        start = (task_of(result), model_of(result), str(result.spec["seed"]), f"{curve.num_prompts:,}")
        lines.append((*start, str(curve.last.num_examples), error, f"{low} to {high}", mean, baseline))
    return Table(header, tuple(lines))


def _error(number: float) -> str:
    return f"{number:.2e}"
