"""The page about drifting states: the errors of answers, and the harmonics (Fourier components) of mean states."""

from collections.abc import Sequence

import altair as alt

from lengthwise.analysis.drift import DriftPoint
from lengthwise.report.charts.colors import PALETTE
from lengthwise.report.pages.study import STUDY_PAGES, StudyPage
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import percent
from lengthwise.studies.fan2024.experiments.drift import REFERENCE, NetDrift

NUM_LENGTHS = 5
"""The number of lengths in the tables, for each net."""


@STUDY_PAGES.register("linear-rnn/drift")
def drift_page(nets: Sequence[NetDrift], stem: str) -> StudyPage:
    """Return the study's page: a chart, and tables by length: how often answers are off, harmonics of mean states."""
    off, waves = [], []
    for net in nets:
        for point in _evenly_apart(net):
            off.append([net.name, str(point.length), *map(percent, point.shifts)])
            harmonics = zip(point.kept, point.turns, strict=True)
            waves.append([net.name, str(point.length), *(f"{kept:.2g}, {turn:+.2f}" for kept, turn in harmonics)])
    first = nets[0].points[0]
    sections = [
        f"## By how much answers are off\n\n![Answers by length]({stem}.svg)",
        markdown_table(["net", "symbols", *(f"+{shift}" for shift in range(len(first.shifts)))], off),
        "An entry is the fraction of strings for which the net's answer is the right remainder plus the number in "
        "the header. Answers with *+0* are right.",
        "## How the states shrink and turn",
        markdown_table(["net", "symbols", *(f"harmonic {k + 1}" for k in range(len(first.kept)))], waves),
        "States are averaged over all strings with the same remainder. As a function of the remainder, these "
        f"{len(first.shifts)} means are a sum of harmonics (a discrete Fourier series). An entry has two numbers. The "
        f"first is the harmonic's norm, divided by its norm at {REFERENCE} symbols. The second is the angle by which "
        f"the harmonic has turned too far since {REFERENCE} symbols, in remainders. For harmonic k, a whole turn is "
        f"{len(first.shifts)} / k remainders, and angles are given up to whole turns. An exact net would have 1 and 0 "
        "in all entries. The answer to a string with remainder r changes if the harmonic that decides it has turned "
        "by more than half of the angle to the closest other state. In harmonic 1, the closest states belong to r + 1 "
        "and r - 1, and this half is half a remainder. In harmonic 2, they belong to r + 3 and r + 2, and this half "
        "is a quarter of a remainder. If the norm of a harmonic is nearly 0, its angle is noise.",
    ]
    return StudyPage(sections, {f"{stem}.svg": drift_chart(nets).to_dict()})


def _evenly_apart(net: NetDrift) -> list[DriftPoint]:
    """Return about `NUM_LENGTHS` points of a net, at evenly spaced lengths that include the last length."""
    step = max(1, len(net.points) // NUM_LENGTHS)
    return net.points[::-1][::step][::-1]


def drift_chart(nets: Sequence[NetDrift]) -> alt.ConcatChart:
    """Draw a panel for each net, with a line for each error: the fraction of answers with this error, by length."""
    panels = []
    for net in nets:
        values = [
            {"symbols": point.length, "fraction": fraction, "answer": f"+{shift}"}
            for point in net.points
            for shift, fraction in enumerate(point.shifts)
        ]
        scale = alt.Scale(domain=[f"+{shift}" for shift in range(len(net.points[0].shifts))], range=list(PALETTE))
        y = alt.Y("fraction:Q", title="fraction of answers", scale=alt.Scale(domain=[0, 1]))
        color = alt.Color("answer:N", title="off by", scale=scale)
        chart = alt.Chart(alt.InlineData(values=values), width=190, height=150, title=net.name)
        panels.append(chart.mark_line(strokeWidth=1.5).encode(x="symbols:Q", y=y, color=color))
    return alt.ConcatChart(concat=panels, columns=3, config=alt.Config(background="white"))
