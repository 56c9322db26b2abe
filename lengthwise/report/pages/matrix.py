"""The page of an experiment that is a matrix: a heat map, a line for each column, published numbers, and CSV."""

from collections.abc import Sequence

from lengthwise.experiment import Experiment
from lengthwise.report.charts.heat_map import has_marks, heat_map
from lengthwise.report.pages.study import StudyPage
from lengthwise.report.tables.levels import independently_checked
from lengthwise.report.tables.markdown import folded, table_paragraphs
from lengthwise.report.tables.matrix import (
    CSV_COLUMNS,
    LOW_LOSS,
    at_longest,
    column_tables,
    cost_table,
    entries_of,
    levels_of,
    matrix_csv,
    missing,
    printed_tables,
)
from lengthwise.report.tables.numbers import span
from lengthwise.runs.pools.outcome import Outcome

_DOTS = (
    "A dot: the lowest level that all finished seeds have, proved, bounded or extracted; a cell without one has a seed "
    "that is refuted, or about which nothing is known beyond tests."
)
_OVERFLOW = (
    "*overflow*: the share of strings of these lengths on which states are no finite numbers any more, the mean over "
    "cells; all of these count as wrong. "
)
_OURS = (
    "*ours*{parts}: means over the runs that are finished, and over those of our lengths that the published test has, "
    "on the published scale."
)
_NO_DOTS = "In each cell a seed is refuted, or nothing is known beyond tests."


def _checked(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence with the number of proofs that the separate checker accepts, to follow others."""
    results = (outcome.result for outcome in outcomes)
    checked = independently_checked(result.certificate for result in results if result and result.certificate)
    return f" Proofs that the separate checker accepted: {checked}." if checked else ""


def matrix_page(experiment: Experiment, outcomes: Sequence[Outcome], stem: str) -> StudyPage:
    """Return the page: its sections, the heat map and the table of all cells; unfinished runs are counted."""
    entries = entries_of(experiment, outcomes)
    if not entries:
        return StudyPage(["No run is finished yet."], {})
    lengths, apart = span(experiment.plan.dense), experiment.plan.dense_every
    every = f", {apart} or more apart," if apart > 1 else ","
    runs = sum(entry.num_runs for entry in entries)
    complete = sum(entry.num_runs == len(entry.cell.specs) for entry in entries)
    printed = printed_tables(entries)
    parts = ", ".join(dict.fromkeys(entry.cell.part for entry in entries if entry.at_printed and entry.cell.part))
    sections = [
        f"![Accuracy by task and model]({stem}.svg)",
        f"Numbers: the mean accuracy of final answers over finished seeds and lengths {lengths}{every} in percent, "
        "cut, never rounded up. Colors begin at chance. "
        f"{_DOTS if has_marks(entries) else _NO_DOTS}{_checked(outcomes)}",
        f"{runs:,} of {len(experiment.specs):,} runs are finished, and all seeds of {complete:,} of "
        f"{len(experiment.cells):,} cells. All cells that have some, with numbers in full: [{stem}.csv]({stem}.csv).",
        folded("Columns of that file", ["\n".join(f"- {name}: {meaning}" for name, meaning in CSV_COLUMNS.items())]),
        "## What each model does",
        *(
            paragraph
            for part, table in column_tables(experiment, entries).items()
            for paragraph in (*([f"### {part.capitalize()}"] if part else []), *table_paragraphs(table.without_empty()))
        ),
        "*cells*: those that have a finished run; compare models only where these are all. *mean*: accuracy at "
        f"{lengths}, over cells. *{at_longest(experiment)}*: the same at that length. *structured*: on the family of "
        f"structured strings, which random ones never are, where it is lowest, the mean over runs and cells. "
        f"*fits*: runs whose final loss, at the lengths of training, is below {LOW_LOSS}. "
        f"*solved*: runs without an error on the random strings of {lengths} symbols, some of which are refuted by "
        f"other strings. {_OVERFLOW if any(e.overflowed for e in entries) else ''}"
        f"{', '.join(f'*{level}*' for level in levels_of(entries))}: runs with such a certificate; *error*: the "
        "symbols of the shortest strings known to be answered wrongly, the median of nets (of two in the "
        "middle the shorter one) and their range.",
        "## What it costs",
        *table_paragraphs(cost_table(experiment, entries)),
        *(["## Published numbers next to ours", _OURS.format(parts=f" ({parts})" if parts else "")] if printed else []),
        *(part for protocol, table in printed.items() for part in (protocol, *table_paragraphs(table))),
    ]
    if lacking := missing(experiment, outcomes):
        sections += ["## Not run", "\n".join(f"- {reason}: {columns}" for reason, columns in lacking)]
    return StudyPage(
        sections, {f"{stem}.svg": heat_map(experiment, entries).to_dict()}, {f"{stem}.csv": matrix_csv(entries)}
    )
