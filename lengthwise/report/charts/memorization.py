"""Pictures of a generator (a net that repeats a word): states with decision regions, and logits in one period."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from lengthwise.constructions.memorization.frequencies import blocks, orbit
from lengthwise.constructions.memorization.generator import Array
from lengthwise.constructions.memorization.memorize import Memorization
from lengthwise.constructions.memorization.rational import RationalMemorization, frequencies_of
from lengthwise.report.charts.colors import GRAY, PALETTE, top_legend

Values = list[dict[str, Any]]

SIZE = 260
"""The width and height of a plane's chart, in pixels; the chart of a period is as wide as two planes."""

MAX_PLANES = 8
"""The largest number of planes that are drawn; if there are more, only the first ones are drawn."""

EDGE = 1.35
"""The distance from the center of a plane to its edge, in units of the largest norm of a state in this plane."""

FINE = 40
"""The number of points of a curve between two steps."""

MAX_NAMES = 24
"""The largest number of states that are labeled with their step, and of step numbers below the chart of a period."""


def memorization_chart(memorization: Memorization | RationalMemorization) -> alt.VConcatChart:
    """Draw the states of a generator on planes, colored by symbol, and below them the logits along one period.

    For a generator of two dimensions, regions behind the states show the symbol with the largest logit (Figures 1 and 2
    of the note "update on rnn memorization"). With more dimensions, each plane shows the states at one frequency,
    without regions. The logits are also drawn between steps. The bar below the logits shows the symbol with the largest
    logit.
    """
    if not memorization.generator.dimension:
        raise ValueError(
            "word: expected at least two different symbols, got one, so there is no state to draw; pass another word"
        )
    planes = [_square(memorization.word.symbols, *content) for content in _plane_contents(memorization)]
    columns = 2 if len(planes) > 1 else 1
    rows = [alt.hconcat(*planes[start : start + columns]) for start in range(0, len(planes), columns)]
    chart: alt.VConcatChart = alt.vconcat(*rows, _period_chart(memorization), center=True).configure_view(stroke=None)
    return chart


def _plane_contents(memorization: Memorization | RationalMemorization) -> list[tuple[str, Values, list[Values]]]:
    """Return title, states and regions of each plane."""
    generator, word = memorization.generator, memorization.word
    text = word.text if len(word.text) <= 20 else f"{word.text[:17]}..."
    if generator.dimension == 2:
        states = generator.states(word.period).astype(float)
        scale = np.linalg.norm(states, axis=1).max()
        regions = _regions(generator.readout * scale, generator.bias, word.symbols)
        return [(f"{text} indefinitely, d = 2", _named(states / scale, memorization), regions)]
    circles = orbit(frequencies := _frequencies(memorization), word.period)
    contents: list[tuple[str, Values, list[Values]]] = []
    for k, block in list(zip(frequencies, blocks(frequencies, word.period), strict=True))[:MAX_PLANES]:
        plane = circles[:, block]
        plane = plane if plane.shape[1] == 2 else np.pad(plane, ((0, 0), (0, 1)))
        contents.append((f"frequency {k} of {word.period}", _named(plane, memorization), []))
    return contents


def _frequencies(memorization: Memorization | RationalMemorization) -> tuple[int, ...]:
    if isinstance(memorization, Memorization):
        return memorization.frequencies
    return frequencies_of(memorization.orders, memorization.word.period)


