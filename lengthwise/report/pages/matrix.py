"""The page of an experiment that is a matrix: a heat map, a line for each column, published numbers and a CSV file."""

from collections.abc import Sequence

from lengthwise.display import capitalized
from lengthwise.experiment import Experiment
from lengthwise.report.charts.heat_map import has_marks, heat_map
from lengthwise.report.pages.study import StudyPage
from lengthwise.report.tables.levels import checker_sentences, level_sentences
from lengthwise.report.tables.markdown import definitions, folded, table_paragraphs
from lengthwise.report.tables.matrix import (
    CSV_COLUMNS,
    LOW_LOSS,
    Entry,
    at_length,
    column_tables,
    cost_table,
    entries_of,
    levels_of,
    long_lengths,
    matrix_csv,
    missing,
    printed_tables,
)
from lengthwise.report.tables.numbers import span
from lengthwise.runs.pools.outcome import Outcome

_DOTS = (
    "A dot shows the weakest level among the certificates of the finished seeds. In a cell without a dot, the net of "
    "at least one seed is refuted or only tested."
)
_OVERFLOW = (
    "the share of strings on which states become infinite or NaN, at lengths {lengths}, averaged over cells. The "
    "answers to such strings count as wrong"
)
_OURS = (
    "*ours*{parts}: means over the finished runs, on the published scale. Each mean uses only the lengths that also "
    "occur in the published test."
)
_STRUCTURED = (
    "the lowest accuracy on any family of structured strings, averaged over runs and cells. Structured strings, such "
    "as constant or periodic strings, are hardly ever drawn by random sampling"
)
_NO_DOTS = "In each cell, the net of at least one seed is refuted or only tested."


def _checked(outcomes: Sequence[Outcome]) -> str:
    """Return `checker_sentences` of all certificates, with a blank in front if the text is not empty."""
    results = (outcome.result for outcome in outcomes)
    checked = checker_sentences(result.certificate for result in results if result and result.certificate)
    return f" {checked}" if checked else ""


def _fewer(experiment: Experiment) -> str:
    """Return a remark if some cells are scored at fewer lengths than the experiment measures."""
    is_less = any(cell.window not in (None, experiment.plan.dense) for cell in experiment.cells)
    return " (for some tasks, only some of these lengths)" if is_less else ""


def _about_scores(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, str]:
    """Return the meaning of each column, for the tables that have a line for each model."""
    lengths, fewer = span(experiment.plan.dense), _fewer(experiment)
    levels = level_sentences(levels_of(entries))
    return {
        "cells": (
            "a cell is a model on a task, and the entry counts the cells with a finished run. Compare only models with "
            "a finished run in every cell"
        ),
        "mean": f"accuracy at lengths {lengths}{fewer}, averaged over cells",
        ", ".join(map(at_length, long_lengths(experiment))): "accuracy at that length, averaged over cells",
        **({"structured": _STRUCTURED} if experiment.plan.structured else {}),
        "fits": f"runs whose final loss, at the lengths of training, is below {LOW_LOSS}",
        "solved": (
            f"runs without an error on the random strings of {lengths} symbols{fewer}; other strings may refute them"
        ),
        **({"overflow": _OVERFLOW.format(lengths=lengths)} if any(entry.overflowed for entry in entries) else {}),
        **{level: f"runs with this level of certificate: {what}" for level, what in levels},
        "error": (
            "the number of symbols of the shortest string that a net is known to answer wrongly. The entry is the "
            "median over nets (for an even number of nets, the smaller of the two middle values), with the range in "
            "brackets"
        ),
    }


def matrix_page(experiment: Experiment, outcomes: Sequence[Outcome], stem: str) -> StudyPage:
    """Return the page of an experiment that is a matrix: its sections, the heat map, and a CSV file of all cells."""
    entries = entries_of(experiment, outcomes)
    if not entries:
        return StudyPage(["The experiment has no finished run yet."], {})
    lengths, apart = span(experiment.plan.dense), experiment.plan.dense_every
    every = f", with gaps of at least {apart} between them" if apart > 1 else ""
    runs = sum(entry.num_runs for entry in entries)
    complete = sum(entry.num_runs == len(entry.cell.specs) for entry in entries)
    printed = printed_tables(entries)
    parts = ", ".join(dict.fromkeys(entry.cell.part for entry in entries if entry.at_printed and entry.cell.part))
    sections = [
        f"![Accuracy by task and model]({stem}.svg)",
        "## What each model does",
        *(
            paragraph
            for part, table in column_tables(experiment, entries).items()
            for paragraph in (*([f"### {capitalized(part)}"] if part else []), *table_paragraphs(table.without_empty()))
        ),
        definitions(_about_scores(experiment, entries).items()),
        "A number in the picture is the mean accuracy of final answers, in percent and rounded down. The mean is "
        f"over finished seeds and over the lengths {lengths}{every}{_fewer(experiment)}. The colors begin at the "
        f"accuracy of the best constant answer. {_DOTS if has_marks(entries) else _NO_DOTS}{_checked(outcomes)}",
        f"{runs:,} of {len(experiment.specs):,} runs are finished. All seeds are finished in "
        f"{complete:,} of {len(experiment.cells):,} cells. [{stem}.csv]({stem}.csv) contains the numbers of all "
        "finished cells in full precision.",
        folded("Columns of that file", [definitions(CSV_COLUMNS.items())]),
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
