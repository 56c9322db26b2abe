"""Accuracies next to shallow baselines, for tasks that have such baselines."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from lengthwise.evaluation.interval import accuracy_interval
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, results_of
from lengthwise.report.tables.markdown import table_paragraphs
from lengthwise.report.tables.numbers import NOTHING, percent, percent_span
from lengthwise.report.tables.settings import task_of
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult
from lengthwise.tasks import TASKS, Task, make_task
from lengthwise.tasks.base_rates import MAJORITY, ShallowTask

ROWS_HEADER = ("row", "best shallow baseline", "feature", "above baseline")
MAX_CELLS, MAX_NAMED = 12, 6
"""With more than `MAX_CELLS` cells, a table has a line for each row, not for each cell. A line names at most
`MAX_NAMED` columns.
"""

HEADER = ("row", "column", "mean", "95 % interval", "best shallow baseline", "feature", "above baseline")


class ShallowBaseline(NamedTuple):
    """The shallow baseline with the highest score: its name and its accuracy."""

    what: str
    accuracy: float


MARGIN = 3.0
"""The number of standard errors by which a feature has to exceed the most frequent answer to count as better."""

MAX_LENGTHS = 6
"""A shallow baseline is computed at no more than this many lengths, evenly spread over the given lengths."""


def best_shallow_baseline(task: Task, lengths: Sequence[int]) -> ShallowBaseline | None:
    """Return the best baseline of a task at some lengths; None for tasks without shallow baselines."""
    if not isinstance(task, ShallowTask) or not lengths:
        return None
    # An odd step alternates between odd and even lengths, because some languages have no string of odd length.
    step = math.ceil(len(lengths) / MAX_LENGTHS) | 1
    rates = [task.base_rates(length) for length in lengths[step // 2 :: step]]
    means = {what: fmean(of_length[what] for of_length in rates) for what in rates[0]}
    what, accuracy = max(means.items(), key=lambda item: item[1])
    if accuracy - means[MAJORITY] < MARGIN * math.sqrt(0.25 / (task.num_counted // 2)):
        what, accuracy = MAJORITY, means[MAJORITY]
    return ShallowBaseline(what, accuracy)


def shallow_baseline_sentences(results: Sequence[RunResult]) -> list[str]:
    """Return a sentence for each task with shallow baselines: the accuracy of the best baseline at one length.

    The length is the longest in the dense range (`EvaluationPlan`) at which every class can occur. At other lengths, a
    constant answer can always be right. Longer lengths are not used, because the models' accuracies are means over the
    dense range.
    """
    measured = {
        (task_of(result), points[-1].length): result.spec["task"]
        for result in results
        if (points := result.dense.balanced().points)
        and result.spec["task"]["name"] in TASKS  # a user's own task of another process is unknown here
    }
    baselines = {key: best_shallow_baseline(make_task(**settings), [key[1]]) for key, settings in measured.items()}
    return [
        f"{task}, length {length:,}: {percent(best.accuracy)}, by {best.what}"
        for (task, length), best in baselines.items()
        if best is not None
    ]


class _Compared(NamedTuple):
    """A cell's mean with its interval, next to the best shallow baseline; with only one run, `is_above` is "-"."""

    row: str
    column: str
    mean: float
    interval: tuple[float, float]
    best: ShallowBaseline

    @property
    def is_above(self) -> str:
        low = self.interval[0]
        return NOTHING if math.isnan(low) else "yes" if low > self.best.accuracy else "no"


def with_shallow_baselines(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return paragraphs of an experiment's page that compare nets with shallow baselines.

    One paragraph is a table with a line for each `Cell`, or for each row of cells if there are more than `MAX_CELLS`
    cells.
    """
    if experiment.scoring.measure not in ("balanced", "legal"):
        return []
    compared = [one for cell in experiment.cells if (one := _compared(experiment, cell, outcomes)) is not None]
    if not compared:
        return []
    if len(compared) <= MAX_CELLS:
        table = Table(HEADER, tuple(map(_line, compared)))
        more = "*Above baseline*: whether the interval is above the best shallow baseline."
    else:
        rows = dict.fromkeys(one.row for one in compared)
        table = Table(ROWS_HEADER, tuple(_row([one for one in compared if one.row == row]) for row in rows))
        more = (
            "*Above baseline*: the number of cells whose interval is above the best shallow baseline, among all "
            "cells with at least two runs. No interval is above a baseline of 100 %. Most intervals of cells with "
            "only two runs are too wide to be above any baseline."
        )
    return [
        "## Shallow baselines",
        "*Best shallow baseline*: the highest score among three kinds of simple predictors, averaged over the scored "
        "lengths. The three kinds are the most frequent answer, the most frequent answer given one simple feature of "
        "the string, and a logistic regression on the counts of symbols and pairs. Column *feature* contains the "
        "predictor with the highest score. (*Number of runs*: the number of blocks of equal symbols.) Tasks for "
        "which this package does not compute these scores have no row. The 95 % interval is a confidence interval "
        "for a cell's mean accuracy on new seeds and new strings. All runs of a task are measured on the same "
        "strings, so averaging over runs does not reduce the error from the choice of strings. The interval accounts "
        "for this. If all runs have equal accuracies, the interval accounts only for new strings, because equal runs "
        f"do not show how much other runs would differ. {more}",
        *table_paragraphs(table),
    ]


def _compared(experiment: Experiment, cell: Cell, outcomes: Sequence[Outcome]) -> _Compared | None:
    """Compare a cell with its baselines; return None if its tasks have no baselines or nothing was measured."""
    curves = [accuracies_scored(result, cell, experiment) for result in results_of(cell, outcomes)]
    lengths = [point.length for point in curves[0].points] if curves else []
    tasks = [cell.task] if cell.task is not None else list(dict.fromkeys(spec.task for spec in cell.specs))
    each = [best_shallow_baseline(task, lengths) for task in tasks]
    bests = [best for best in each if best is not None]
    if not bests:
        return None
    means = [curve.mean() for curve in curves]
    num_strings = curves[0].num_independent * len(bests)
    return _Compared(cell.row, cell.column, fmean(means), accuracy_interval(means, num_strings), _mean_of(bests))


def _mean_of(bests: Sequence[ShallowBaseline]) -> ShallowBaseline:
    """Return the mean of the best baselines of several tasks."""
    names = list(dict.fromkeys(best.what for best in bests))
    return ShallowBaseline(
        names[0] if len(names) == 1 else "the best of each task", fmean(best.accuracy for best in bests)
    )


def _line(one: _Compared) -> tuple[str, ...]:
    interval = percent_span(*one.interval)
    return one.row, one.column, percent(one.mean), interval, percent(one.best.accuracy), one.best.what, one.is_above


def _row(cells: Sequence[_Compared]) -> tuple[str, ...]:
    """Return a line about a row: the best baseline, and the cells whose interval is above it."""
    decided = [one for one in cells if one.is_above != NOTHING]
    above = [one.column for one in decided if one.is_above == "yes"]
    named = f": {', '.join(dict.fromkeys(above))}" if 0 < len(above) < len(decided) and len(above) <= MAX_NAMED else ""
    best = max((one.best for one in cells), key=lambda best: best.accuracy)
    counts = f"{len(above)} of {len(decided)}{named}" if decided else NOTHING
    return cells[0].row, percent(best.accuracy), best.what, counts
