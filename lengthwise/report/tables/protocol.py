"""The measurements behind the numbers, in a sentence for each part of the evaluation."""

from collections import Counter
from collections.abc import Sequence

from lengthwise.evaluation.interval import wilson_interval
from lengthwise.evaluation.length_curve import LengthPoint
from lengthwise.evaluation.plan import EvaluationPlan, LongLength
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.report.tables.numbers import percent, span
from lengthwise.report.tables.runs import RunRow
from lengthwise.runs.result import RunResult
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.given.task import ExamplesTask

OF_EXAMPLES = (
    " Of given examples they are drawn from these, each as likely, and a net is trained on the same ones: how it does "
    "on others is known of examples that were held out alone."
)

MAX_LISTED = 10
"""The largest number of tasks of one name whose levels of chance are listed one by one."""


def protocol_sentences(results: Sequence[RunResult], rows: Sequence[RunRow]) -> list[tuple[str, str]]:
    """Return pairs of measurement and method for each different way of measuring the runs, with its chance level."""
    scores: dict[tuple[str, str], dict[str, list[LengthPoint]]] = {}
    for result, row in zip(results, rows, strict=True):
        parts = [
            ("Dense range", _dense(row, result.plan), row.dense.points),
            ("Long lengths", _long(result.plan.long), tuple(row.long.values())),
            ("Structured strings", _structured(result.plan.structured), row.structured),
        ]
        kind = TASKS.get(result.spec["task"]["name"])
        note = OF_EXAMPLES if kind is not None and issubclass(kind, ExamplesTask) else ""
        for name, how, points in parts:
            sentence = how + note
            if points:
                scores.setdefault((name, sentence), {}).setdefault(row.task, []).extend(points)
    return [(name, f"{sentence} {_chance(by_task)}") for (name, sentence), by_task in scores.items()]


def _dense(row: RunRow, plan: EvaluationPlan) -> str:
    (low, high), every = plan.dense, plan.dense_every
    strings = span([point.num_strings for point in row.dense.points])
    apart = f", of lengths at least {every} apart," if every > 1 else ""
    if row.dense.protocol == "one-pass":
        return (
            f"One pass: {strings} random strings are read once, and each of their prefixes of {low:,} to {high:,} "
            f"symbols{apart} counts as a random string of its length, which for these tasks it is; lengths share "
            "strings, so their scores are not independent of one another."
        )
    lengths = {point.length for point in row.dense.points}
    if len(lengths) == 1:
        return f"Independent strings: {strings} of length {lengths.pop():,}, the same for all runs."
    return (
        f"Independent strings: {strings} are drawn again for each length from {low:,} to {high:,} that the task "
        f"has{apart.rstrip(',')}."
    )


def _long(lengths: Sequence[LongLength]) -> str:
    counts = ", ".join(f"{count:,} at {length:,}" for length, count in lengths)
    fewest = min((count for _, count in lengths), default=1)
    low, _ = wilson_interval(fewest, fewest)
    return (
        f"Independent strings, drawn again for each length: {counts}. {fewest:,} right answers out of {fewest:,} still "
        f"leave a 95 % interval that begins at {percent(low)}."
    )


def _structured(lengths: Sequence[LongLength]) -> str:
    counts = ", ".join(f"{count:,} at {length:,}" for length, count in lengths)
    return (
        f"Strings that random sampling never draws, of the families {', '.join(STRUCTURED)}; of each at most {counts}, "
        "every string once, without those that have no supervised position."
    )


def _chance(by_task: dict[str, list[LengthPoint]]) -> str:
    levels = []
    for task, points in _families(by_task).items():
        low, high = min(point.baseline for point in points), max(point.baseline for point in points)
        levels.append(f"{task} {percent(low)}" + (f" to {percent(high)}" if percent(high) != percent(low) else ""))
    return f"The best constant answer would score: {', '.join(levels)}."


def _families(by_task: dict[str, list[LengthPoint]]) -> dict[str, list[LengthPoint]]:
    """Group points by task; more than `MAX_LISTED` tasks of one name form one group."""
    count = Counter(task.split()[0] for task in by_task)
    families: dict[str, list[LengthPoint]] = {}
    for task, points in by_task.items():
        name = task.split()[0]
        title = f"{name} ({count[name]} of them)" if count[name] > MAX_LISTED else task
        families.setdefault(title, []).extend(points)
    return families
