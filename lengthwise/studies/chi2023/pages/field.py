"""The page about the receptive fields of language models: Figure 4b of Chi et al. (2023)."""

import math
from collections.abc import Sequence

import altair as alt
import torch

from lengthwise.analysis.receptive_field import receptive_window
from lengthwise.analysis.text_field import TextField
from lengthwise.evaluation.interval import mean_interval
from lengthwise.report.charts.colors import GRAY, color_by
from lengthwise.report.charts.curves import log_ticks
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import percent
from lengthwise.studies.chi2023.experiments.field import NetField
from lengthwise.studies.text import TRAINED_AT

SHARES = (0.5, 0.9, 0.99)
POINTS = 100
"""The number of distances at which a curve is drawn, evenly spaced on the logarithmic axis."""


@STUDY_PAGES.register("regular-gpt/receptive-field")
def text_field_page(nets: Sequence[NetField], stem: str) -> StudyPage:
    """Return the study's page: how many newest tokens hold 50, 90 and 99 % of a gradient, by net and length."""
    header = ["net", "tokens", *(f"with {100 * share:g} %" for share in SHARES), f"in the last {TRAINED_AT - 1}"]
    lines = [_line(net.column, field) for net in nets for field in net.fields]
    sections = [
        f"## How far gradients reach\n\n![Share of the gradient by distance]({stem}.svg)",
        markdown_table(header, lines),
        "*With 50 %*: the smallest number of newest tokens that hold more than half of the gradient, averaged over "
        "chunks. In brackets is Student's 95 % interval, which accounts for the choice of chunks. If every token were "
        "equally important, 50, 90 and 99 % of the tokens would hold 50, 90 and 99 % of the gradient. *In the last "
        f"{TRAINED_AT - 1}*: the share of the gradient in the newest {TRAINED_AT - 1} tokens. A training window has "
        f"{TRAINED_AT - 1} tokens before the predicted token. The dashed line in the chart marks this number.",
    ]
    return StudyPage(sections, {f"{stem}.svg": text_field_chart(nets).to_dict()})


def _line(name: str, field: TextField) -> list[str]:
    windows = [receptive_window(field.cumulative, share).tolist() for share in SHARES]
    recent = field.cumulative[:, -min(TRAINED_AT - 1, field.length - 1)].mean()
    return [name, f"{field.length:,}", *map(_mean, windows), percent(float(recent))]


def _mean(windows: list[int]) -> str:
    low, high = mean_interval(windows)
    interval = "" if math.isnan(low) else f" ({low:,.0f} to {high:,.0f})"
    return f"{sum(windows) / len(windows):,.0f}{interval}"


def text_field_chart(nets: Sequence[NetField]) -> alt.ConcatChart:
    """Draw a panel for each net: the mean share of the gradient in the newest n tokens, against n."""
    longest = max(field.length for net in nets for field in net.fields)
    lengths = [f"{field.length:,} tokens" for field in nets[0].fields]
    ticks = alt.Axis(values=log_ticks(1, longest), format=",d", labelOverlap=True)
    x = alt.X("newest:Q", title="newest tokens", scale=alt.Scale(type="log", domain=[1, longest]), axis=ticks)
    y = alt.Y("share:Q", title="share of the gradient", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    color = color_by("chunks", lengths, sort=lengths, legend=alt.Legend(orient="top"))
    panels = []
    for net in nets:
        values = [value for field, name in zip(net.fields, lengths, strict=True) for value in _curve(field, name)]
        lines = alt.Chart(alt.InlineData(values=values)).mark_line(strokeWidth=1.5).encode(x=x, y=y, color=color)
        trained = alt.Chart(alt.InlineData(values=[{"newest": TRAINED_AT - 1}]))
        rule = trained.mark_rule(clip=True, color=GRAY, strokeDash=[4, 3]).encode(x=x)
        panels.append(alt.LayerChart(layer=[lines, rule], width=260, height=200, title=net.column))
    return alt.ConcatChart(concat=panels, columns=2, config=alt.Config(background="white"))


def _curve(field: TextField, name: str) -> list[dict[str, str | float]]:
    """Return the mean share of the gradient in the newest tokens, for logarithmically spaced numbers of tokens."""
    num_read = field.length - 1
    newest = torch.logspace(0, torch.tensor(float(num_read)).log10().item(), POINTS).round().long().unique()
    shares = field.cumulative.mean(0)[num_read - newest]
    return [
        {"newest": count, "share": round(share, 4), "chunks": name}
        for count, share in zip(newest.tolist(), shares.tolist(), strict=True)
    ]
