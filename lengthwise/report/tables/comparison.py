"""Two runs compared: the settings in which they differ, and their accuracies on the same kinds of strings."""

from itertools import takewhile
from operator import eq
from statistics import fmean

from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.settings import collect_differences
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import identity

MAX_WIDTH = 48
"""The largest width of a setting's value in a table of two runs."""


def setting_differences(first: RunResult, second: RunResult) -> Table:
    """Return one line for each setting in which two runs differ, including the seed."""
    lines = []
    for key, texts in collect_differences([first.spec, second.spec]):
        start = sum(1 for _ in takewhile(bool, map(eq, *texts))) if max(map(len, texts)) > MAX_WIDTH else 0
        lines.append((key, *(_truncated(text, start) for text in texts)))
    return Table(("setting", "first", "second"), tuple(lines))


def _truncated(text: str, start: int) -> str:
    """Shorten a value around the first difference; the run's file contains the rest."""
    text = text if start < MAX_WIDTH // 2 else f"...{text[start - 8 :]}"
    return text if len(text) <= MAX_WIDTH else f"{text[: MAX_WIDTH - 3]}..."


def accuracy_differences(first: RunResult, second: RunResult) -> Table | None:
    """Return paired accuracies at the points at which both runs were measured; None for runs of different tasks.

    There is one line for the dense range, one for each long length, and one for structured strings. A line contains
    both means, their difference in percentage points (second - first), and the number of points at which each run is
    ahead.
    """
    if identity(first.spec)["task"] != identity(second.spec)["task"]:
        return None
    lines = []
    groups = group_accuracies(second)
    for name, accuracies in group_accuracies(first).items():
        others = groups.get(name, {})
        pairs = [(accuracy, others[point]) for point, accuracy in accuracies.items() if point in others]
        if pairs:
            means = [fmean(column) for column in zip(*pairs, strict=True)]
            ahead = sum(one > other for one, other in pairs), sum(one < other for one, other in pairs)
            difference = f"{100 * (means[1] - means[0]):+.2f}"
            lines.append((name, str(len(pairs)), *map(percent, means), difference, *map(str, ahead)))
    header = ("measured at", "points", "first", "second", "difference", "first ahead", "second ahead")
    return Table(header, tuple(lines))


def group_accuracies(result: RunResult) -> dict[str, dict[tuple[str, int], float]]:
    """Return the accuracies of a run by group, then by family and length; random strings at balanced lengths only."""
    groups: dict[str, dict[tuple[str, int], float]] = {}
    dense, long = result.dense.balanced().points, result.long.balanced().points
    for name, points in (
        ("dense range", dense),
        *((f"length {point.length:,}", (point,)) for point in long),
        ("structured strings", result.structured.points),
    ):
        groups[name] = {(point.family, point.length): point.accuracy for point in points}
    return groups
