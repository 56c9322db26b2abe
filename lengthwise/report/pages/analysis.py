"""A self-contained HTML page about the inside of a trained net, with Figures 3 and 4a of Chi et al. (2023)."""

import math
from html import escape
from pathlib import Path

import altair as alt

from lengthwise.analysis.clusters import num_clusters
from lengthwise.analysis.overview import Analysis, analyze
from lengthwise.analysis.receptive_field import receptive_window
from lengthwise.files import check_suffix, write_by_rename
from lengthwise.report.charts.analysis import cluster_chart, element_chart, field_chart, flip_chart, level_chart
from lengthwise.report.pages.html import html_definitions, html_figures, html_note, html_page, html_table
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.settings import task_in
from lengthwise.report.tables.table import Table
from lengthwise.runs.folder import Run
from lengthwise.runs.provenance import versions


def write_analysis(run: Run, page: Path, *, length: int = 500, seed: int = 0) -> Path:
    """Analyze a run (`analyze`) and write an HTML page about it; a suffix other than .html raises a ValueError."""
    check_suffix("page", page, [".html"])
    result = analyze(run.model, run.spec.task, length=length, seed=seed)
    states = {"elements": "All levels together", "levels": "Level by level", "clusters": "Clusters against distance"}
    reach = {"field": "Cumulative gradient", "flips": "One symbol replaced"}
    on_strings = f" Strings: {len(result.inputs):,} of {result.inputs.shape[1]:,} symbols, seed {seed}."
    on_first = f" Strings: the first {len(result.cumulative):,} of these strings."
    sections = {
        "States": html_note(_states_note(result) + on_strings) + html_figures(states) + html_table(level_table(result)),
        "Receptive field": html_note(_FIELD_NOTE + on_first) + html_figures(reach) + html_table(reach_table(result)),
        "How it was computed": html_definitions(_protocol(run, result, seed).items()),
        "Versions": html_definitions(versions().items(), "pairs"),
    }
    title = f"Inside {run.spec.model_name} on {task_in(run.spec.to_json())}, seed {run.spec.seed}"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(page, html_page(title, summary(run, result), sections, analysis_charts(result)).encode())
    return page


def analysis_charts(result: Analysis) -> dict[str, alt.Chart | alt.LayerChart]:
    """Return the charts of an analysis by their names: elements, levels, clusters, field, flips."""
    return {
        "elements": element_chart(result.blocks, result.components),
        "levels": level_chart(result.blocks, result.components),
        "clusters": cluster_chart(result.levels, distance=result.distance, monoid_size=result.blocks.monoid.size),
        "field": field_chart(result.cumulative),
        "flips": flip_chart(result.flips, length=result.inputs.shape[1]),
    }


_FIELD_NOTE = (
    "Left: the share of the answer's gradient that belongs to a position and all later positions. The gradient is "
    "taken with respect to the embedding of each symbol. The line is the mean over strings, and the band contains "
    "their middle 80 %. Right: how often the net's answer changes if the symbol at a position is replaced by another, "
    "with 95 % intervals. Gray shows how often the right answer changes. A replacement shows whether a symbol matters. "
    "A gradient shows how much a small change of its embedding matters."
)


def summary(run: Run, result: Analysis) -> str:
    """Return a summary: numbers of strings, right answers, and levels whose state clusters match monoid elements."""
    num_strings, length = result.inputs.shape
    trained_to = run.spec.recipe.max_length
    one_each = sum(level.are_elements for level in result.levels)
    return (
        f"Run {run.spec.id}, trained at lengths up to {trained_to:,}, was analyzed on {num_strings:,} random strings "
        f"of {length:,} symbols. The net answers {result.num_right:,} of {result.num_graded:,} correctly. The monoid "
        f"of its task has {result.blocks.monoid.size:,} elements. At {one_each} of {len(result.levels)} levels, some "
        "clustering distance gives exactly one cluster of states for each element that occurs at the level."
    )


