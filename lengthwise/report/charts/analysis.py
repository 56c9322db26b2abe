"""Charts about the inside of a model: states, and the receptive field."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.analysis.clusters import LevelClusters, PrincipalComponents, num_clusters
from lengthwise.analysis.receptive_field import FlipPoint
from lengthwise.analysis.states import BlockStates
from lengthwise.report.charts.colors import GRAY, PALETTE, top_legend
from lengthwise.report.charts.curves import HEIGHT, WIDTH, log_ticks
from lengthwise.report.tables.numbers import percent

GRID = 80
"""The number of distances at which the numbers of clusters are drawn."""

NEAR, FAR = 1e-4, 100.0
"""The smallest and largest distance at which clusters are counted, in units of the distance that the chart marks."""

POSITIONS = 500
"""The largest number of positions at which the cumulative gradient is drawn."""


def element_chart(blocks: BlockStates, components: PrincipalComponents) -> alt.Chart:
    """Draw states on the plane of the first two principal components, with a color for each monoid element."""
    # Both axes have the same scale, so that a component with hardly any variance is visible as such.
    reach = 1.1 * max(float(components.points.abs().max()), 1e-9)
    scale, axis = alt.Scale(domain=[-reach, reach], nice=False), alt.Axis(tickCount=5)
    x, y = (
        kind(f"{which}:Q", title=f"{which} component ({percent(share)} of variance)", scale=scale, axis=axis)
        for kind, which, share in zip((alt.X, alt.Y), ("first", "second"), components.shares.tolist(), strict=True)
    )
    points = _chart(_state_values(blocks, components)).mark_point(filled=True, size=26, opacity=0.6)
    chart: alt.Chart = points.encode(x=x, y=y, color=_element_color(blocks), tooltip=["element:N", "level:Q"])
    return chart


def level_chart(blocks: BlockStates, components: PrincipalComponents) -> alt.Chart:
    """Draw the first principal component of each state against the level of its node in the tree (`BlockStates`)."""
    values = _state_values(blocks, components)
    for index, value in enumerate(values):
        # The golden ratio spreads points evenly over half a level for any number of states.
        value["spread"] = round(value["level"] + 0.5 * ((index * 0.618034) % 1 - 0.5), 3)
    levels = list(range(1, blocks.num_levels + 1))
    x = alt.X(
        "spread:Q",
        title="level",
        scale=alt.Scale(domain=[0.5, blocks.num_levels + 0.5], nice=False),
        axis=alt.Axis(values=levels, format="d", grid=False, labelOverlap="greedy"),
    )
    y = alt.Y("first:Q", title="first component", axis=alt.Axis(tickCount=5))
    points = _chart(values).mark_point(filled=True, size=14, opacity=0.6)
    chart: alt.Chart = points.encode(x=x, y=y, color=_element_color(blocks), tooltip=["element:N", "level:Q"])
    return chart


def cluster_chart(levels: Sequence[LevelClusters], *, distance: float, monoid_size: int) -> alt.LayerChart:
    """Draw a line for each level of `BlockStates`: the number of clusters of states against the clustering distance."""
    exponents = torch.linspace(0, 1, GRID, dtype=torch.float64)
    grid = (distance * NEAR * (FAR / NEAR) ** exponents).tolist()
    values = [
        {"level": level.level, "distance": round(r, 8), "clusters": num_clusters(level.linkage, r)}
        for level in levels
        for r in grid
    ]
    x = alt.X(
        "distance:Q",
        title="distance",
        scale=alt.Scale(type="log", domain=[grid[0], grid[-1]], nice=False),
        axis=alt.Axis(format="~g", tickCount=5, grid=False),
    )
    maximum = max(value["clusters"] for value in values)
    y = alt.Y(
        "clusters:Q",
        title="clusters",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format=",d", values=log_ticks(1.0, float(max(maximum, monoid_size))), labelOverlap="greedy"),
    )
    lines = (
        _chart(values)
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(x=x, y=y, color=_level_color(max(level.level for level in levels)), detail="level:N", tooltip="level:Q")
    )
    size = _chart([{"clusters": monoid_size, "distance": grid[-1], "text": f"monoid: {monoid_size:,} elements"}])
    mark = _chart([{"distance": distance, "text": f"counted at {distance:.3g}"}])
    layers = [
        size.mark_rule(color=GRAY, strokeDash=[4, 3]).encode(y=y),
        size.mark_text(align="right", baseline="bottom", dx=-2, dy=-4, color=GRAY).encode(x=x, y=y, text="text:N"),
        mark.mark_rule(color=GRAY).encode(x=x),
        mark.mark_text(align="left", baseline="top", dx=4, dy=4, color=GRAY).encode(x=x, y=alt.value(0), text="text:N"),
        lines,
    ]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def field_chart(cumulative: Float[Tensor, "B T"]) -> alt.LayerChart:
    """Draw, for each position, the share of gradient norms at this and all later positions (`cumulative_field`).

    A line shows the mean over strings, and a band the middle 80 %. A dashed line shows the curve of a gradient that is
    equal at all positions.
    """
    length = cumulative.shape[1]
    drawn = torch.linspace(0, length - 1, min(length, POSITIONS)).round().long()
    shares = cumulative[:, drawn]
    quantiles = shares.quantile(torch.tensor([0.1, 0.9], dtype=shares.dtype), dim=0)
    rows = torch.stack([shares.mean(0), *quantiles], 1).tolist()
    values = [
        {"position": position + 1, "share": round(mean, 4), "low": round(low, 4), "high": round(high, 4)}
        for position, (mean, low, high) in zip(drawn.tolist(), rows, strict=True)
    ]
    uniform = [{"position": 1, "share": 1.0}, {"position": length, "share": 1 / length}]
    x, base = _position(length), _chart(values)
    y = alt.Y("share:Q", title="gradient from here on", scale=alt.Scale(domain=[0, 1]), axis=_PERCENT)
    layers = [
        base.mark_area(color=PALETTE[0], opacity=0.25).encode(x=x, y=alt.Y("low:Q", title=""), y2="high:Q"),
        base.mark_line(color=PALETTE[0], strokeWidth=2).encode(x=x, y=y),
        _chart(uniform).mark_line(color=GRAY, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y),
        _chart([{"position": length, "share": 1.0, "text": "dashed: equal gradient at every symbol"}])
        .mark_text(align="right", baseline="top", dx=-4, dy=6, color=GRAY)
        .encode(x=x, y=y, text="text:N"),
    ]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def flip_chart(points: Sequence[FlipPoint], *, length: int) -> alt.LayerChart:
    """Draw how often the model's answer and the right answer change if the symbol at a position is replaced."""
    right, given = "right answer", "model's answer"
    expected = [
        {"position": length - point.distance, "answer": right, "changed": round(point.expected, 4)} for point in points
    ]
    changed = [
        {
            "position": length - point.distance,
            "answer": given,
            "changed": round(point.changed, 4),
            "low": round(point.interval[0], 4),
            "high": round(point.interval[1], 4),
            "count": f"{point.num_changed:,} of {point.num_strings:,}, {percent(point.changed)}",
            "expected": f"{point.num_expected:,} of {point.num_strings:,}, {percent(point.expected)}",
        }
        for point in points
    ]
    x, base = _position(length), _chart(changed)
    y = alt.Y("changed:Q", title="answers that change", scale=alt.Scale(domain=[0, 1]), axis=_PERCENT)
    color = alt.Color(
        "answer:N",
        title=None,
        scale=alt.Scale(domain=[given, right], range=[PALETTE[0], GRAY]),
        legend=alt.Legend(orient="top", direction="horizontal", symbolOpacity=1),
    )
    tooltip = [
        alt.Tooltip("position:Q", format=",d"),
        alt.Tooltip("count:N", title=given),
        alt.Tooltip("expected:N", title=right),
    ]
    layers = [
        # A broad line stays visible below the model's points.
        _chart(expected).mark_line(strokeWidth=9, opacity=0.5).encode(x=x, y=y, color=color),
        base.mark_rule(opacity=0.35).encode(x=x, y=alt.Y("low:Q", title=""), y2="high:Q", color=color),
        base.mark_point(filled=True, size=16, opacity=1).encode(x=x, y=y, color=color, tooltip=tooltip),
    ]
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def _state_values(blocks: BlockStates, components: PrincipalComponents) -> list[dict[str, Any]]:
    """Return the data of each state: its position on the plane, its level and the name of its element."""
    names = blocks.names
    rows = zip(components.points.tolist(), blocks.levels.tolist(), blocks.elements.tolist(), strict=True)
    return [
        {"first": round(first, 3), "second": round(second, 3), "level": level, "element": names[element]}
        for (first, second), level, element in rows
    ]


def _element_color(blocks: BlockStates) -> alt.Color:
    """Return a color for each element; if there are more elements than colors, there is no legend."""
    names = [blocks.names[element] for element in blocks.elements.unique().tolist()]
    few = len(names) <= len(PALETTE)
    legend = top_legend(symbolOpacity=1, columns=8)
    scale = alt.Scale(domain=names, range=PALETTE) if few else alt.Scale(domain=names, scheme="turbo")
    return alt.Color("element:N", title="element", scale=scale, legend=legend if few else None)


def _level_color(num_levels: int) -> alt.Color:
    legend = top_legend(tickMinStep=1, gradientLength=160, gradientOpacity=1)
    scale = alt.Scale(scheme="viridis", domain=[1, max(2, num_levels)])
    return alt.Color("level:Q", title="level", scale=scale, legend=legend)


def _position(length: int) -> alt.X:
    return alt.X(
        "position:Q",
        title="position (left: oldest symbol)",
        scale=alt.Scale(domain=[1, length], nice=False, padding=4),
        axis=alt.Axis(format=",d", tickCount=5, grid=False),
    )


def _chart(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=values), width=WIDTH, height=HEIGHT)


_PERCENT = alt.Axis(format="%", tickCount=5)
