"""The self-contained HTML page around a report's sections, and the pieces that sections are made of."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import altair as alt

from lengthwise.automata.drawing import machine_svg
from lengthwise.automata.transducer import Transducer
from lengthwise.report.charts.pictures import chart_library
from lengthwise.report.tables.table import Table


def html_page(
    title: str, summary: str, sections: Mapping[str, str], charts: Mapping[str, alt.Chart | alt.LayerChart]
) -> str:
    """The page: sections are HTML by their headings, charts are drawn into the elements that have their names as ids.

    It loads nothing from outside: style, charts and the library that draws them are in it.
    """
    return Template(files("lengthwise.report.pages").joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        summary=escape(summary),
        sections="\n\n".join(f"<h2>{escape(heading)}</h2>\n{content}" for heading, content in sections.items()),
        scripts=_scripts(charts),
    )


def _scripts(charts: Mapping[str, alt.Chart | alt.LayerChart]) -> str:
    """The chart library, the charts and what draws them; nothing without charts, a sentence without a library."""
    if not charts:
        return ""
    library = chart_library()
    if library is None:
        return html_note("The charts are missing: the chart library could not be started when this page was written.")
    draw = Template(files("lengthwise.report.pages").joinpath("charts.js").read_text(encoding="utf-8"))
    return f"<script>{library}</script>\n<script>\n{draw.substitute(charts=_specifications(charts))}</script>"


def check_page(page: Path) -> None:
    """Raise a ValueError unless `page` is named as an HTML file."""
    if page.suffix != ".html":
        raise ValueError(f"page: expected a name that ends in .html, got {page.name!r}")


def html_note(text: str) -> str:
    """A paragraph in small print; `text` is HTML."""
    return f"<p class='note'>{text}</p>"


def html_figures(titles: Mapping[str, str]) -> str:
    """Elements for charts, side by side where they fit: a title for each chart's name."""
    figures = (
        f"<div><h3>{escape(title)}</h3><div class='chart' id='{name}'></div></div>" for name, title in titles.items()
    )
    return f"<div class='panels'>{''.join(figures)}</div>"


def html_table(table: Table) -> str:
    """The table, and what all its rows share in a note below it."""
    return f"<div class='scroll'>{table.to_html()}</div>{html_note(table.note) if table.note else ''}"


def html_machine(machine: Transducer, classes: Sequence[str]) -> str:
    """A drawing of a machine (`machine_svg`), which the page colors."""
    return f"<div class='scroll'>{machine_svg(machine, classes)}</div>"


def html_definitions(pairs: Iterable[tuple[str, str]], style: str = "prose") -> str:
    """Terms and what they mean; under style `"pairs"` each on one line."""
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs)
    return f"<dl class='{style}'>{items}</dl>"


def _specifications(charts: Mapping[str, alt.Chart | alt.LayerChart]) -> str:
    """Charts by the id of their element, as JSON that may stand in a script whatever its strings say."""
    content = {name: chart.properties(width="container").to_dict() for name, chart in charts.items()}
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
