"""Rows by columns: each cell of an experiment in numbers, each column in a line, and all of it as CSV."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median_low
from typing import NamedTuple

from lengthwise.experiments.base import Cell, Experiment, Printed
from lengthwise.report.tables.cells import accuracies_scored, long_accuracies, results_of
from lengthwise.report.tables.levels import LEVELS
from lengthwise.report.tables.numbers import NOTHING, percent, span
from lengthwise.report.tables.table import Table
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pools.outcome import Outcome

LOW_LOSS = 0.01
"""Below it, a run fits the lengths that it was trained on."""


class Entry(NamedTuple):
    """A cell that has results: over its runs the mean and lowest accuracy, the lowest at the longest length, and so on.

    `chance` is the mean score of the best constant answer; `levels` counts certificates, and `errors` has the lengths
    of the strings that these name. `fits`: runs whose loss at the lengths of training is below `LOW_LOSS`.
    `overflowed`: the share of the strings on which states overflow. `at_printed`: the mean at the lengths of each of
    the numbers that papers print.
    """

    cell: Cell
    num_runs: int
    mean: float
    lowest: float
    at_longest: float
    fits: int
    solved: int
    overflowed: float
    at_printed: tuple[float, ...]
    chance: float
    levels: Counter[str]
    errors: tuple[int, ...]
    steps: int
    parameters: int
    cpu_seconds: float

    @property
    def level(self) -> str:
        """The lowest level of the runs that have a result, where all of these have certificates."""
        names = list(LEVELS)
        return max(self.levels, key=names.index) if self.levels.total() == self.num_runs else ""


def entries_of(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Entry]:
    """The cells that have results, in the experiment's order."""
    longest = max((length for length, _ in experiment.plan.long), default=0)
    entries = []
    for cell in experiment.cells:
        if not (results := results_of(cell, outcomes)):
            continue
        certificates = [result.certificate for result in results if result.certificate]
        curves = [accuracies_scored(result, cell, experiment) for result in results]
        points = [point for curve in curves for point in curve.points]
        entries.append(
            Entry(
                cell=cell,
                num_runs=len(results),
                mean=sum(curve.mean() for curve in curves) / len(curves),
                lowest=min(curve.min() for curve in curves),
                at_longest=min(long_accuracies(results, longest), default=math.nan),
                fits=sum(result.final_loss is not None and result.final_loss < LOW_LOSS for result in results),
                solved=sum(curve.min() == 1.0 for curve in curves),
                overflowed=sum(point.num_overflowed for point in points) / max(1, sum(p.num_strings for p in points)),
                at_printed=tuple(_mean_at(printed.window, results, cell, experiment) for printed in _printed(cell)),
                chance=sum(point.baseline for point in points) / len(points) if points else math.nan,
                levels=Counter(certificate.level for certificate in certificates),
                errors=tuple(len(named.counterexample.string) for named in certificates if named.counterexample),
                steps=max(result.training.step for result in results),
                parameters=results[0].num_parameters,
                cpu_seconds=sum(result.training.cpu_seconds for result in results),
            )
        )
    return entries


def _printed(cell: Cell) -> tuple[Printed, ...]:
    """What papers print, one entry or several."""
    return cell.printed or ((Printed(cell.published, "As the paper prints it."),) if cell.published else ())


def _mean_at(window: tuple[int, int] | None, results: Sequence[RunResult], cell: Cell, experiment: Experiment) -> float:
    at_window = cell._replace(window=window or cell.window)
    return fmean(accuracies_scored(result, at_window, experiment).mean() for result in results)


_COUNTED = ("proved", "extracted", "refuted")
_SCORES = ("cells", "runs", "mean", "fits", "solved", "overflow", *_COUNTED, "error")


def column_tables(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, Table]:
    """By part, a line for each column that has results: how it does in the cells that have them."""
    tables = {}
    for part in dict.fromkeys(cell.part for cell in experiment.cells):
        cells = Counter(cell.column for cell in experiment.cells if cell.part == part)
        by_column = _by_column(experiment, [entry for entry in entries if entry.cell.part == part])
        if lines := [(column, *_scores(own, cells[column])) for column, own in by_column.items()]:
            tables[part] = Table(("model", *_SCORES), tuple(lines))
    return tables


