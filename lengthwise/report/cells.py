"""The runs of an experiment's cells."""

from collections.abc import Sequence

from lengthwise.experiments.base import Cell
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pool import Outcome


def results_of(cell: Cell, outcomes: Sequence[Outcome]) -> list[RunResult]:
    """The results of a cell's runs, without those that have none."""
    results = {outcome.spec.id: outcome.result for outcome in outcomes}
    return [result for spec in cell.specs if (result := results.get(spec.id)) is not None]


def runs_text(cell: Cell, results: Sequence[RunResult]) -> str:
    """How many runs of a cell have a result, and of how many where some have none."""
    return str(len(results)) if len(results) == len(cell.specs) else f"{len(results)} of {len(cell.specs)}"
