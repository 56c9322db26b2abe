"""Certificates on a run's page: the level, the machine, and a map of the prototypes of the machine's classes."""

from collections.abc import Mapping, Sequence
from html import escape

import altair as alt

from lengthwise.automata.drawing import drawing_obstacle
from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.drawing import class_names, drawing_of
from lengthwise.certification.equivalence import machine_from_json
from lengthwise.certification.parts import Closure
from lengthwise.report.charts.colors import PALETTE
from lengthwise.report.charts.curves import HEIGHT, WIDTH
from lengthwise.report.pages.html import html_definitions, html_figures, html_machine, html_note, html_table
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.report.tables.levels import level_sentences
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.report.tables.table import Table

MAX_TABLE_SIZE = 30
"""The largest number of classes or states, and of symbols, of a machine whose table is shown."""

_MAP_NOTE = (
    "Prototype maps. A point is a prototype: a state of the net that represents all states near it. The axes are the "
    "two directions along which the prototypes of a run vary most, in units of the state. The letters at a point are "
    "the name of the prototype's class in the machine. The name is the shortest string that leads to this class. (A "
    "dot in a name is the pad, which represents no symbol. The name - means that no string leads to the class.) "
    "Prototypes with the same letters are different states with the same meaning."
)


def certificate_section(certificates: Mapping[str, Certificate]) -> tuple[str, dict[str, alt.LayerChart]]:
    """Return HTML about certificates, and its charts by name. `certificates` maps names of runs to certificates."""
    if not certificates:
        return "", {}
    charts, titles = {}, {}
    parts = [html_definitions(level_sentences(certificate.level for certificate in certificates.values()), "pairs")]
    for index, (run, certificate) in enumerate(certificates.items()):
        names = class_names(certificate)
        parts.append(_details(run, certificate, names))
        if certificate.closure is not None and certificate.closure.points:
            charts[f"map-{index}"] = map_chart(certificate.closure, names)
            titles[f"map-{index}"] = f"{run}: {certificate.level}"
    if charts:
        parts += [html_note(_MAP_NOTE), html_figures(titles)]
    return "".join(parts), charts


def map_chart(closure: Closure, names: Sequence[str]) -> alt.LayerChart:
    """Draw a certificate's prototypes on the plane of their first two principal axes, with the names of classes."""
    values = [{"x": x, "y": y, "class": names[k] if k >= 0 else NOTHING} for x, y, k in closure.points]
    quoted = list(dict.fromkeys(str(value["class"]) for value in values))
    scale = alt.Scale(domain=quoted, range=[PALETTE[index % len(PALETTE)] for index in range(len(quoted))])
    axis = alt.Axis(grid=False, tickCount=5)
    base = alt.Chart(alt.InlineData(values=values), width=WIDTH, height=HEIGHT).encode(
        x=alt.X("x:Q", title="first principal component", axis=axis, scale=alt.Scale(padding=24)),
        y=alt.Y("y:Q", title="second principal component", axis=axis),
        color=alt.Color("class:N", scale=scale, legend=None),
        tooltip=[alt.Tooltip("class:N"), alt.Tooltip("x:Q"), alt.Tooltip("y:Q")],
    )
    labels = base.mark_text(align="left", dx=7, fontSize=11).encode(text="class:N")
    return alt.LayerChart(layer=[base.mark_circle(size=70, opacity=0.8), labels], width=WIDTH, height=HEIGHT)


def _details(run: str, certificate: Certificate, names: Sequence[str]) -> str:
    _, *lines = certificate_lines(certificate)  # without the level, which is explained above
    table = _machine_table(certificate, names)
    return (
        f"<details><summary>{escape(run)}: <b>{certificate.level}</b></summary>{html_definitions(lines, 'pairs')}"
        f"{_picture(certificate)}"
        f"{html_table(table) if table else ''}</details>"
    )


def _picture(certificate: Certificate) -> str:
    """Return a drawing of the machine, or the reason why it is not drawn."""
    drawing = drawing_of(certificate)
    if drawing is None:
        return ""
    if why_not := drawing_obstacle(drawing.machine):
        return html_note(f"{drawing.title.capitalize()} is not drawn: {why_not}.")
    return f"{html_note(drawing.title.capitalize() + ':')}{html_machine(drawing.machine, certificate.classes)}"


def _machine_table(certificate: Certificate, names: Sequence[str]) -> Table | None:
    """Return a table with a line for each state or class of a machine; None if the machine is missing or too large.

    A line contains the answer and the successors. A state has a successor for each symbol. In a tree machine, the
    successor is the class of a window of two parts: the older part has the class of the line, and the newer part has
    the class of the column.
    """
    if certificate.machine is None or len(names) > MAX_TABLE_SIZE:
        return None
    machine = machine_from_json(certificate.machine)
    if isinstance(machine, GridMachine):
        return None  # its table has four axes
    if isinstance(machine, TreeMachine):
        if machine.chunk_size > 2:
            return None  # its table has an axis for each part of a window
        header, table = ("older \\ newer", "answer", *names), machine.table
    elif len(machine.symbols) > MAX_TABLE_SIZE:
        return None
    else:
        header, table = ("state \\ symbol", "answer", *machine.symbols), machine.semiautomaton.table
    answers = (certificate.classes[k] if k >= 0 else NOTHING for k in machine.outputs.tolist())
    successors = ([names[k] if k >= 0 else NOTHING for k in row] for row in table.tolist())
    lines = zip(names, answers, successors, strict=True)
    return Table(header, tuple((name, answer, *row) for name, answer, row in lines))
