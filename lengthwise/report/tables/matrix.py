"""Experiments that are a matrix: numbers of each cell, a line for each column, and all numbers as CSV."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median_low
from typing import NamedTuple

from lengthwise.display import csv_text
from lengthwise.experiment import Cell, Experiment, Printed
from lengthwise.report.tables.cells import accuracies_scored, long_accuracies, results_of
from lengthwise.report.tables.levels import LEVELS
from lengthwise.report.tables.numbers import NOTHING, percent, span
from lengthwise.report.tables.sources import COLUMNS as SOURCE_COLUMNS
from lengthwise.report.tables.sources import commits_text, seeds_text
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

LOW_LOSS = 0.01
"""A run with a final training loss below this value counts as fitting its training lengths."""


class Entry(NamedTuple):
    """A `Cell` with the results of its runs, and the statistics of these results.

    `at_long`: the mean accuracy at each of the plan's long lengths, shortest first; NaN if the task has no strings of
    this length. `structured`: the lowest accuracy on any family and length of structured strings, averaged over runs.
    `chance`: the mean score of the best constant answer. `solved`: the number of runs without an error at any scored
    length. `overflowed`: the share of strings on which states overflow. `at_printed`: for each number that a paper
    prints, our mean at the paper's lengths, on the paper's scale.
    """

    cell: Cell
    results: Sequence[RunResult]
    mean: float
    lowest: float
    at_long: tuple[float, ...]
    lowest_at_longest: float
    structured: float
    solved: int
    overflowed: float
    at_printed: tuple[str, ...]
    chance: float

    @property
    def num_runs(self) -> int:
        """The number of runs with a result."""
        return len(self.results)

    @property
    def fits(self) -> int:
        """The number of runs whose final training loss is below `LOW_LOSS`."""
        return sum(result.final_loss is not None and result.final_loss < LOW_LOSS for result in self.results)

    @property
    def levels(self) -> Counter[str]:
        """The number of certificates of each level."""
        return Counter(result.certificate.level for result in self.results if result.certificate)

    @property
    def errors(self) -> list[int]:
        """The lengths of the counterexamples in certificates, in the order of the runs."""
        certificates = [result.certificate for result in self.results if result.certificate]
        return [len(named.counterexample.string) for named in certificates if named.counterexample]

    @property
    def steps(self) -> int:
        """The number of training steps of the longest run."""
        return max(result.training.step for result in self.results)

    @property
    def parameters(self) -> int:
        """The number of parameters of the net of the cell's first run with a result."""
        return self.results[0].num_parameters

    @property
    def cpu_seconds(self) -> float:
        """The CPU seconds of training, summed over runs."""
        return sum(result.training.cpu_seconds for result in self.results)

    @property
    def at_longest(self) -> float:
        """The mean accuracy at the plan's longest length; NaN if the plan has no long lengths."""
        return self.at_long[-1] if self.at_long else math.nan

    @property
    def level(self) -> str:
        """The lowest certificate level among the runs with a result, or "" if one of these runs has no certificate."""
        names = list(LEVELS)
        return max(self.levels, key=names.index) if self.levels.total() == self.num_runs else ""


def entries_of(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Entry]:
    """Return an `Entry` for each cell with results, in the experiment's order."""
    lengths, entries = long_lengths(experiment), []
    for cell in experiment.cells:
        if not (results := results_of(cell, outcomes)):
            continue
        curves = [accuracies_scored(result, cell, experiment) for result in results]
        at_long = [long_accuracies(results, length) or [math.nan] for length in lengths]
        structured = [result.structured.min() for result in results if result.structured.points] or [math.nan]
        points = [point for curve in curves for point in curve.points]
        entries.append(
            Entry(
                cell=cell,
                results=results,
                mean=sum(curve.mean() for curve in curves) / len(curves),
                lowest=min(curve.min() for curve in curves),
                at_long=tuple(fmean(accuracies) for accuracies in at_long),
                lowest_at_longest=min(at_long[-1]) if at_long else math.nan,
                structured=fmean(structured),
                solved=sum(curve.min() == 1.0 for curve in curves),
                overflowed=sum(point.num_overflowed for point in points) / max(1, sum(p.num_strings for p in points)),
                at_printed=tuple(_ours(printed, results, cell, experiment) for printed in _printed(cell)),
                chance=sum(point.baseline for point in points) / len(points) if points else math.nan,
            )
        )
    return entries


