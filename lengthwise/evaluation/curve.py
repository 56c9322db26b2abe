"""The accuracy of the final answer against length: points, curves, and their display."""

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from pydantic import Field, model_validator

from lengthwise.display import Plotted, accuracy_svg, card, csv_text, percent
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.files import check_suffix, write_by_rename
from lengthwise.pictures import SUFFIXES, Picture
from lengthwise.validation import FrozenRecord, check_kind, path_of

Protocol = Literal["independent", "one-pass", "structured", "labeled"]
"""The way in which the strings of a length are drawn. All protocols measure final answers.

`independent`: new strings for each length. `one-pass`: prefixes of one set of long strings, which all lengths share.
This protocol needs a `prefix_exchangeable` task, in which a prefix is distributed like a string that is drawn at the
prefix's length. `structured`: families of regular strings (constant, alternating, periodic, few runs, sparse).
`labeled`: given strings with labels (`labeled_curve`).
"""


class LengthPoint(FrozenRecord):
    """A point of a length curve: how many final answers are right, and the accuracy of the best constant answer.

    `num_strings` is the number of strings, each with one final answer. `num_overflowed` is the number of strings on
    which the model's states overflow; the answers to these strings count as wrong.
    """

    length: int
    num_strings: int = Field(ge=1)
    num_correct: int = Field(ge=0)
    baseline: float
    balanced: bool = True
    family: str = "random"
    num_overflowed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _check_counts(self) -> "LengthPoint":
        if self.num_correct + self.num_overflowed > self.num_strings:
            raise ValueError(
                f"num_correct, num_overflowed: expected a sum of at most num_strings={self.num_strings}, got "
                f"{self.num_correct} + {self.num_overflowed}; correct these counts"
            )
        return self

    @property
    def accuracy(self) -> float:
        return self.num_correct / self.num_strings

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % confidence interval of the accuracy."""
        return wilson_interval(self.num_correct, self.num_strings)


def best_known(points: Iterable[LengthPoint]) -> dict[int, float]:
    """Return the accuracy at each length, in order; if a length has two points, use the point with more strings.

    The dense range and the long lengths of an `EvaluationPlan` may share a length.
    """
    by_length = {point.length: point.accuracy for point in sorted(points, key=lambda point: point.num_strings)}
    return dict(sorted(by_length.items()))


class LengthCurve(FrozenRecord):
    """The accuracies at several lengths, measured with one protocol, as points in order of length."""

    protocol: Protocol
    points: tuple[LengthPoint, ...]

    def between(self, low: int, high: int) -> "LengthCurve":
        """Return the points with low <= length <= high."""
        check_kind("low", low, Real, "a number")
        check_kind("high", high, Real, "a number")
        return self._keep(lambda point: low <= point.length <= high)

    def balanced(self) -> "LengthCurve":
        """Return the points at lengths where every class can occur; accuracies at other lengths are not comparable."""
        return self._keep(lambda point: point.balanced)

    def mean(self) -> float:
        """Return the mean accuracy over the points, or NaN for an empty curve."""
        return fmean(p.accuracy for p in self.points) if self.points else math.nan

    def min(self) -> float:
        """Return the lowest accuracy of all points, or NaN for an empty curve."""
        return min((p.accuracy for p in self.points), default=math.nan)

    def nearest_point(self, length: int) -> LengthPoint | None:
        """Return the point at a length or, if it is missing, at this length minus 1; None if both are missing."""
        check_kind("length", length, Integral, "a whole number")
        by_length = {point.length: point for point in self.points}
        return by_length.get(length, by_length.get(length - 1))

    @property
    def num_independent(self) -> int:
        """Return the number of independent strings in the curve; in protocol `one-pass`, all lengths share strings."""
        counts = [point.num_strings for point in self.points]
        return min(counts, default=0) if self.protocol == "one-pass" else sum(counts)

    def baseline(self) -> float:
        """Return the accuracy of each length's best constant answer, averaged over lengths; NaN without points."""
        return fmean(p.baseline for p in self.points) if self.points else math.nan

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a row for each point, for `pandas.DataFrame(curve.to_rows())`, with Wilson's 95 % interval."""
        return [
            {
                "protocol": self.protocol,
                **point.model_dump(),
                "accuracy": point.accuracy,
                "interval_low": point.interval[0],
                "interval_high": point.interval[1],
            }
            for point in self.points
        ]

    def plot(self) -> Picture:
        """Draw accuracy against length on a logarithmic axis, with 95 % intervals, for notebooks, papers and slides.

        Lengths at which some class cannot occur are left out, unless this is true of all lengths.

        Raises:
            ValueError: the curve has no points.

        Example:
            >>> point = LengthPoint(length=40, num_strings=256, num_correct=255, baseline=0.5)
            >>> LengthCurve(protocol="independent", points=(point,)).plot().svg.count("<circle")
            1
        """
        if not self.points:
            raise ValueError("points: expected at least one point to draw, got none; measure at least one length")
        return Picture(self._chart())

    def save(self, path: str | Path) -> None:
        """Write all points as CSV, or the drawing of `plot` as PNG, SVG or PDF, depending on the path's suffix.

        Raises:
            ValueError: the path has another suffix, or the curve has no points to draw.
            OSError: the file cannot be written.
        """
        path = path_of("path", path)
        check_suffix("path", path, (".csv", *SUFFIXES), any_case=True)
        if path.suffix.lower() != ".csv":
            self.plot().save(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = self.to_rows()
        write_by_rename(path, csv_text([*(list(row) for row in rows[:1]), *(row.values() for row in rows)]).encode())

    def __repr__(self) -> str:
        """Return a line about the curve, and a line for each point (with many points, for the first and last few)."""
        lowest = min(self.points, key=lambda point: point.accuracy, default=None)
        if lowest is None:
            return f"LengthCurve({self.protocol}, no points)"
        head = f"LengthCurve({self.protocol}, {len(self.points):,} points, mean {self.mean():.4f}, "
        lines = [head + f"lowest {lowest.accuracy:.4f} at length {lowest.length:,})"]
        lines.append("    length  strings  accuracy  95 % interval    baseline")
        rows = [_repr_line(point) for point in self.points]
        if len(rows) > MAX_REPR_POINTS:
            rows = [*rows[: MAX_REPR_POINTS // 2], "       ...", *rows[-MAX_REPR_POINTS // 2 :]]
        return "\n".join([*lines, *rows])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return a chart for notebooks, of lengths at which every class can occur; if none exists, of all lengths."""
        if not self.points:
            return card(f"{self.protocol}: no points", [])
        points = self._drawn()
        lowest = min(points, key=lambda point: point.accuracy)
        lines = [
            ("mean", percent(fmean(point.accuracy for point in points))),
            ("lowest", f"{percent(lowest.accuracy)} at length {lowest.length:,}"),
        ]
        title = f"Accuracy against length, {self.protocol}, {len(points):,} points"
        return card(title, lines, self._chart())

    def _drawn(self) -> tuple[LengthPoint, ...]:
        return self.balanced().points or self.points

    def _chart(self) -> str:
        plotted = [Plotted(p.length, p.accuracy, *p.interval, p.baseline) for p in self._drawn()]
        return accuracy_svg(plotted, is_joined=self.protocol != "structured")

    def _keep(self, is_kept: Callable[[LengthPoint], bool]) -> "LengthCurve":
        return LengthCurve(protocol=self.protocol, points=tuple(point for point in self.points if is_kept(point)))


MAX_REPR_POINTS = 10  # the text of a longer curve omits the points in the middle


def _repr_line(point: LengthPoint) -> str:
    low, high = point.interval
    family = "" if point.family == "random" else f"  {point.family}"
    numbers = f"{point.length:10,}  {point.num_strings:7,}  {point.accuracy:8.4f}  {low:.4f}-{high:.4f}"
    return f"{numbers}  {point.baseline:10.4f}{family}"
