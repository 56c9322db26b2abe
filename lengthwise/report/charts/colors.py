"""Colors of all charts, and the legends that name them."""

from collections.abc import Sequence
from typing import Any

import altair as alt

GRAY = "#8a8a8a"
PALETTE = ["#3b7dd8", "#e8842c", "#3aa57a", "#c84f8c", "#8e6fd1", "#b59a1f", "#4fb3c8", "#b0563a"]


def color_by(field: str, names: Sequence[str], title: str = "", **settings: Any) -> alt.Color:
    """Return a color encoding for a chart's field: the names in `names` get the colors of the palette in order."""
    scale = alt.Scale(domain=[*names], range=PALETTE[: len(names)])
    return alt.Color(f"{field}:N", title=title, scale=scale, **settings)


def top_legend(**settings: Any) -> alt.Legend:
    """Return a legend in a row above the chart, with its title on the left."""
    return alt.Legend(orient="top", direction="horizontal", titleOrient="left", **settings)
