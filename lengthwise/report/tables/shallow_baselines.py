"""Accuracies next to those of answers that solve nothing, for tasks that know how well these score."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from lengthwise.evaluation.interval import accuracy_interval
from lengthwise.experiments.base import Experiment
from lengthwise.report.tables.cells import accuracies_scored, results_of
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import percent, percent_span
from lengthwise.report.tables.settings import task_of
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.tasks import TASKS, Task, make_task
from lengthwise.tasks.algorithmic.base_rates import MAJORITY, CountedTask

HEADER = ("row", "column", "mean", "95 % interval", "best shallow baseline", "which", "beaten")


class ShallowBaseline(NamedTuple):
    """Of the answers that solve nothing, the one that scores most."""

    what: str
    accuracy: float


MARGIN = 0.0166
"""What a feature has to be better by than the likeliest answer: three standard errors of the 8,192 answers scored."""

MAX_LENGTHS = 6
"""Of many lengths a shallow baseline is counted at some, each in the middle of others; its mean stands for all."""


def best_shallow_baseline(task: Task, lengths: Sequence[int]) -> ShallowBaseline | None:
    """That of a task at some lengths; None for tasks that know of none but the likeliest answer."""
    if not isinstance(task, CountedTask) or not lengths:
        return None
    step = math.ceil(len(lengths) / MAX_LENGTHS)
    rates = [task.base_rates(length) for length in lengths[step // 2 :: step]]
    means = {what: fmean(of_length[what] for of_length in rates) for what in rates[0]}
    what, accuracy = max(means.items(), key=lambda item: item[1])
    if accuracy - means[MAJORITY] < MARGIN:
        what, accuracy = MAJORITY, means[MAJORITY]
    return ShallowBaseline(what, accuracy)


def shallow_baseline_sentences(results: Sequence[RunResult]) -> list[str]:
    """For each task that knows of one, what the best shallow baseline scores at the longest length measured."""
    measured = {
        (task_of(result), result.dense.points[-1].length): result.spec["task"]
        for result in results
        if result.dense.points and result.spec["task"]["name"] in TASKS  # not somebody's own, of another process
    }
    baselines = {key: best_shallow_baseline(make_task(**settings), [key[1]]) for key, settings in measured.items()}
    return [
        f"{task}, length {length:,}: {percent(best.accuracy)}, by {best.what}"
        for (task, length), best in baselines.items()
        if best is not None
    ]


def with_shallow_baselines(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Paragraphs of an experiment's page: its cells next to the best shallow baselines."""
    lines = []
    for cell in experiment.cells:
        if not cell.window:
            continue
        curves = [accuracies_scored(result, cell, experiment) for result in results_of(cell, outcomes)]
        lengths = [point.length for point in curves[0].points] if curves else []
        best = best_shallow_baseline(cell.specs[0].task, lengths)
        if best is None:
            continue
        means = [curve.mean() for curve in curves]
        low, high = accuracy_interval(means, sum(point.num_strings for point in curves[0].points))
        accuracy, interval = percent(sum(means) / len(means)), percent_span(low, high)
        beaten = "yes" if low > best.accuracy else "no"
        lines.append((cell.row, cell.column, accuracy, interval, percent(best.accuracy), best.what, beaten))
    if not lines:
        return []
    return [
        "## Next to answers that solve nothing",
        "*Best shallow baseline*: what the likeliest answer scores, or the likeliest given one number that is quickly "
        "read off the problem, whichever is more, as a mean over the lengths scored. *95 % interval*: for other seeds "
        "and other problems; all runs were measured on the same ones. *Beaten*: it lies above the best shallow "
        "baseline.",
        markdown_table(HEADER, lines),
    ]