def _states_note(result: Analysis) -> str:
    properties = {"a group": result.blocks.monoid.is_group, "commutative": result.blocks.monoid.is_commutative}
    kind = " and ".join(name for name, holds in properties.items() if holds)
    names = result.blocks.names
    named = ", ".join(names[:8]) + (" and so on" if len(names) > 8 else "")
    return (
        "The states at all levels, projected on the two directions of largest variance. Each state belongs to a window "
        f"of the string. A window represents one of the {len(names):,} elements of the task's transition "
        f"monoid{f' ({kind})' if kind else ''}, which are named by their shortest strings: {escape(named)}. Two states "
        "of a level are in one cluster if a path over states of this level connects them in steps of at most the given "
        "distance."
    )


def level_table(result: Analysis) -> Table:
    """Return a line for each level of the tree: its clusters of states, and whether they match monoid elements."""
    header = (
        *("level", "window", "states", "elements", f"clusters at {result.distance:.3g}"),
        *("each element in one cluster from", "elements apart up to", "clusters are elements"),
    )
    lines = tuple(
        (
            str(level.level),
            f"{min(result.blocks.chunk_size**level.level, result.inputs.shape[1]):,}",
            f"{level.num_states:,}",
            f"{level.num_elements:,}",
            f"{num_clusters(level.linkage, result.distance):,}",
            f"{level.within:.3g}",
            f"{level.between:.3g}" if math.isfinite(level.between) else NOTHING,
            "yes" if level.are_elements else "no",
        )
        for level in result.levels
    )
    return Table(header, lines)


def reach_table(result: Analysis) -> Table:
    """Return a table: how far back the gradient of answers reaches, and how often a replaced symbol changes answers."""
    length = result.inputs.shape[1]
    windows = receptive_window(result.cumulative)
    columns = [
        ("strings", f"{len(windows):,}"),
        ("symbols with 99 % of gradient", f"{float(windows.double().mean()):,.1f}"),
        ("minimum", f"{int(windows.min()):,}"),
        ("maximum", f"{int(windows.max()):,}"),
        ("gradient on newer half", percent(float(result.cumulative[:, length // 2].mean()))),
    ]
    if result.flips:
        pairs = sum(point.num_strings for point in result.flips)
        columns += [
            ("replacements", f"{pairs:,}"),
            ("changed", percent(sum(point.num_changed for point in result.flips) / pairs)),
            ("should change", percent(sum(point.num_expected for point in result.flips) / pairs)),
        ]
    header, line = zip(*columns, strict=True)
    return Table(header, (line,))


def _protocol(run: Run, result: Analysis, seed: int) -> dict[str, str]:
    num_strings, length = result.inputs.shape
    maximum = max(level.num_states for level in result.levels)
    return {
        "Strings": f"{num_strings:,} strings of {length:,} symbols as {run.spec.task.name} draws them, seed {seed}.",
        "States": (
            "States of the tree that answers the whole string, which has ceil(log_C T) levels; at most "
            f"{maximum:,} states of each level, drawn at random. Weights: after step {run.steps_done:,}."
        ),
        "Clusters": (
            "Single linkage by Euclidean distance within a level. Clusters are counted at distance "
            f"{result.distance:.3g}, an eighth of the states' root mean square norm. Two distances matter: the "
            "smallest at which every element is in one cluster, and the smallest between states of two elements. "
            "Between these, clusters correspond one to one to elements."
        ),
        "Gradient": (
            "Norm of the gradient of the right answer's log-odds at the last position with respect to each embedding, "
            f"in float64, on the first {len(result.cumulative):,} strings. The gradient of cross-entropy differs by a "
            "factor for each string, and the shares do not depend on this factor."
        ),
        "Replacements": (
            "In the same strings, one symbol at a time is replaced by another, drawn uniformly, at "
            f"{len(result.flips):,} positions. A replacement counts only if both strings have a right answer."
        ),
    }
