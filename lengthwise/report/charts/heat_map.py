"""A heat map of rows by columns: accuracy as color and number, the level of certificates as a mark."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

from lengthwise.experiment import Experiment
from lengthwise.report.tables.matrix import Entry

STEP_X, STEP_Y = 23, 17
"""The size of a cell, in pixels."""

TITLE_WIDTH = 18
"""The largest width of a line of a panel's title, in characters. A panel can be as narrow as one column."""

PADDING = {"left": 24, "top": 12, "right": 24, "bottom": 5}
"""The margins in pixels, for labels in a font that is wider than the font for which the chart was laid out."""

COLORS = ("#f4f1ec", "#1f8a70")
MARKS = {"proved": "#0b3d91", "bounded": "#5b7fd1", "extracted": "#9aa7b8"}
"""The colors of the dots by level of the certificate. Cells of other levels have no dot."""


def heat_map(experiment: Experiment, entries: Sequence[Entry]) -> alt.HConcatChart:
    """Draw a panel for each part of an experiment: the mean accuracies in percent, rounded down, as colors and numbers.

    The color scale begins at chance. A dot shows the lowest level among the certificates of a cell's finished runs, if
    `MARKS` contains this level. If there are no dots, the legend is left out. All panels have the same rows, so that
    one list of labels serves all of them. Each panel has only the columns of its own cells.
    """
    rows = list(dict.fromkeys(cell.row for cell in experiment.cells))
    columns: dict[str, dict[str, None]] = {}
    for cell in experiment.cells:
        columns.setdefault(cell.part, {})[cell.column] = None
    legend = alt.Legend(title="finished seeds") if has_marks(entries) else None
    panels = [
        _panel(
            part,
            rows,
            list(own),
            [entry for entry in entries if entry.cell.part == part],
            has_labels=index == 0,
            legend=None if index else legend,
        )
        for index, (part, own) in enumerate(columns.items())
    ]
    chart: alt.HConcatChart = alt.hconcat(*panels, spacing=10, padding=PADDING).configure_view(stroke="#dddddd")
    return chart


def has_marks(entries: Sequence[Entry]) -> bool:
    """Return whether the certificates of any cell have a level that the heat map marks by a dot."""
    return any(entry.level in MARKS for entry in entries)


def _panel(
    part: str,
    rows: Sequence[str],
    columns: Sequence[str],
    entries: Sequence[Entry],
    *,
    has_labels: bool,
    legend: alt.Legend | None,
) -> alt.LayerChart:
    values = alt.InlineData(values=[_value(entry) for entry in entries])
    x = alt.X("column:N", sort=list(columns), scale=alt.Scale(domain=list(columns)), title=None)
    x = x.axis(orient="top", labelAngle=-55, labelLimit=150, ticks=False, domain=False)
    y = alt.Y("row:N", sort=list(rows), scale=alt.Scale(domain=list(rows)), title=None)
    y = y.axis(labels=has_labels, ticks=False, domain=False, labelLimit=150)
    above = alt.Scale(domain=[0, 1], range=list(COLORS), clamp=True)
    base = alt.Chart(values, title=textwrap.wrap(part, TITLE_WIDTH)).encode(x=x, y=y)
    squares = base.mark_rect(stroke="white", strokeWidth=1).encode(color=alt.Color("above:Q", scale=above, legend=None))
    ink = alt.condition("datum.above > 0.6", alt.value("white"), alt.value("#333333"))
    numbers = base.mark_text(fontSize=8.5, dx=-2).encode(text="percent:N", color=ink)
    levels = alt.Scale(domain=list(MARKS), range=list(MARKS.values()))
    dots = (
        base.transform_filter(alt.FieldOneOfPredicate("level", list(MARKS)))
        .mark_point(filled=True, size=26, xOffset=8, yOffset=-4, stroke="white", strokeWidth=0.6, opacity=1)
        .encode(fill=alt.Fill("level:N", scale=levels, legend=legend))
    )
    panel: alt.LayerChart = (
        alt.layer(squares, numbers, dots)
        .resolve_scale(color="independent")
        .properties(width=STEP_X * len(columns), height=STEP_Y * len(rows))
    )
    return panel


def _value(entry: Entry) -> dict[str, Any]:
    above = 1.0 if entry.chance == 1 else (entry.mean - entry.chance) / (1 - entry.chance)
    # In floats, 57 % can be a little less than 57. So the percentage is rounded to 9 digits first, then down.
    share = round(100 * entry.mean, 9)
    return {
        "row": entry.cell.row,
        "column": entry.cell.column,
        "above": 0.0 if math.isnan(above) else max(0.0, above),
        "percent": NO_NUMBER if math.isnan(entry.mean) else str(math.floor(share)),
        "level": entry.level,
    }


NO_NUMBER = "-"
