"""Charts of routings: the values that a tree or a scan merges in each step."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import altair as alt

from lengthwise.report.charts.colors import PALETTE
from lengthwise.studies.chi2023.routing import Merge, path_to


def routing_chart(routings: Mapping[str, Sequence[Merge]], length: int) -> alt.ConcatChart:
    """Draw routings side by side with titles. Steps go upwards, and values that the last position needs are dark."""
    panels = [_routing_panel(merges, length).properties(title=title) for title, merges in routings.items()]
    config = alt.Config(background="white", view=alt.ViewConfig(stroke=None))
    return alt.ConcatChart(concat=panels, columns=3, config=config)


def _routing_panel(merges: Sequence[Merge], length: int) -> alt.LayerChart:
    needed = set(path_to(merges, length - 1))
    used = {part for merge in needed for part in merge.parts}
    nodes = [{"position": position + 1, "step": 0, "needed": position in used} for position in range(length)]
    edges = []
    held_since = dict.fromkeys(range(length), 0)
    for step, together in groupby(sorted(merges), key=lambda merge: merge.step):
        merges_of_step = list(together)
        for merge in merges_of_step:
            dark = merge in needed
            nodes.append({"position": merge.position + 1, "step": step, "needed": dark})
            for part in (part + 1 for part in merge.parts if part >= 0):
                # The line of a value that waits for a later step first goes straight up, so that it crosses no other
                # circle.
                if held_since[part - 1] < step - 1:
                    edges.append(_edge((part, held_since[part - 1]), (part, step - 1), dark))
                edges.append(_edge((part, step - 1), (merge.position + 1, step), dark))
        held_since |= {merge.position: step for merge in merges_of_step}
    edges.sort(key=lambda edge: edge["needed"])  # dark edges are drawn last, above light ones
    x = alt.X("position:Q", title="symbol", axis=alt.Axis(values=list(range(1, length + 1)), grid=False, format="d"))
    y = alt.Y("step:Q", title="step", axis=alt.Axis(tickMinStep=1, grid=False, format="d"))
    color = alt.Color("needed:N", scale=alt.Scale(domain=[False, True], range=["#c9d6e8", PALETTE[0]]), legend=None)
    lines = alt.Chart(alt.InlineData(values=edges))
    circles = alt.Chart(alt.InlineData(values=nodes))
    layers = [
        lines.mark_rule(strokeWidth=1.5).encode(x=x, y=y, x2="from_position:Q", y2="from_step:Q", color=color),
        circles.mark_circle(size=110, opacity=1).encode(x=x, y=y, color=color),
    ]
    return alt.LayerChart(layer=layers, width=210, height=170)


def _edge(start: tuple[int, int], end: tuple[int, int], needed: bool) -> dict[str, Any]:
    return {"position": end[0], "step": end[1], "from_position": start[0], "from_step": start[1], "needed": needed}
