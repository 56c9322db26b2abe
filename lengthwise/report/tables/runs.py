"""Tables with a line for each run or for each measured point, for terminal, page and CSV file."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lengthwise.display import csv_text
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.report.tables.numbers import NOTHING, percent, percent_span, span
from lengthwise.report.tables.settings import model_of, task_of, task_title, variations
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult

CSV_COLUMNS = (
    *("run_id", "task", "model", "seed", "protocol", "family", "length", "num_strings", "num_correct"),
    *("accuracy", "interval_low", "interval_high", "baseline", "balanced"),
)
"""The columns of the file with one line for each measured point; the interval is Wilson's, at 95 %."""


MAX_LENGTHS = 12
"""The largest number of lengths that have a column each in the table of a curve."""


class RunRow(NamedTuple):
    """The accuracies of a run: `dense` and `long` at balanced lengths, `unbalanced` at other lengths, and `structured`.

    A length is balanced if every class can occur at this length. All strings are random, except in `structured`.
    """

    run_id: str
    task: str
    model: str
    variation: str
    seed: int
    dense: LengthCurve
    long: Mapping[int, LengthPoint]
    unbalanced: LengthCurve
    structured: tuple[LengthPoint, ...]
    steps: int
    level: str = ""

    @property
    def baseline(self) -> float:
        """The highest score of a constant answer over all lengths of `dense`."""
        return max((point.baseline for point in self.dense.points), default=math.nan)

    @property
    def lowest(self) -> LengthPoint | None:
        """The point with the lowest accuracy in the dense range, or the first of several such points.

        Lengths at which some class cannot occur are left out.
        """
        return min(self.dense.points, key=lambda point: point.accuracy, default=None)

    @property
    def lowest_structured(self) -> LengthPoint | None:
        """The point with the lowest accuracy on structured strings, or the first of several such points."""
        return min(self.structured, key=lambda point: point.accuracy, default=None)


class _Column(NamedTuple):
    name: str
    text: Callable[[RunRow], str]
    foldable: bool = False


_RUN = (
    _Column("task", lambda row: row.task),
    _Column("model", lambda row: row.model, foldable=True),
    _Column("settings", lambda row: row.variation, foldable=True),
    _Column("seed", lambda row: str(row.seed)),
)
"""The columns that name a run."""


def run_rows(results: Sequence[RunResult]) -> list[RunRow]:
    """Return a `RunRow` for each result, in the given order."""
    differing = variations(results)
    return [_run_row(result, differing[result.run_id]) for result in results]


def _run_row(result: RunResult, variation: str) -> RunRow:
    random = (*result.dense.points, *result.long.points)
    balanced = result.long.balanced()
    long = {length: balanced.nearest_point(length) for length, _ in result.plan.long}
    return RunRow(
        run_id=result.run_id,
        task=task_of(result),
        model=model_of(result),
        variation=variation,
        seed=int(result.spec["seed"]),
        dense=result.dense.balanced(),
        long={length: point for length, point in long.items() if point is not None},
        unbalanced=LengthCurve(
            protocol=result.dense.protocol, points=tuple(point for point in random if not point.balanced)
        ),
        structured=result.structured.points,
        steps=result.training.step,
        level=result.certificate.level if result.certificate else "",
    )


def summary_table(rows: Sequence[RunRow]) -> Table:
    """Return one line for each run. Columns with equal text in all lines are moved to `shared`."""
    long = [_long_column(length) for length in sorted({length for row in rows for length in row.long})]
    columns = [
        *_RUN,
        _Column("lengths", lambda row: span([point.length for point in row.dense.points]), foldable=True),
        _Column("strings", lambda row: _strings(row.dense), foldable=True),
        _Column("mean", lambda row: percent(row.dense.mean())),
        _Column("lowest", lambda row: _at(row.lowest)),
        *long,
        _Column("structured", lambda row: _at(row.lowest_structured)),
        *([_Column("certificate", lambda row: row.level or NOTHING)] if any(row.level for row in rows) else []),
        _Column("chance", lambda row: percent(row.baseline), foldable=True),
        _Column("steps", lambda row: f"{row.steps:,}", foldable=True),
    ]
    return _table(columns, rows)


def unbalanced_table(rows: Sequence[RunRow]) -> Table | None:
    """Return a table of the lengths at which some class cannot occur; None if there are no such lengths."""
    with_any = [row for row in rows if row.unbalanced.points]
    columns = [
        *_RUN,
        _Column("lengths", lambda row: span([point.length for point in row.unbalanced.points])),
        _Column("how many", lambda row: f"{len(row.unbalanced.points):,}"),
        _Column("mean", lambda row: percent(row.unbalanced.mean())),
        _Column("lowest", lambda row: percent(row.unbalanced.min())),
    ]
    return _table(columns, with_any) if with_any else None