def _named(states: Array, memorization: Memorization | RationalMemorization) -> Values:
    """Return a point for every state. States at the same point share a name.

    Names are placed outside the orbit. Names of several steps, which are wide, are placed above or below the point.
    """
    word = memorization.word
    indices: dict[tuple[float, ...], list[int]] = {}
    # Equal states differ in their last digits, so they are rounded before they are compared.
    corners = [tuple(state) for state in np.round(states, 9).tolist()]
    for step, corner in enumerate(corners):
        indices.setdefault(corner, []).append(step)
    names = {steps[0]: ",".join(str(other + 1) for other in steps[:4]) for steps in indices.values()}
    names |= {steps[0]: f"{names[steps[0]]}, ..." for steps in indices.values() if len(steps) > 4}
    out, away = (1.16, 0.0) if len(indices) == len(states) else (1.0, 0.14)
    return [
        {
            "x": float(x),
            "y": float(y),
            "lx": out * float(x),
            "ly": out * float(y) + (away if y > -1e-9 else -away),
            "step": step,
            "name": names.get(step, "") if word.period <= MAX_NAMES else "",
            "symbol": _label(word.symbols[word.letters[step]]),
            "several": len({int(word.letters[other]) for other in indices[corner]}) > 1,
        }
        for step, ((x, y), corner) in enumerate(zip(states, corners, strict=True))
    ]


def _square(symbols: Sequence[str], title: str, values: Values, regions: list[Values]) -> alt.LayerChart:
    scale = alt.Scale(domain=[-EDGE, EDGE])
    x, y = alt.X("x:Q", axis=None, scale=scale), alt.Y("y:Q", axis=None, scale=scale)
    layers: list[alt.Chart] = []
    for corners in regions:
        base = alt.Chart(alt.InlineData(values=corners))
        layers.append(
            base.mark_line(filled=True, opacity=0.22, strokeWidth=0, interpolate="linear-closed").encode(
                x=x, y=y, order="corner:Q", color=_color(symbols)
            )
        )
    path = alt.Chart(alt.InlineData(values=[*values, {**values[0], "step": len(values)}]))
    layers.append(path.mark_line(color=GRAY, strokeWidth=1).encode(x=x, y=y, order="step:Q"))
    points = alt.Chart(alt.InlineData(values=values))
    single = points.transform_filter("!datum.several").mark_point(filled=True, size=90, opacity=1)
    layers.append(single.encode(x=x, y=y, color=_color(symbols)))
    shared = points.transform_filter("datum.several").mark_point(filled=True, size=60, opacity=1, color=GRAY)
    layers.append(shared.encode(x=x, y=y))
    label_position = {"x": alt.X("lx:Q", axis=None, scale=scale), "y": alt.Y("ly:Q", axis=None, scale=scale)}
    layers.append(points.mark_text(fontSize=10, color="#444").encode(**label_position, text="name:N"))
    subtitle = "gray: different symbols share the point" if any(value["several"] for value in values) else ""
    heading = alt.Title(title, fontSize=12, subtitle=subtitle, subtitleFontSize=10, subtitleColor="#444")
    return alt.LayerChart(layer=layers, width=SIZE, height=SIZE, title=heading)


def _regions(weights: Array, bias: Array, symbols: Sequence[str]) -> list[Values]:
    """Return, for each symbol, the polygon in which it has the largest logit, by cutting half-planes off the square."""
    polygons = []
    for one, symbol in enumerate(symbols):
        corners = [(-EDGE, -EDGE), (EDGE, -EDGE), (EDGE, EDGE), (-EDGE, EDGE)]
        for other in range(len(symbols)):
            if other != one and corners:
                normal, offset = weights[one] - weights[other], float(bias[one] - bias[other])
                corners = _cut(corners, (float(normal[0]), float(normal[1])), offset)
        if corners:
            polygons.append(
                [{"x": x, "y": y, "corner": index, "symbol": _label(symbol)} for index, (x, y) in enumerate(corners)]
            )
    return polygons


Point = tuple[float, float]


def _cut(corners: list[Point], normal: Point, offset: float) -> list[Point]:
    """Return the part of a convex polygon where normal . x + offset >= 0."""
    kept: list[Point] = []
    values = [normal[0] * x + normal[1] * y + offset for x, y in corners]
    for index, (here, value) in enumerate(zip(corners, values, strict=True)):
        there, value_there = corners[(index + 1) % len(corners)], values[(index + 1) % len(corners)]
        if value >= 0:
            kept.append(here)
        if (value >= 0) != (value_there >= 0):
            share = value / (value - value_there)
            kept.append((here[0] + share * (there[0] - here[0]), here[1] + share * (there[1] - here[1])))
    return kept