def _printed(cell: Cell) -> tuple[Printed, ...]:
    """Return the numbers that papers print for a cell: its entries, or its single published number."""
    return cell.printed or ((Printed(cell.published, "As the paper prints it."),) if cell.published else ())


def _ours(printed: Printed, results: Sequence[RunResult], cell: Cell, experiment: Experiment) -> str:
    """Return our mean at the lengths of a printed number, on the scale of that number."""
    at_window = cell._replace(window=printed.window or cell.window)
    curves = [accuracies_scored(result, at_window, experiment) for result in results]
    if not all(curve.points for curve in curves):  # at scale smoke, the paper's lengths are not measured
        return NOTHING
    mean = fmean(curve.mean() for curve in curves)
    if not printed.is_above_chance:
        return percent(mean)
    chance = fmean(point.baseline for curve in curves for point in curve.points)
    return f"{math.floor(1000 * (mean - chance) / (1 - chance)) / 1000:.3f}"


def column_tables(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, Table]:
    """Return a table for each part of an experiment, with a line of scores for each model with results."""
    tables = {}
    for part in dict.fromkeys(cell.part for cell in experiment.cells):
        cells = Counter(cell.column for cell in experiment.cells if cell.part == part)
        by_column = _by_column(experiment, [entry for entry in entries if entry.cell.part == part])
        scores = {column: _scores(experiment, own, cells[column]) for column, own in by_column.items()}
        if scores:
            absent = LEVELS.keys() - set(levels_of(entries))
            header = [name for name in next(iter(scores.values())) if name not in absent]
            lines = tuple((column, *(own[name] for name in header)) for column, own in scores.items())
            tables[part] = Table(("model", *header), lines)
    return tables


def cost_table(experiment: Experiment, entries: Sequence[Entry]) -> Table:
    """Return a line for each model with results: its number of parameters, its learning rates, and its cost."""
    lines = []
    for column, own in _by_column(experiment, entries).items():
        seconds = sum(entry.cpu_seconds for entry in own) / sum(entry.num_runs for entry in own)
        optimizers = [spec.recipe.optimizer for entry in own for spec in entry.cell.specs]
        rates = {f"{optimizer.learning_rate:g}" for optimizer in optimizers if not optimizer.counts_outcomes}
        rate = ", ".join(sorted(rates)) or NOTHING
        lines.append((column, span([entry.parameters for entry in own]), rate, f"{seconds:.0f}"))
    return Table(("model", "parameters", "learning rate", "CPU s a run"), tuple(lines))