def cost_table(experiment: Experiment, entries: Sequence[Entry]) -> Table:
    """A line for each column that has results: its size, its learning rate, and what it costs."""
    lines = []
    for column, own in _by_column(experiment, entries).items():
        seconds = sum(entry.cpu_seconds for entry in own) / sum(entry.num_runs for entry in own)
        rates = {f"{spec.recipe.optimizer.learning_rate:g}" for entry in own for spec in entry.cell.specs}
        lines.append((column, span([entry.parameters for entry in own]), ", ".join(sorted(rates)), f"{seconds:.0f}"))
    return Table(("model", "parameters", "learning rate", "CPU s a run"), tuple(lines))


def _by_column(experiment: Experiment, entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    """The entries of each column that has any, columns in the order of the experiment."""
    columns = dict.fromkeys(cell.column for cell in experiment.cells)
    by_column = {column: [entry for entry in entries if entry.cell.column == column] for column in columns}
    return {column: own for column, own in by_column.items() if own}


def _scores(own: Sequence[Entry], total: int) -> tuple[str, ...]:
    """Cells with a run, runs, the mean over cells, runs that fit and are solved, overflow, levels, errors."""
    runs = sum(entry.num_runs for entry in own)
    fits, solved = sum(entry.fits for entry in own), sum(entry.solved for entry in own)
    levels = (str(sum(entry.levels[level] for entry in own)) for level in _COUNTED)
    mean = percent(sum(entry.mean for entry in own) / len(own))
    overflowed = sum(entry.overflowed for entry in own) / len(own)
    overflow = percent(overflowed) if overflowed else NOTHING
    errors = [length for entry in own for length in entry.errors]
    error = f"{median_low(errors):,} ({span(errors)})" if errors else NOTHING
    return (f"{len(own)} of {total}", f"{runs}", mean, f"{fits}", f"{solved}", overflow, *levels, error)


def printed_tables(entries: Sequence[Entry]) -> dict[str, Table]:
    """By protocol, a line for each cell of which a paper prints a number by it, next to ours at its lengths."""
    lines: dict[str, list[tuple[str, ...]]] = {}
    for entry in entries:
        for printed, mean in zip(_printed(entry.cell), entry.at_printed, strict=True):
            line = (entry.cell.row, entry.cell.column, percent(mean), printed.entry)
            lines.setdefault(printed.protocol, []).append(line)
    return {protocol: Table(("row", "model", "ours", "published"), tuple(own)) for protocol, own in lines.items()}


_AT_STEP = re.compile(r" at step [\d,]+")


def missing(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """(why there is no result, how many runs of which columns)."""
    columns = {spec.id: cell.column for cell in experiment.cells for spec in cell.specs}
    reasons: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        if outcome.result is None:
            reason = _AT_STEP.sub("", outcome.reason)  # one line for all that diverged, at whichever step
            reasons.setdefault(reason, Counter())[columns[outcome.spec.id]] += 1
    return [
        (reason, ", ".join(f"{column} ({count})" for column, count in counts.items()))
        for reason, counts in reasons.items()
    ]


def matrix_csv(entries: Iterable[Entry]) -> str:
    """All entries as CSV, numbers in full."""
    text = io.StringIO()
    lines = [_csv_line(entry) for entry in entries]
    writer = csv.DictWriter(text, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _csv_line(entry: Entry) -> dict[str, str | int]:
    return {
        "part": entry.cell.part,
        "row": entry.cell.row,
        "column": entry.cell.column,
        "runs": entry.num_runs,
        "mean": f"{entry.mean:.6f}",
        "lowest": f"{entry.lowest:.6f}",
        "at_longest": f"{entry.at_longest:.6f}",
        "fits": entry.fits,
        "solved": entry.solved,
        "overflowed": f"{entry.overflowed:.6f}",
        "chance": f"{entry.chance:.6f}",
        **{level: entry.levels[level] for level in LEVELS},
        "errors": " ".join(map(str, entry.errors)),
        "steps": entry.steps,
        "parameters": entry.parameters,
        "cpu_seconds": f"{entry.cpu_seconds:.1f}",
        "published": " ".join(f"{printed.entry} ({printed.protocol})" for printed in _printed(entry.cell)),
    }
