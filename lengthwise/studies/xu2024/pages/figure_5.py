"""The page about Figure 5 of Xu and Sato (2024): accuracies on training and test problems, and a chart."""

import math
from collections.abc import Sequence
from statistics import StatisticsError, correlation, fmean

import altair as alt

from lengthwise.evaluation.interval import correlation_interval
from lengthwise.report.charts.colors import color_by
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.studies.xu2024.experiments.figure_5 import TrainTest

ON_TRAINING = "training problems"
ON_TEST = "test problems"
ON_TEST_NEW = "test problems, none seen twice"


@STUDY_PAGES.register("looped/figure-5")
def figure_5_page(points: Sequence[TrainTest], stem: str) -> StudyPage:
    """Return the study's page: training and test accuracies by net and number of loops, their correlation, a chart."""
    scored = max((point.num_scored for point in points), default=0)
    header = ["problems to train on", "net", "training", "test", "test - training", "runs"]
    sections = [
        f"## Training and test accuracy\n\n![Accuracy against loops]({stem}.svg)",
        markdown_table(header, [_line(group) for group in _groups(points)]),
        f"Entries are means over runs. *Training* is measured on {scored:,} problems of the training set. "
        f"{_together(points)}",
    ]
    chart = accuracy_chart(points).to_dict()
    return StudyPage(sections, {f"{stem}.svg": chart}, headline=_headline(points))


def _headline(points: Sequence[TrainTest]) -> str:
    kinds = [
        f"{value:.3f} in {count} runs of *{kind}* (95 % interval {low:.2f} to {high:.2f})"
        for kind, value, low, high, count in _correlations(points)
        if not math.isnan(low)
    ]
    gaps = [100 * (train - test) for train, test in map(_means, _groups(points)) if train is not None]
    if not kinds or not gaps:
        return ""
    return (
        "For looped transformers trained on edit distances, training and test accuracies have a correlation of "
        f"{' and '.join(kinds)}.\n"
        f"Averaged over the seeds of a cell, accuracy is {min(gaps):.0f} to {max(gaps):.0f} points higher on the "
        "fixed training problems than on test problems."
    )


def _groups(points: Sequence[TrainTest]) -> list[list[TrainTest]]:
    """Return the runs of each cell of the table."""
    keys = dict.fromkeys((point.row, point.kind, point.num_loops) for point in points)
    return [[point for point in points if (point.row, point.kind, point.num_loops) == key] for key in keys]


def _line(group: Sequence[TrainTest]) -> list[str]:
    train, test = _means(group)
    return [
        group[0].row,
        f"{group[0].kind}, R={group[0].num_loops}",
        NOTHING if train is None else percent(train),
        percent(test),
        NOTHING if train is None else f"{100 * (test - train):+.2f}",
        str(len(group)),
    ]


def _means(group: Sequence[TrainTest]) -> tuple[float | None, float]:
    """Return the mean accuracies on training problems (None if training problems are always new) and test problems."""
    train = [point.train for point in group if point.train is not None]
    return fmean(train) if train else None, fmean(point.test for point in group)


def _together(points: Sequence[TrainTest]) -> str:
    """Return Pearson's correlation of training and test accuracy for each kind of loop, with fixed training sets."""
    parts = []
    for kind, value, low, high, count in _correlations(points):
        limits = "" if math.isnan(low) else f"{low:.2f} to {high:.2f}; "
        parts.append(f"{kind} {NOTHING if math.isnan(value) else f'{value:.3f}'} ({limits}{count} runs)")
    return (
        "Pearson's correlation of accuracies on training and test problems, with Fisher's 95 % interval: "
        f"{', '.join(parts)}."
    )


def _correlations(points: Sequence[TrainTest]) -> list[tuple[str, float, float, float, int]]:
    """Return for each kind of loop the correlation, the interval of the correlation, and the number of runs."""
    lines = []
    for kind in dict.fromkeys(point.kind for point in points):
        pairs = [(point.train, point.test) for point in points if point.kind == kind and point.train is not None]
        value = _correlation(pairs)
        lines.append((kind, value, *correlation_interval(value, len(pairs)), len(pairs)))
    return lines


def _correlation(pairs: Sequence[tuple[float, float]]) -> float:
    try:
        return correlation(*zip(*pairs, strict=True)) if len(pairs) > 1 else math.nan
    except StatisticsError:  # undefined if all values are equal
        return math.nan


def accuracy_chart(points: Sequence[TrainTest]) -> alt.HConcatChart:
    """Draw a panel for each kind of net: mean training and test accuracy of the runs against the number of loops."""
    kinds = list(dict.fromkeys(point.kind for point in points))
    lines = [ON_TRAINING, ON_TEST, ON_TEST_NEW]
    panels = []
    for kind in kinds:
        values: list[dict[str, str | float]] = []
        for group in _groups([point for point in points if point.kind == kind]):
            (train, test), loops = _means(group), group[0].num_loops
            values.append({"loops": loops, "accuracy": test, "line": ON_TEST_NEW if train is None else ON_TEST})
            if train is not None:
                values.append({"loops": loops, "accuracy": train, "line": ON_TRAINING})
        ticks = sorted({point.num_loops for point in points})
        log = alt.Scale(type="log", domain=[ticks[0], ticks[-1]], padding=10)
        x = alt.X("loops:Q", title="loops", scale=log, axis=alt.Axis(values=ticks))
        y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
        color = color_by("line", lines, sort=lines, legend=alt.Legend(orient="top", labelLimit=300))
        chart = alt.Chart(alt.InlineData(values=values), width=240, height=220, title=kind)
        panels.append(chart.mark_line(point=True, strokeWidth=1.5).encode(x=x, y=y, color=color))
    return alt.HConcatChart(hconcat=panels, config=alt.Config(background="white"))
