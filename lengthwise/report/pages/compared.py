"""Models compared on a task, in a terminal."""

import math
from statistics import fmean

from rich.console import Console

from lengthwise.printing import print_line
from lengthwise.report.pages.terminal import BAR_LENGTH, print_table
from lengthwise.report.tables.compared import Comparison, accuracies_by_length, comparison_tables, model_differences
from lengthwise.report.tables.differences import multiplicity
from lengthwise.report.tables.levels import level_sentences
from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.shallow_baselines import shallow_baseline_sentences
from lengthwise.report.tables.table import Table

MAX_LENGTHS = 8
"""The approximate number of lengths of the dense range at which a terminal shows accuracies."""


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print a table of models, their mean accuracies by length, and the differences between models, paired by seed."""
    (title, models), differences = comparison_tables(comparison).items()
    print_table(console, title, models)
    print_table(console, "Accuracy against length, mean over seeds", length_table(comparison, console.width))
    print_table(console, *differences)
    sentences = [
        *multiplicity(model_differences(comparison)),
        *(["differences of one seed have no interval; compare several seeds"] if len(comparison.seeds) == 1 else []),
        *(f"best shallow baseline: {sentence}" for sentence in shallow_baseline_sentences(comparison.results)),
        *(f"left out, because another model lacks its seed: {run_id}" for run_id in comparison.left_out),
        *(
            f"{level}: {what}"
            for level, what in level_sentences(row.level for m in comparison.models for row in m.rows)
        ),
        f"accuracy of the final answer; {' / '.join(sorted({result.weights for result in comparison.results}))}",
    ]
    for sentence in sentences:
        print_line(console, f"  {sentence}")


def length_table(comparison: Comparison, width: int) -> Table:
    """Return mean accuracies at a few lengths, with a column for each model; a large `width` also adds bars."""
    curves = {model.name: accuracies_by_length(model) for model in comparison.models}
    dense = sorted({point.length for model in comparison.models for row in model.rows for point in row.dense.points})
    stride = max(1, -(-len(dense) // MAX_LENGTHS))
    long = {point.length for model in comparison.models for row in model.rows for point in row.long.values()}
    lengths = sorted({*dense[::stride], *dense[-1:], *long})

    def cell(of_length: list[float] | None, *, bar: bool) -> str:
        if not of_length:
            return ""
        mean = fmean(of_length)  # only 100 % has a whole bar, just as only exactly 1 is shown as 100 %
        return f"{percent(mean):>8}" + (f" {'#' * math.floor(BAR_LENGTH * mean)}".ljust(BAR_LENGTH + 1) if bar else "")

    for bar in (True, False):
        lines = [(f"{n:,}", *(cell(curve.get(n), bar=bar) for curve in curves.values())) for n in lengths]
        table = Table(("length", *curves), tuple(lines))
        if sum(max(map(len, column)) + 1 for column in zip(table.header, *table.lines, strict=True)) <= width:
            break
    return table
