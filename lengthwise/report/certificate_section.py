"""Certificates on the page about runs: verdict, machine, map of its representatives."""

from collections.abc import Mapping, Sequence

import altair as alt

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate, machine_from_json
from lengthwise.report.certificate import certificate_lines, class_names
from lengthwise.report.charts import GREY, HEIGHT, PALETTE, WIDTH
from lengthwise.report.html_page import html_definitions, html_figures, html_note, html_table
from lengthwise.report.numbers import NOTHING
from lengthwise.report.table import Table

LARGEST_TABLE = 30
"""Classes of the largest machine whose table is shown whole."""

_MAP_NOTE = (
    "Maps: one point for each representative, along the first two principal axes of all of a run's; colours are "
    "classes of the machine, each named by the shortest string that has it (the pad by a dot). What a grey point "
    "stands for no string shows."
)


def certificate_section(certificates: Mapping[str, Certificate]) -> tuple[str, dict[str, alt.Chart]]:
    """HTML about certificates, given by the names of their runs, and the charts in it by their names."""
    charts, titles = {}, {}
    for place, (run, certificate) in enumerate(certificates.items()):
        if certificate.closure is not None and certificate.closure.points:
            charts[f"map-{place}"], titles[f"map-{place}"] = map_chart(certificate), f"{run}: {certificate.level}"
    parts = [_details(run, certificate) for run, certificate in certificates.items()]
    figures = html_note(_MAP_NOTE) + html_figures(titles) if charts else ""
    return "".join(parts) + figures, charts


def map_chart(certificate: Certificate) -> alt.Chart:
    """The representatives on the plane of their first two principal axes."""
    assert certificate.closure is not None
    names = class_names(certificate)
    values = [{"x": x, "y": y, "class": names[k] if k >= 0 else NOTHING} for x, y, k in certificate.closure.points]
    shown = [*dict.fromkeys(str(value["class"]) for value in values)]
    few = len(shown) <= len(PALETTE)
    colours = [GREY if name == NOTHING else colour for name, colour in zip(shown, PALETTE, strict=False)]
    scale = alt.Scale(domain=shown, range=colours) if few else alt.Scale(domain=shown, scheme="turbo")
    legend = alt.Legend(orient="top", direction="horizontal", titleOrient="left", columns=8) if few else None
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=values), width=WIDTH, height=HEIGHT)
        .mark_circle(size=70, opacity=0.8)
        .encode(
            x=alt.X("x:Q", title="first axis", axis=alt.Axis(grid=False, tickCount=5)),
            y=alt.Y("y:Q", title="second axis", axis=alt.Axis(grid=False, tickCount=5)),
            color=alt.Color("class:N", title="class", scale=scale, legend=legend),
            tooltip=[alt.Tooltip("class:N"), alt.Tooltip("x:Q"), alt.Tooltip("y:Q")],
        )
    )
    return chart


def _details(run: str, certificate: Certificate) -> str:
    (level, claim), *rest = certificate_lines(certificate)
    table = _machine_table(certificate)
    return (
        f"<details><summary>{run}: <b>{level}</b>. {claim}</summary>{html_definitions(rest, 'pairs')}"
        f"{html_table(table) if table else ''}</details>"
    )


def _machine_table(certificate: Certificate) -> Table | None:
    """Of a machine with windows of two parts: the class of each window, and the answer of each class."""
    if certificate.machine is None:
        return None
    machine = machine_from_json(certificate.machine)
    if not isinstance(machine, TreeMachine) or machine.chunk_size != 2 or machine.num_classes > LARGEST_TABLE:
        return None
    names = class_names(certificate)

    def line(older: int) -> Sequence[str]:
        merged = (names[k] if k >= 0 else NOTHING for k in machine.table[older].tolist())
        return names[older], certificate.classes[int(machine.outputs[older])], *merged

    header = ("older \\ newer", "answer", *names)
    return Table(header, tuple(tuple(line(older)) for older in range(machine.num_classes)))
