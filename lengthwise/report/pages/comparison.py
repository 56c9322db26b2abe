"""The page of models compared on a task: self-contained HTML, or Markdown, with pictures and a CSV file next to it."""

from collections.abc import Sequence
from pathlib import Path

from lengthwise.display import literal
from lengthwise.files import check_suffix
from lengthwise.report.charts.curves import comparison_chart, side_by_side
from lengthwise.report.pages.certificate import certificate_section
from lengthwise.report.pages.html import html_definitions, html_figures, html_note, html_page, html_table
from lengthwise.report.pages.neighbors import links, write_with_neighbors
from lengthwise.report.tables.compared import (
    COLUMNS,
    Comparison,
    differing_settings,
    model_difference_table,
    model_differences,
    model_table,
)
from lengthwise.report.tables.differences import multiplicity
from lengthwise.report.tables.levels import level_sentences
from lengthwise.report.tables.markdown import definitions, folded, table_paragraphs
from lengthwise.report.tables.numbers import span
from lengthwise.report.tables.protocol import protocol_sentences
from lengthwise.report.tables.runs import as_csv, run_rows
from lengthwise.report.tables.settings import versions_of
from lengthwise.report.tables.shallow_baselines import shallow_baseline_sentences
from lengthwise.report.tables.table import is_length

_DIFFERENCES = (
    "Entries are the accuracy of the first model minus the accuracy of the second, in percentage points. Difference: "
    "the mean over seeds. With each seed, both models are measured on the same strings. 95 % interval: Student's "
    "interval for the mean over new seeds, not corrected for the number of intervals. Better: the better model, if the "
    'interval excludes 0 ("-": the interval contains 0, or the seeds are too few for an interval). p, Holm: the '
    "p-value of Student's test, corrected for the number of differences by Holm's method."
)
_CHART = (
    "Lines show the mean over seeds in the dense range. Bands and vertical lines reach from the lowest seed to the "
    "highest. Diamonds show the single lengths. The axis shows 0 to 100 %; the tables also show small differences. "
    "Only lengths at which every class can occur are shown. "
)


PAGES = (".html", ".md")
"""The suffixes of pages."""


def write_comparison(comparison: Comparison, page: Path) -> list[Path]:
    """Write a page that compares models and, next to it, a chart (PNG, SVG) and all accuracies (CSV); return the paths.

    Raises:
        ValueError: the page is named neither .html nor .md.
    """
    check_suffix("page", page, PAGES)
    specification = side_by_side({comparison.task: _chart(comparison, hover=False)}).to_dict()
    charts = {"-accuracy.png": specification, "-accuracy.svg": specification}
    write = _html if page.suffix == ".html" else _markdown
    return write_with_neighbors(
        page, charts, as_csv(comparison.results), lambda neighbors: write(comparison, neighbors)
    )


def _chart(comparison: Comparison, *, hover: bool):  # type: ignore[no-untyped-def]  # altair's own union
    trained_to = sorted({int(result.spec["train"]["max_length"]) for result in comparison.results})
    return comparison_chart({model.name: model.rows for model in comparison.models}, trained_to=trained_to, hover=hover)


def _title(comparison: Comparison) -> tuple[str, str]:
    names = ", ".join(model.name for model in comparison.models)
    seeds = ", ".join(map(str, comparison.seeds))
    trained = span([result.spec["train"][key] for result in comparison.results for key in ("min_length", "max_length")])
    return (
        f"Models compared on {comparison.task}",
        f"{names}, each with seeds {seeds}, trained at lengths {trained} and measured by the same plan.",
    )


def _about(comparison: Comparison) -> list[tuple[str, str]]:
    header = model_table(comparison).header
    long = ", ".join(filter(is_length, header))
    return [
        *((name, COLUMNS[name]) for name in header if name in COLUMNS),
        *([(long, "the lowest accuracy of any seed at that length")] if long else []),
        *level_sentences(row.level for model in comparison.models for row in model.rows),
    ]


def _measured(comparison: Comparison) -> list[tuple[str, str]]:
    results = comparison.results
    return [
        *protocol_sentences(results, run_rows(results)),
        *(("Best shallow baseline", sentence) for sentence in shallow_baseline_sentences(results)),
        *(("Left out", f"{run_id}, because another model lacks its seed.") for run_id in comparison.left_out),
        *((name, " and ".join(values)) for name, values in versions_of(results)),
    ]


def _html(comparison: Comparison, neighbors: Sequence[str]) -> str:
    compared = model_differences(comparison)
    certified, maps = certificate_section(
        {
            f"{model.name}, seed {seed}": result.certificate
            for model in comparison.models
            for seed, result in zip(comparison.seeds, model.results, strict=True)
            if result.certificate is not None
        }
    )
    settings = html_table(differing_settings(comparison))
    sections = {
        "Models": html_table(model_table(comparison)) + html_definitions(_about(comparison), "pairs"),
        "Accuracy against length": html_note(_CHART + links(neighbors, ""))
        + html_figures({"accuracy": comparison.task}),
        "Differences, paired by seed": html_note(" ".join([_DIFFERENCES, *multiplicity(compared)]))
        + html_table(model_difference_table(compared)),
        **({"Certificates": certified} if certified else {}),
        "Settings in which they differ": f"<details><summary>All of them</summary>{settings}</details>",
        "How it was measured": html_definitions(_measured(comparison)),
    }
    charts = {"accuracy": _chart(comparison, hover=True), **maps}
    return html_page(*_title(comparison), sections, charts)


def _markdown(comparison: Comparison, neighbors: Sequence[str]) -> str:
    compared = model_differences(comparison)
    title, summary = map(literal, _title(comparison))
    measured = ((literal(name), literal(text)) for name, text in _measured(comparison))
    picture = next((name for name in neighbors if name.endswith(".svg")), None)
    parts = [
        f"# {title}",
        summary,
        *table_paragraphs(model_table(comparison)),
        definitions(_about(comparison)),
        *([f"![Accuracy against length]({picture})", _CHART.strip()] if picture else []),
        "## Differences, paired by seed",
        " ".join([_DIFFERENCES, *multiplicity(compared)]),
        *table_paragraphs(model_difference_table(compared)),
        folded("Settings in which they differ", table_paragraphs(differing_settings(comparison))),
        folded("How it was measured", [definitions(measured)]),
    ]
    return "\n\n".join(parts) + "\n"
