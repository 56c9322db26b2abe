"""The self-contained HTML page around a report's sections, and the parts of sections."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

import altair as alt

from lengthwise.automata.drawing import machine_svg
from lengthwise.automata.transducer import Transducer
from lengthwise.pictures import chart_library
from lengthwise.report.tables.table import Table


def html_page(
    title: str, summary: str, sections: Mapping[str, str], charts: Mapping[str, alt.Chart | alt.LayerChart]
) -> str:
    """Return an HTML page; `sections` maps headings to HTML.

    Each chart is drawn into the element whose id is the chart's name. The page contains its style, its charts and the
    library that draws the charts, and loads nothing from the network.
    """
    return Template(files("lengthwise.report.pages").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        summary=escape(summary),
        sections="\n\n".join(f"<h2>{escape(heading)}</h2>\n{content}" for heading, content in sections.items()),
        scripts=_scripts(charts),
    )


def _scripts(charts: Mapping[str, alt.Chart | alt.LayerChart]) -> str:
    """Return scripts with the chart library and the charts, or a note if the library is missing."""
    if not charts:
        return ""
    library = chart_library()
    if library is None:
        return html_note("The charts are missing: the chart library could not be started when this page was written.")
    draw = Template(files("lengthwise.report.pages").joinpath("charts.js").read_text(encoding="utf-8"))
    return f"<script>{library}</script>\n<script>\n{draw.substitute(charts=_specifications(charts))}</script>"


def html_note(text: str) -> str:
    """Return a paragraph in small print; `text` is HTML."""
    return f"<p class='note'>{text}</p>"


def html_figures(titles: Mapping[str, str]) -> str:
    """Return HTML with a place for each chart. The places are side by side if the page is wide enough.

    `titles` maps the names of charts to their titles.
    """
    figures = (
        f"<div><h3>{escape(title)}</h3><div class='chart' id='{name}'></div></div>" for name, title in titles.items()
    )
    return f"<div class='panels'>{''.join(figures)}</div>"


def html_table(table: Table) -> str:
    """Return the table, and below it a note with the columns that have the same text in all rows."""
    return f"<div class='scroll'>{table.to_html()}</div>{html_note(table.note) if table.note else ''}"


def html_machine(machine: Transducer, classes: Sequence[str]) -> str:
    """Return a drawing of a machine as HTML (`machine_svg`); the style of the page sets its colors."""
    return f"<div class='scroll'>{machine_svg(machine, classes)}</div>"


def html_definitions(pairs: Iterable[tuple[str, str]], style: str = "prose") -> str:
    """Return terms and their definitions as HTML; with style `"pairs"`, each term shares a line with its definition."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f"<dl class='{style}'>{items}</dl>"


def _specifications(charts: Mapping[str, alt.Chart | alt.LayerChart]) -> str:
    """Return the charts as JSON, under the ids of their elements. No string in the JSON can end the script element."""
    content = {name: chart.to_dict() | {"width": "container"} for name, chart in charts.items()}
    # A "<" in a task's symbol could otherwise end the script element.
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
