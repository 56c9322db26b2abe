"""Sentences about how the numbers were measured, for each part of the evaluation."""

from collections import Counter
from collections.abc import Sequence

from lengthwise.display import listed
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.evaluation.length_curve import LengthPoint
from lengthwise.evaluation.plan import EvaluationPlan, LongLength
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.report.tables.numbers import NOTHING, percent, span
from lengthwise.report.tables.runs import RunRow
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.given.task import ExamplesTask

OF_EXAMPLES = (
    "The strings are drawn uniformly from the given examples, on which the net was also trained. Only held-out "
    "examples can show the net's accuracy on other strings."
)

MAX_LISTED = 10
"""The largest number of tasks of one name whose chance levels are listed one by one."""


def protocol_sentences(results: Sequence[RunResult], rows: Sequence[RunRow]) -> list[tuple[str, str]]:
    """Return a pair (measurement, method with chance levels) for each way in which runs were measured."""
    scores = _scores(results, rows)
    return [(name, f"{sentence} {_chance(by_task)}") for (name, sentence), by_task in scores.items()]


def protocol_methods(results: Sequence[RunResult], rows: Sequence[RunRow]) -> list[tuple[str, str]]:
    """Return pairs (measurement, method) without chance levels; `chance_table` contains the chance levels.

    If tasks are measured by different methods, each method names its tasks.
    """
    scores = _scores(results, rows)
    count = Counter(name for name, _ in scores)
    tasks = {
        key: f" Settings that are not named have their default. Tasks: {', '.join(_families(by_task))}."
        for key, by_task in scores.items()
    }
    methods = [(name, sentence + tasks[name, sentence] * (count[name] > 1)) for name, sentence in scores]
    # Methods of the same measurement come one after another.
    return sorted(methods, key=lambda method: list(count).index(method[0]))


def chance_table(results: Sequence[RunResult], rows: Sequence[RunRow]) -> Table:
    """Return one line for each task: the accuracy of the best constant answer in each measurement."""
    levels: dict[str, dict[str, list[LengthPoint]]] = {}
    scores = _scores(results, rows)
    for (name, _), by_task in scores.items():
        for task, points in _families(by_task).items():
            levels.setdefault(task, {}).setdefault(name, []).extend(points)
    names = list(dict.fromkeys(name for name, _ in scores))
    lines = [(task, *(_level(by_name.get(name, ())) for name in names)) for task, by_name in levels.items()]
    return Table(("best constant answer", *(name.lower() for name in names)), tuple(lines))


def _scores(
    results: Sequence[RunResult], rows: Sequence[RunRow]
) -> dict[tuple[str, str], dict[str, list[LengthPoint]]]:
    """Return the measured points by measurement and method, then by task."""
    scores: dict[tuple[str, str], dict[str, list[LengthPoint]]] = {}
    for result, row in zip(results, rows, strict=True):
        parts = [
            ("Dense range", _dense(row, result.plan), row.dense.points),
            ("Single lengths", _long(result.plan.long), tuple(row.long.values())),
            ("Structured strings", _structured(result.plan.structured), row.structured),
        ]
        kind = TASKS.get(result.spec["task"]["name"])
        note = OF_EXAMPLES if kind is not None and issubclass(kind, ExamplesTask) else ""
        for name, how, points in parts:
            sentence = how + note
            if points:
                scores.setdefault((name, sentence), {}).setdefault(row.task, []).extend(points)
    return scores


def _dense(row: RunRow, plan: EvaluationPlan) -> str:
    (low, high), every = plan.dense, plan.dense_every
    strings = span([point.num_strings for point in row.dense.points])
    apart = f" The measured lengths are at least {every} apart." if every > 1 else ""
    if row.dense.protocol == "one-pass":
        return (
            f"In one pass, the net reads {strings} random strings. Prefixes of {low:,} to {high:,} symbols count as "
            "random strings of these lengths, because in these tasks prefixes of random strings have the same "
            f"distribution as random strings.{apart} All lengths are measured on prefixes of the same strings, so the "
            "scores at different lengths are not independent of one another."
        )
    lengths = {point.length for point in row.dense.points}
    if len(lengths) == 1:
        return f"{strings} independent strings of length {lengths.pop():,}, the same for all runs."
    if every == 1:
        return (
            f"For each length from {low:,} to {high:,} at which the task has strings, {strings} strings are drawn "
            "independently."
        )
    return (
        f"Lengths at which the task has strings are chosen from {low:,} to {high:,}, at least {every} apart. For each "
        f"of these lengths, {strings} strings are drawn independently."
    )


def _long(lengths: Sequence[LongLength]) -> str:
    counts = listed([f"{count:,} strings of {length:,} symbols" for length, count in lengths])
    fewest = min((count for _, count in lengths), default=1)
    low, _ = wilson_interval(fewest, fewest)
    return (
        f"Independent strings, drawn again for each length: {counts}. If {fewest:,} of {fewest:,} answers are right, "
        f"the 95 % interval begins at {percent(low)}."
    )


def _structured(lengths: Sequence[LongLength]) -> str:
    counts = listed([f"{count:,} strings of {length:,} symbols" for length, count in lengths])
    return (
        f"Strings that random sampling hardly ever draws, from the families {', '.join(STRUCTURED)}. Each family has "
        f"at most {counts}. No string occurs twice, and the task defines an answer for at least one position of every "
        "string."
    )


def _chance(by_task: dict[str, list[LengthPoint]]) -> str:
    levels = [f"{task} {_level(points)}" for task, points in _families(by_task).items()]
    return f"The best constant answer would score: {', '.join(levels)}."


def _level(points: Sequence[LengthPoint]) -> str:
    if not points:
        return NOTHING
    low, high = (percent(choose(point.baseline for point in points)) for choose in (min, max))
    return low if low == high else f"{low} to {high}"


def _families(by_task: dict[str, list[LengthPoint]]) -> dict[str, list[LengthPoint]]:
    """Group points by task; more than `MAX_LISTED` tasks of one name form one group."""
    count = Counter(task.split()[0] for task in by_task)
    families: dict[str, list[LengthPoint]] = {}
    for task, points in by_task.items():
        name = task.split()[0]
        title = f"{name} ({count[name]} of them)" if count[name] > MAX_LISTED else task
        families.setdefault(title, []).extend(points)
    return families