def point_table(points: Sequence[LengthPoint]) -> Table:
    """Return a table with a line for each `LengthPoint`; family and chance are in `shared` if equal in all lines."""
    lines = [
        (
            f"{point.length:,}",
            point.family,
            f"{point.num_correct}/{point.num_strings}",
            percent(point.accuracy),
            percent_span(*point.interval),
            percent(point.baseline),
        )
        for point in points
    ]
    header = ("length", "family", "right", "accuracy", "95 % interval", "chance")
    return Table(header, tuple(lines)).folded(["family", "chance"])


def curve_table(name: str, curve: LengthCurve) -> Table:
    """Return a line for each family of strings: the number of right answers, and the mean and the lowest accuracy.

    Each length also has a column if there are at most `MAX_LENGTHS` lengths. The columns `mean`, `lowest` and
    `chance` use only the lengths at which every class can occur.
    """
    lengths = sorted({point.length for point in curve.points})
    columns = lengths if len(lengths) <= MAX_LENGTHS else []
    lines = []
    for family in dict.fromkeys(point.family for point in curve.points):
        own = LengthCurve(protocol=curve.protocol, points=tuple(p for p in curve.points if p.family == family))
        balanced = own.balanced()
        right = sum(point.num_correct for point in own.points)
        strings = sum(point.num_strings for point in own.points)
        by_length = {point.length: percent(point.accuracy) for point in own.points}
        lines.append(
            (
                *(name, family, span(list(by_length)), f"{right:,}/{strings:,}"),
                *(by_length.get(length, NOTHING) for length in columns),
                percent(balanced.mean()),
                _at(min(balanced.points, key=lambda point: point.accuracy, default=None)).removesuffix(f", {family}"),
                percent(max((point.baseline for point in balanced.points), default=math.nan)),
            )
        )
    header = ("model", "family", "lengths", "right", *(f"{length:,}" for length in columns), "mean", "lowest", "chance")
    table = Table(header, tuple(lines)).folded(["family"])
    return table.columns([name for name in table.header if name != "lengths" or not columns])


def run_facts(result: RunResult) -> dict[str, Any]:
    """Return a run's numbers as values for JSON; numbers that were not measured are None or empty."""
    (row,) = run_rows([result])
    errors, perplexity = result.errors, result.perplexity
    return {
        "run": result.run_id,
        "task": row.task,
        "model": row.model,
        "seed": row.seed,
        "mean": row.dense.mean(),
        "lowest": row.dense.min(),
        "long": {str(length): point.accuracy for length, point in row.long.items()},
        "structured": min((point.accuracy for point in row.structured), default=None),
        "chance": row.baseline,
        "last_error": errors and errors.last.error,
        "perplexity": perplexity and {str(point.length): point.perplexity for point in perplexity.points},
        "level": row.level or None,
        "parameters": result.num_parameters,
        "steps": row.steps,
        "cpu_seconds": result.training.cpu_seconds,
    }


def as_csv(results: Sequence[RunResult]) -> str:
    """Return CSV text with a line for each measured accuracy of each run; numbers are not rounded."""
    return curves_as_csv([(result.run_id, result.spec, curve) for result in results for curve in result.curves])


def curves_as_csv(curves: Iterable[tuple[str, Mapping[str, Any], LengthCurve]]) -> str:
    """Return the points of curves as CSV; each curve comes with its run's id and specification."""
    rows: list[tuple[object, ...]] = [CSV_COLUMNS]
    for run_id, spec, curve in curves:
        run = (run_id, task_title(spec), spec["model"]["name"], spec["seed"])
        for point in curve.points:
            counts = (point.family, point.length, point.num_strings, point.num_correct, point.accuracy)
            balanced = "true" if point.balanced else "false"
            rows.append((*run, curve.protocol, *counts, *point.interval, point.baseline, balanced))
    return csv_text(rows)


def _table(columns: Sequence[_Column], rows: Sequence[RunRow]) -> Table:
    lines = tuple(tuple(column.text(row) for column in columns) for row in rows)
    table = Table(tuple(column.name for column in columns), lines)
    return table.folded([column.name for column in columns if column.foldable])


def _long_column(length: int) -> _Column:
    def text(row: RunRow) -> str:
        point = row.long.get(length)
        if point is None:
            return NOTHING
        return percent(point.accuracy) + ("" if point.length == length else f" at {point.length:,}")

    return _Column(f"{length:,}", text)


def _at(point: LengthPoint | None) -> str:
    """Return the accuracy of a point and, unless it is perfect, the point's length and family."""
    if point is None:
        return NOTHING
    location = f"{point.length:,}" if point.family == "random" else f"{point.length:,}, {point.family}"
    return percent(point.accuracy) + (f" at {location}" if point.accuracy < 1 else "")


def _strings(curve: LengthCurve) -> str:
    if not curve.points:
        return NOTHING
    return f"{span([point.num_strings for point in curve.points])}, {curve.protocol}"
