"""Charts of results: accuracy against length and loss against step, one panel for each configuration."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean, median
from typing import Any

import altair as alt

from lengthwise.evaluation.length_curve import LengthPoint
from lengthwise.report.charts.colors import GRAY, PALETTE, top_legend
from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.runs import RunRow
from lengthwise.report.tables.training import Change
from lengthwise.training.loop import StepRecord

LOSS_WINDOWS = 200
"""The largest number of points of a loss curve; a point is the median over the steps since the previous point."""

LOSS_FLOOR = 1e-8
"""The smallest loss that is drawn. A smaller loss, such as 0, does not fit on a logarithmic axis, and is drawn at this
value."""

FEW = 4
"""The largest number of seeds for which line widths and offsets of points keep equal accuracies visible."""

Value = dict[str, Any]

WIDTH, HEIGHT = 300, 230


def accuracy_chart(rows: Sequence[RunRow], *, trained_to: int, hover: bool = True) -> alt.LayerChart:
    """Draw the accuracy of the final answer against length, with a color for each seed of one configuration.

    Solid lines show the lengths of the plan's dense range. Diamonds show the plan's long lengths with Wilson's 95 %
    interval, and are side by side where seeds share a length. The dashed line shows the accuracy of the best constant
    answer. The vertical rule is at the longest training length. Only lengths at which every class can occur are drawn.
    `hover` adds a tooltip to every point of the lines, which makes a picture five times as large.
    """
    rows = sorted(rows, key=lambda row: row.seed)
    seeds = [row.seed for row in rows]
    dense = [_value(row, point) for row in rows for point in row.dense.points]
    long = [_value(row, point) for row in rows for point in row.long.values()]
    lengths = [value["length"] for value in dense + long] or [trained_to]
    domain = [min(trained_to, *lengths) / 2, max(trained_to, *lengths) * 1.6]
    x = _length_axis(domain)
    layers = [
        *_training_length(trained_to, x),
        *_baseline(rows, x),
        *_dense_lines(dense, x, seeds, hover=hover),
        *_long_points(long, x, seeds),
    ]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def comparison_chart(
    models: Mapping[str, Sequence[RunRow]], *, trained_to: Sequence[int], hover: bool = True
) -> alt.LayerChart:
    """Draw the accuracy of the final answer against length, with a color for the mean of each model over its seeds.

    Bands reach from the lowest accuracy of any seed to the highest, and so do short vertical lines at the long lengths.
    The dashed line shows the accuracy of the best constant answer. Tall vertical rules mark the models' longest
    training lengths.
    """
    dense, long = _means(models, is_long=False), _means(models, is_long=True)
    rows = [row for of_model in models.values() for row in of_model]
    lengths = [value["length"] for value in dense + long] + list(trained_to)
    domain = [min(lengths) / 2, max(lengths) * 1.6]
    x = _length_axis(domain)
    color = _color("model", list(models), columns=2)
    lines = alt.Chart(alt.InlineData(values=dense)).encode(x=x, color=color)
    points = alt.Chart(alt.InlineData(values=long)).encode(x=x, color=color, tooltip=_MEAN_TOOLTIP)
    y = _accuracy()
    low = alt.Y("low:Q", title="")
    high = alt.Y2("high:Q")
    layers = [
        *(layer for length in trained_to for layer in _training_length(length, x)),
        *_baseline(rows, x),
        lines.mark_area(opacity=0.15).encode(y=low, y2=high),
        lines.mark_line(strokeWidth=2).encode(y=y),
        *([lines.mark_point(opacity=0, size=60, filled=True).encode(y=y, tooltip=_MEAN_TOOLTIP)] if hover else []),
        points.mark_rule(strokeWidth=1.5).encode(y=low, y2=high),
        points.mark_point(shape="diamond", filled=True, size=50, opacity=1).encode(y=y),
    ]
    return alt.LayerChart(layer=layers, width=2 * WIDTH, height=HEIGHT)


def _means(models: Mapping[str, Sequence[RunRow]], *, is_long: bool) -> list[Value]:
    """Return the mean, lowest and highest accuracy over the seeds, for each model and each length."""
    values = []
    for name, rows in models.items():
        accuracies: dict[int, list[float]] = {}
        for row in rows:
            for point in row.long.values() if is_long else row.dense.points:
                accuracies.setdefault(point.length, []).append(point.accuracy)
        for length, of_length in accuracies.items():
            mean = fmean(of_length)
            seen = {"accuracy": mean, "mean": percent(mean), "low": min(of_length), "high": max(of_length)}
            values.append({"model": name, "length": length, **seen})
    return values


def loss_chart(losses: Mapping[int, Sequence[StepRecord]], change: Change | None = None) -> alt.LayerChart:
    """Draw the training loss against step by seed, on a logarithmic axis: medians over windows of steps.

    A vertical rule marks the step after which training adds noise or losses (`change`). A label at the rule names these
    additions.
    """
    steps = max((len(records) for records in losses.values()), default=1)
    window = math.ceil(max(1, steps) / LOSS_WINDOWS)
    values = [
        {"seed": seed, "step": step, "loss": max(loss, LOSS_FLOOR)}
        for seed, records in losses.items()
        for step, loss in window_medians(records, window)
    ]
    noun = f"median of {window} steps" if window > 1 else "each step"
    x = alt.X("step:Q", title="step", axis=alt.Axis(format=",d", tickCount=5, grid=False))
    y = alt.Y(
        "loss:Q",
        title=f"training loss ({noun})",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(labelExpr=_LOSS_LABEL, tickCount=6),
    )
    base = alt.Chart(alt.InlineData(values=values))
    lines = base.mark_line(strokeWidth=1.5, opacity=0.8).encode(x=x, y=y, color=_seed_color(list(losses)))
    layers = [lines] if change is None else [*_change_rule(change, x), lines]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def _change_rule(change: Change, x: alt.X) -> list[alt.Chart]:
    text = "\n".join(["from here on:", *change.additions])
    base = alt.Chart(alt.InlineData(values=[{"step": change.step, "text": text}]))
    label = base.mark_text(align="right", baseline="top", dx=-4, lineBreak="\n", fontSize=10, color=GRAY)
    return [
        base.mark_rule(color=GRAY, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, tooltip="text:N"),
        label.encode(x=x, y=alt.value(2), text="text:N"),
    ]


def window_medians(records: Sequence[StepRecord], window: int) -> list[tuple[int, float]]:
    """Return the last step and the median loss of every `window` consecutive training steps.

    The last window may be shorter.

    Example:
        >>> losses = [4.0, 1.0, 2.0, 8.0]
        >>> window_medians([StepRecord(i + 1, loss, 9, 1.0, 1e-3) for i, loss in enumerate(losses)], 3)
        [(3, 2.0), (4, 8.0)]
    """
    parts = [records[start : start + window] for start in range(0, len(records), window)]
    return [(part[-1].step, median(record.loss for record in part)) for part in parts]


def side_by_side(panels: Mapping[str, alt.Chart | alt.LayerChart]) -> alt.ConcatChart:
    """Join panels under their titles in one picture, for PNG and SVG files."""
    titled = [panel.properties(title=title) for title, panel in panels.items()]
    config = alt.Config(background="white", view=alt.ViewConfig(stroke=None))
    return alt.ConcatChart(concat=titled, columns=3, config=config)


def _length_axis(domain: Sequence[float]) -> alt.X:
    return alt.X(
        "length:Q",
        title="length",
        scale=alt.Scale(type="log", domain=list(domain), nice=False),
        axis=alt.Axis(format="~s", values=log_ticks(*domain), grid=False, labelOverlap="greedy"),
    )


def _training_length(trained_to: int, x: alt.X) -> list[alt.Chart]:
    base = alt.Chart(alt.InlineData(values=[{"length": trained_to, "text": f"trained up to {trained_to:,}"}]))
    rule = base.mark_rule(color=GRAY, strokeWidth=1.5).encode(x=x, tooltip="text:N")
    text = base.mark_text(align="left", baseline="bottom", dx=4, dy=-4, color=GRAY).encode(
        x=x, y=alt.datum(0.0), text="text:N"
    )
    return [rule, text]


def _baseline(rows: Sequence[RunRow], x: alt.X) -> list[alt.Chart]:
    # A constant answer does not depend on the seed. A range of equal scores needs only its two ends.
    scores = sorted({p.length: p.baseline for row in rows for p in (*row.dense.points, *row.long.values())}.items())
    values = []
    for _, same in groupby(scores, key=lambda score: score[1]):
        run = list(same)
        values += [{"length": length, "score": score} for length, score in dict.fromkeys((run[0], run[-1]))]
    base, y = alt.Chart(alt.InlineData(values=values)), alt.Y("score:Q", title="")
    line = (
        base.mark_line(color=GRAY, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y)
        if len(values) > 1
        else base.mark_rule(color=GRAY, strokeDash=[4, 3], strokeWidth=1.5).encode(y=y)
    )
    text = (
        alt.Chart(alt.InlineData(values=values[-1:]))
        .mark_text(align="right", baseline="bottom", dy=-3, color=GRAY)
        .encode(x=x, y="score:Q", text=alt.value("best constant answer"))
    )
    return [line, text]


def _dense_lines(values: list[Value], x: alt.X, seeds: Sequence[int], *, hover: bool) -> list[alt.Chart]:
    # Seeds often have equal accuracies, such as 100 %. Broad lines are drawn first, so that each line stays visible.
    lines, points = [], []
    for index, seed in enumerate(seeds):
        width = 1.5 + 2.5 * (len(seeds) - 1 - index if len(seeds) <= FEW else 0)
        of_seed = _of_seed(values, seed)
        base = alt.Chart(alt.InlineData(values=of_seed))
        mark = base.mark_line(strokeWidth=width) if len(of_seed) != 1 else base.mark_point(filled=True, size=60)
        lines.append(mark.encode(x=x, y=_accuracy(), color=_seed_color(seeds)))
        # The tooltip of a line belongs to its first point only, so invisible points carry the tooltips of all points.
        points.append(base.mark_point(opacity=0, size=60, filled=True).encode(x=x, y=_accuracy(), tooltip=_TOOLTIP))
    return lines + points if hover else lines


def _long_points(values: list[Value], x: alt.X, seeds: Sequence[int]) -> list[alt.Chart]:
    layers = []
    for index, seed in enumerate(seeds):
        offset = 7 * (index - (len(seeds) - 1) / 2) if len(seeds) <= FEW else 0
        base = alt.Chart(alt.InlineData(values=_of_seed(values, seed)))
        base = base.encode(x=x, color=_seed_color(seeds), tooltip=_TOOLTIP)
        layers += [
            base.mark_rule(strokeWidth=1.5, xOffset=offset).encode(y=alt.Y("low:Q", title=""), y2="high:Q"),
            base.mark_point(shape="diamond", filled=True, size=50, opacity=1, xOffset=offset).encode(y=_accuracy()),
        ]
    return layers


def _value(row: RunRow, point: LengthPoint) -> Value:
    low, high = point.interval
    return {
        "seed": row.seed,
        "length": point.length,
        "accuracy": point.accuracy,
        "right": f"{point.num_correct:,} of {point.num_strings:,}, {percent(point.accuracy)}",
        "low": round(low, 4),
        "high": round(high, 4),
    }


def _of_seed(values: list[Value], seed: int) -> list[Value]:
    return [value for value in values if value["seed"] == seed]


def _accuracy() -> alt.Y:
    return alt.Y(
        "accuracy:Q",
        title="accuracy of the final answer",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", tickCount=5),
    )


def _seed_color(seeds: Sequence[int]) -> alt.Color:
    return _color("seed", seeds, columns=8)


def _color(field: str, names: Sequence[Any], *, columns: int) -> alt.Color:
    colors = [PALETTE[index % len(PALETTE)] for index in range(len(names))]
    # By default, the symbols of the legend would have the opacity of the chart's band.
    legend = top_legend(symbolType="stroke", symbolOpacity=1, columns=columns)
    return alt.Color(f"{field}:N", title=field, scale=alt.Scale(domain=list(names), range=colors), legend=legend)


def log_ticks(low: float, high: float) -> list[int]:
    """Return the ticks of a range: 1, 2 and 5 times each power of ten below 1,000, then only powers of ten."""
    powers = range(math.ceil(math.log10(high)) + 1)
    ticks = (digit * 10**power for power in powers for digit in ((1, 2, 5) if power < 3 else (1,)))
    return [tick for tick in ticks if low <= tick <= high]


_LOSS_LABEL = "datum.value < 0.01 ? format(datum.value, '~e') : format(datum.value, '~g')"

_TOOLTIP = [
    alt.Tooltip("seed:N"),
    alt.Tooltip("length:Q", format=",d"),
    alt.Tooltip("right:N"),
    alt.Tooltip("low:Q", title="95 % from", format=".2%"),
    alt.Tooltip("high:Q", title="95 % to", format=".2%"),
]

_MEAN_TOOLTIP = [
    alt.Tooltip("model:N"),
    alt.Tooltip("length:Q", format=",d"),
    alt.Tooltip("mean:N"),
    alt.Tooltip("low:Q", title="lowest seed", format=".2%"),
    alt.Tooltip("high:Q", title="highest seed", format=".2%"),
]