def _period_chart(memorization: Memorization | RationalMemorization) -> alt.LayerChart:
    """Draw the logits of all symbols over one period, and the symbol with the largest logit at each time."""
    generator = memorization.generator
    word = memorization.word
    frequencies = _frequencies(memorization)
    p, symbols = word.period, [_label(symbol) for symbol in word.symbols]
    logits = generator.logits(generator.states(p)).astype(float)
    basis = np.c_[orbit(frequencies, p), np.ones(p)]
    coefficients = np.linalg.lstsq(basis, logits, rcond=None)[0]
    times = np.arange(-FINE // 2, p * FINE - FINE // 2 + 1) / FINE
    curves = np.c_[_between(frequencies, p, times), np.ones(len(times))] @ coefficients
    low, high = curves.min(), curves.max()
    x_scale = alt.Scale(domain=[0.5, p + 0.5], nice=False)
    named = [*range(1, p + 1, -(-p // MAX_NAMES))]
    x = alt.X("step:Q", title="step", scale=x_scale, axis=alt.Axis(grid=False, values=named, format="d"))
    bottom, top = float(low - 0.16 * (high - low)), float(low - 0.06 * (high - low))
    y_scale = alt.Scale(domain=[bottom, float(high + 0.05 * (high - low))], nice=False)
    color, layers = _color(word.symbols), []
    for index, symbol in enumerate(symbols):
        points = zip(times.tolist(), curves[:, index].tolist(), strict=True)
        values = [{"step": time + 1, "y": logit, "symbol": symbol} for time, logit in points]
        base = alt.Chart(alt.InlineData(values=values))
        layers.append(
            base.mark_line(strokeWidth=1.5).encode(x=x, y=alt.Y("y:Q", title="logit", scale=y_scale), color=color)
        )
    marks = [
        {"step": i + 1, "y": float(logits[i, letter]), "symbol": symbols[letter]}
        for i, letter in enumerate(word.letters)
    ]
    base = alt.Chart(alt.InlineData(values=marks))
    layers.append(base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y="y:Q", color=color))
    best = curves.argmax(1)
    starts = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist(), len(best) - 1]
    bands = [
        {"from": times[a] + 1, "to": times[b] + 1, "low": bottom, "high": top, "symbol": symbols[best[a]]}
        for a, b in pairwise(starts)
    ]
    band = alt.Chart(alt.InlineData(values=bands)).mark_rect()
    layers.append(
        band.encode(
            x=alt.X("from:Q", scale=x_scale), x2="to:Q", y=alt.Y("low:Q", scale=y_scale), y2="high:Q", color=color
        )
    )
    title = alt.Title("One period: logits, and which symbol is read along the orbit", fontSize=12)
    return alt.LayerChart(layer=layers, width=2 * SIZE, height=170, title=title)


def _between(frequencies: tuple[int, ...], period: int, times: Array) -> Array:
    """Return states as `orbit` does, but at any times; a frequency of half the period has only a cosine."""
    columns: list[Array] = []
    for k in frequencies:
        angles = 2 * np.pi * k * times / period
        columns += [np.cos(angles)] if 2 * k == period else [np.cos(angles), np.sin(angles)]
    return np.stack(columns, 1)


def _label(symbol: str) -> str:
    return symbol if symbol.strip() else repr(symbol)


def _color(symbols: Sequence[str]) -> alt.Color:
    names = [_label(symbol) for symbol in symbols]
    few = len(names) <= len(PALETTE)
    scale = alt.Scale(domain=names, range=PALETTE[: len(names)]) if few else alt.Scale(domain=names, scheme="turbo")
    legend = top_legend(symbolType="circle", symbolOpacity=1, columns=16)
    return alt.Color("symbol:N", title="symbol", scale=scale, legend=legend)