def _by_column(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """Return the entries of each column that has entries; columns are in the experiment's order."""
    columns = dict.fromkeys(cell.column for cell in experiment.cells)
    by_column = {column: [entry for entry in entries if entry.cell.column == column] for column in columns}
    return {column: own for column, own in by_column.items() if own}


def _scores(experiment: Experiment, own: Sequence[Entry], total: int) -> dict[str, str]:
    """Return the scores of a model (a column of the experiment), by the names of the table's columns."""
    overflowed = fmean(entry.overflowed for entry in own)
    errors = [length for entry in own for length in entry.errors]
    return {
        "cells": f"{len(own)} of {total}",
        "runs": str(sum(entry.num_runs for entry in own)),
        "mean": percent(fmean(entry.mean for entry in own)),
        **{
            at_length(length): _mean([entry.at_long[index] for entry in own])
            for index, length in enumerate(long_lengths(experiment))
        },
        "structured": _mean([entry.structured for entry in own]),
        "fits": str(sum(entry.fits for entry in own)),
        "solved": str(sum(entry.solved for entry in own)),
        "overflow": percent(overflowed) if overflowed else NOTHING,
        **{level: str(sum(entry.levels[level] for entry in own)) for level in LEVELS},
        "error": f"{median_low(errors):,} ({span(errors)})" if errors else NOTHING,
    }


def levels_of(entries: Sequence[Entry]) -> list[str]:
    """Return the levels that at least one certificate has, highest first."""
    return [level for level in LEVELS if any(entry.levels[level] for entry in entries)]


def long_lengths(experiment: Experiment) -> list[int]:
    """Return the plan's long lengths, shortest first."""
    return sorted(length for length, _ in experiment.plan.long)


def at_length(length: int) -> str:
    """Return the name of the column with the accuracy at a long length."""
    return f"at {length:,}"


def _mean(values: Iterable[float]) -> str:
    """Return the mean of the values that are not NaN, in percent; "-" if all values are NaN."""
    numbers = [value for value in values if not math.isnan(value)]
    return percent(fmean(numbers)) if numbers else NOTHING


def printed_tables(entries: Sequence[Entry]) -> dict[str, Table]:
    """Return a table for each protocol: the numbers that papers print for this protocol, and our numbers."""
    lines: dict[str, list[tuple[str, ...]]] = {}
    for entry in entries:
        for printed, ours in zip(_printed(entry.cell), entry.at_printed, strict=True):
            line = (entry.cell.row, entry.cell.column, str(entry.num_runs), ours, printed.entry)
            lines.setdefault(printed.protocol, []).append(line)
    header = ("row", "model", "runs", "ours", "published")
    return {protocol: Table(header, tuple(own)) for protocol, own in lines.items()}


_AT_STEP = re.compile(r" at step [\d,]+")


def missing(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Return each reason why runs have no result, with the number of affected runs by column."""
    columns = {spec.id: cell.column for cell in experiment.cells for spec in cell.specs}
    reasons: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        if outcome.result is None:
            # The step is left out, so that all diverged runs share one reason.
            reason = _AT_STEP.sub("", outcome.reason)
            reasons.setdefault(reason, Counter())[columns[outcome.spec.id]] += 1
    return [
        (reason, ", ".join(f"{column} ({count})" for column, count in counts.items()))
        for reason, counts in reasons.items()
    ]


def matrix_csv(entries: Iterable[Entry]) -> str:
    """Return CSV text with a line for each `Entry`; scores have six decimals."""
    lines = [_csv_line(entry) for entry in entries]
    return csv_text([*lines[:1], *(line.values() for line in lines)])


CSV_COLUMNS = {
    "part": "the part of the experiment, such as all runs with the same supervision; empty if there is only one part",
    "row": "the task",
    "column": "the model",
    "runs": "the number of finished runs, on which all other columns are based",
    "mean": "accuracy, averaged over runs and scored lengths",
    "lowest": "the lowest accuracy of any run at any scored length",
    "at_longest": "accuracy at the longest length, averaged over runs",
    "lowest_at_longest": "the lowest accuracy of any run at the longest length",
    "structured": "the lowest accuracy on any family of structured strings, averaged over runs",
    "fits": f"runs whose final training loss is below {LOW_LOSS}",
    "solved": "runs without an error at any scored length",
    "overflowed": "the share of strings on which states become infinite or NaN, at scored lengths",
    "chance": "accuracy of the best constant answer, averaged over scored lengths",
    **{level: f"the number of runs with a certificate of level {level}" for level in LEVELS},
    "errors": "the length of each refuting string in symbols, by seed",
    "steps": "training steps",
    "parameters": "the number of the net's parameters",
    "cpu_seconds_a_run": "CPU seconds of training, averaged over runs",
    "published": "numbers that papers report, with their protocols",
    **SOURCE_COLUMNS,
}
"""The meaning of each column of the CSV file."""


def _csv_line(entry: Entry) -> dict[str, str | int]:
    return {
        "part": entry.cell.part,
        "row": entry.cell.row,
        "column": entry.cell.column,
        "runs": entry.num_runs,
        "mean": f"{entry.mean:.6f}",
        "lowest": f"{entry.lowest:.6f}",
        "at_longest": f"{entry.at_longest:.6f}",
        "lowest_at_longest": f"{entry.lowest_at_longest:.6f}",
        "structured": f"{entry.structured:.6f}",
        "fits": entry.fits,
        "solved": entry.solved,
        "overflowed": f"{entry.overflowed:.6f}",
        "chance": f"{entry.chance:.6f}",
        **{level: entry.levels[level] for level in LEVELS},
        "errors": " ".join(map(str, entry.errors)),
        "steps": entry.steps,
        "parameters": entry.parameters,
        "cpu_seconds_a_run": f"{entry.cpu_seconds / entry.num_runs:.2f}",
        "published": " ".join(f"{printed.entry} ({printed.protocol})" for printed in _printed(entry.cell)),
        "seeds": seeds_text(entry.results),
        "commits": commits_text(entry.results),
    }
