"""The runs of an experiment's cells, and what counts of them."""

from collections.abc import Sequence

from lengthwise.evaluation.error_curve import ErrorCurve
from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.experiments.base import Cell, Experiment
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pool import Outcome


def results_of(cell: Cell, outcomes: Sequence[Outcome]) -> list[RunResult]:
    """The results of a cell's runs, without those that have none."""
    results = {outcome.spec.id: outcome.result for outcome in outcomes}
    return [result for spec in cell.specs if (result := results.get(spec.id)) is not None]


def runs_text(cell: Cell, results: Sequence[RunResult]) -> str:
    """How many runs of a cell have a result, and of how many where some have none."""
    return str(len(results)) if len(results) == len(cell.specs) else f"{len(results)} of {len(cell.specs)}"


def accuracies_scored(result: RunResult, cell: Cell, experiment: Experiment) -> LengthCurve:
    """A run's accuracies at the lengths that count in its cell."""
    measured = result.dense
    if cell.task is not None:
        measured = result.on_other_tasks[cell.specs[0].other_tasks.index(cell.task)]
    curve = measured.between(*(cell.window or experiment.plan.dense))
    return curve.balanced() if experiment.scored == "balanced" else curve


def last_error(curve: ErrorCurve) -> float:
    """The squared error of the last answer divided by the dimension of the inputs."""
    return curve.last.error / curve.input_dim
