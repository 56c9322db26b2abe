"""Columns of an experiment's table compared with each other, seed by seed."""

import math
from collections.abc import Sequence
from statistics import fmean

from lengthwise.evaluation.interval import mean_interval
from lengthwise.experiments.base import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, last_error, results_of
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.runs.pool import Outcome

HEADER = ("row", "first", "second", "difference", "95 % interval", "better")


def differences(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Paragraphs of the page: in each row, first less second of all pairs of columns that the experiment compares."""
    lines = []
    for row in dict.fromkeys(cell.row for cell in experiment.cells):
        cells = {cell.column: cell for cell in experiment.cells if cell.row == row}
        for first, second in experiment.compared:
            if first in cells and second in cells:
                scores = [_scores(cells[column], experiment, outcomes) for column in (first, second)]
                gaps = [scores[0][seed] - scores[1][seed] for seed in scores[0].keys() & scores[1].keys()]
                lines.append((row, first, second, *_difference(gaps, first, second, experiment.scored == "error")))
    if not lines:
        return []
    what = (
        "errors, of which the lower is better" if experiment.scored == "error" else "accuracies, in percentage points"
    )
    return [
        "## Differences",
        f"*First* less *second*, of {what}: the mean over seeds, each of which gave both the same problems to learn "
        "from. *95 % interval*: Student's, for other seeds, on the same test problems. *Better*: the column for which "
        f"all of the interval speaks ({NOTHING}: it holds 0, or there are too few seeds for one).",
        markdown_table(HEADER, lines),
    ]


def _scores(cell: Cell, experiment: Experiment, outcomes: Sequence[Outcome]) -> dict[int, float]:
    """What counts of each run, by its seed."""
    results = results_of(cell, outcomes)
    if experiment.scored == "error":
        return {result.spec["seed"]: last_error(result.errors) for result in results if result.errors}
    return {result.spec["seed"]: accuracies_scored(result, cell, experiment).mean() for result in results}


def _difference(gaps: Sequence[float], first: str, second: str, errors: bool) -> tuple[str, str, str]:
    """Mean, interval, and the column for which all of it speaks."""
    if not gaps:
        return NOTHING, NOTHING, NOTHING
    low, high = mean_interval(gaps)
    if math.isnan(low):
        return _signed(fmean(gaps), errors), NOTHING, NOTHING
    if_above, if_below = (second, first) if errors else (first, second)
    better = if_above if low > 0 else if_below if high < 0 else NOTHING
    return _signed(fmean(gaps), errors), f"{_signed(low, errors)} to {_signed(high, errors)}", better


def _signed(gap: float, error: bool) -> str:
    return f"{gap:+.2e}" if error else f"{100 * gap:+.2f}"
