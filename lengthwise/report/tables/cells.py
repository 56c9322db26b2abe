"""The runs of an experiment's cells, and their scored numbers."""

from collections.abc import Callable, Sequence

from lengthwise.evaluation.error_curve import ErrorCurve
from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult


def results_of(cell: Cell, outcomes: Sequence[Outcome]) -> list[RunResult]:
    """Return the results of a cell's runs, without runs that have no result."""
    results = {outcome.result.run_id: outcome.result for outcome in outcomes if outcome.result is not None}
    return [result for spec in cell.specs if (result := results.get(spec.id)) is not None]


def runs_text(cell: Cell, results: Sequence[RunResult]) -> str:
    """Return how many of a cell's runs have a result: "3" if all three have a result, or, for example, "2 of 3"."""
    return str(len(results)) if len(results) == len(cell.specs) else f"{len(results)} of {len(cell.specs)}"


def table_of_cells(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    columns: Sequence[str],
    numbers: Callable[[Cell, list[RunResult], Experiment], Sequence[str]],
) -> Table:
    """Return one line for each `Cell`: row, column, number of runs, the entries in `columns`, and the paper's entry.

    `numbers` returns the entries of a cell in the order of `columns`. If there are too few entries, "-" fills the last
    columns.
    """
    lines = []
    for cell in experiment.cells:
        results = results_of(cell, outcomes)
        entries = numbers(cell, results, experiment)
        blanks = [NOTHING] * (len(columns) - len(entries))
        lines.append((cell.row, cell.column, runs_text(cell, results), *entries, *blanks, cell.published))
    return Table(("row", "column", "runs", *columns, "paper"), tuple(lines))


def accuracies_scored(result: RunResult, cell: Cell, experiment: Experiment) -> LengthCurve:
    """Return a run's accuracies at the lengths, and on the task, by which its `Cell` is scored."""
    measured = result.dense
    if cell.task is not None:
        # Results list the other tasks in the order of the specification, without names.
        measured = result.on_other_tasks[cell.specs[0].other_tasks.index(cell.task)]
    curve = measured.between(*(cell.window or experiment.plan.dense))
    return curve.balanced() if experiment.scoring.measure in ("balanced", "search") else curve


def long_accuracies(results: Sequence[RunResult], length: int) -> list[float]:
    """Return each run's accuracy at a long length or, if some class cannot occur there, at this length minus 1."""
    points = [result.long.balanced().nearest_point(length) for result in results]
    return [point.accuracy for point in points if point is not None]


def fit_text(results: Sequence[RunResult], experiment: Experiment) -> str:
    """Return "yes" if all runs reach the accuracy in `Scoring.fit`, or else a phrase with the lowest accuracy."""
    assert experiment.scoring.fit is not None
    length, demanded = experiment.scoring.fit
    accuracies = long_accuracies(results, length)
    if not accuracies:
        return NOTHING
    return "yes" if min(accuracies) >= demanded else f"does not fit ({percent(min(accuracies))})"


def best_by_loss(results: Sequence[RunResult]) -> RunResult | None:
    """Return the first run with the lowest final training loss, or None if no run has a final loss.

    Only the loss decides. Measured accuracies have no influence.
    """
    with_loss = [result for result in results if result.final_loss is not None]
    return min(with_loss, key=lambda result: result.final_loss or 0.0, default=None)


def last_error(curve: ErrorCurve) -> float:
    """Return the squared error at the last position of a curve's prompts, divided by the dimension of the inputs."""
    return curve.last.error / curve.input_dim
