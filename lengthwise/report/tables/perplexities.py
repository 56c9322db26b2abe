"""Tables of perplexities (of an experiment's cells, of single runs, of one curve), and of their paired ratios."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from lengthwise.display import csv_text
from lengthwise.evaluation.interval import mean_interval
from lengthwise.evaluation.perplexity import PerplexityCurve, paired_ratio
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import results_of, table_of_cells
from lengthwise.report.tables.markdown import table_paragraphs
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.settings import model_of, task_of, variations
from lengthwise.report.tables.table import Table, is_length
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

CSV_COLUMNS = ("run_id", "task", "model", "seed", "split", "length", "chunk", "last_token_nll")
"""The columns of the file with a line for each chunk."""

ABOUT_LENGTHS = (
    "perplexity of the last tokens of chunks with this number of tokens: the geometric mean over runs. The last tokens "
    "are the same at all lengths and for all models"
)

RATIO = "longest / shortest"

COLUMNS = {
    "whole": "perplexity of all tokens of the longest chunks",
    RATIO: (
        "the perplexity at the longest length divided by the perplexity at the shortest, for the same last tokens. The "
        "95 % interval accounts for the choice of chunks; the log-likelihood of a chunk is averaged over runs. If the "
        "ratio is below 1, more context helps"
    ),
    "frequencies": "perplexity of a model that knows only the tokens' frequencies in the training split",
    "parameters": "the number of parameters of the model",
    "CPU s": "CPU seconds of training",
}
"""The meaning of columns of the tables of perplexities, by the column's name."""


def perplexity_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell` and a column for each length: perplexities over all runs of the cell."""
    lengths = experiment.plan.chunk_lengths
    table = table_of_cells(experiment, outcomes, [*map(_length, lengths), *COLUMNS, "steps"], _numbers)
    return table if len(lengths) > 1 else table.columns([name for name in table.header if name != RATIO])


def main_columns(experiment: Experiment) -> tuple[str, ...]:
    """Return the names of the most important columns: perplexities by length, and the paper's numbers."""
    return ("row", "column", *map(_length, experiment.plan.chunk_lengths), RATIO, "paper")


def about_perplexities(table: Table) -> list[tuple[str, str]]:
    """Return pairs (column, meaning) for the columns of a table that need an explanation."""
    lengths = ", ".join(filter(is_length, table.header))
    about = [(name, COLUMNS[name]) for name in (*table.header, *dict(table.shared)) if name in COLUMNS]
    return [*([(lengths, ABOUT_LENGTHS)] if lengths else []), *about]


def _numbers(cell: Cell, results: Sequence[RunResult], experiment: Experiment) -> Sequence[str]:
    curves = [result.perplexity for result in results if result.perplexity is not None]
    if not curves:
        return ()
    shortest, longest = curves[0].points[0].length, curves[0].points[-1].length
    return (
        *(_mean_text(curves, length) for length in experiment.plan.chunk_lengths),
        f"{math.exp(fmean(curve.points[-1].whole for curve in curves)):.2f}",
        ratio_text(chunk_means(curves, longest), chunk_means(curves, shortest)),
        f"{curves[0].baseline:,.0f}",
        span([result.num_parameters for result in results]),
        span([round(result.training.cpu_seconds) for result in results]),
        span([result.training.step for result in results]),
    )


def _mean_text(curves: Sequence[PerplexityCurve], length: int) -> str:
    nlls = chunk_means(curves, length)
    return f"{math.exp(fmean(nlls)):.2f}" if nlls else NOTHING


def chunk_means(curves: Sequence[PerplexityCurve], length: int) -> list[float]:
    """Return for each chunk of a length the negative log-likelihood of its last token, averaged over curves.

    The list is empty if a curve does not have the length, or if the curves end their chunks at different tokens.
    """
    points = [curve.at(length) for curve in curves]
    last = [point.last for point in points if point is not None]
    # Only equal last tokens can be paired, because log-likelihoods differ far more between tokens than between models.
    if len(last) < len(curves) or len({curve.ends for curve in curves}) != 1:
        return []
    return [fmean(chunk) for chunk in zip(*last, strict=True)]


def ratio_text(first: Sequence[float], second: Sequence[float]) -> str:
    """Return the ratio of two perplexities, computed from negative log-likelihoods of chunks.

    If there are at least two chunks, the text also contains the 95 % interval of the ratio.

    Example:
        >>> ratio_text([2.0, 1.0, 3.0], [1.9, 0.9, 2.8]), ratio_text([2.0], [2.0])
        ('1.143 (0.990 to 1.319)', '1.000')
    """
    if not first or len(first) != len(second):
        return NOTHING
    ratio, low, high = paired_ratio(first, second)
    return f"{ratio:.3f}" + ("" if math.isnan(low) else f" ({low:.3f} to {high:.3f})")


def paired_columns(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return paragraphs of an experiment's page: the perplexity ratios of the columns that the experiment compares.

    In each ratio, both perplexities are of the last tokens of the same chunks.
    """
    lengths, lines = experiment.plan.chunk_lengths, []
    for row in dict.fromkeys(cell.row for cell in experiment.cells):
        cells = {cell.column: cell for cell in experiment.cells if cell.row == row}
        for first, second in experiment.scoring.compared:
            if first in cells and second in cells:
                curves = [
                    [result.perplexity for result in results_of(cells[name], outcomes) if result.perplexity is not None]
                    for name in (first, second)
                ]
                are_paired = len({curve.ends for part in curves for curve in part}) == 1
                ratios = [
                    ratio_text(*(chunk_means(part, length) for part in curves)) if are_paired else NOTHING
                    for length in lengths
                ]
                lines.append((row, first, second, *ratios))
    if not lines:
        return []
    return [
        "## Paired ratios",
        "Entries are the perplexity of *first* divided by the perplexity of *second*, on the same last tokens. The "
        "95 % interval is Student's interval over chunks; the log-likelihood of a chunk is averaged over runs. The "
        "interval does not account for the choice of seeds, and is not corrected for the number of intervals.",
        *table_paragraphs(Table(("row", "first", "second", *map(_length, lengths)), tuple(lines))),
    ]


def perplexity_run_table(results: Sequence[RunResult]) -> Table:
    """Return one line for each run of a language model: the perplexity of the last tokens of chunks, by chunk length.

    The column `whole` contains the perplexity of all tokens of the longest chunks, except the first of each chunk.
    """
    with_any = [(result, result.perplexity) for result in results if result.perplexity is not None]
    lengths = sorted(set(chain.from_iterable((point.length for point in curve.points) for _, curve in with_any)))
    differing = variations([result for result, _ in with_any])
    lines = []
    for result, curve in with_any:
        points = [curve.at(length) for length in lengths]
        start = (task_of(result), model_of(result), differing[result.run_id], str(result.spec["seed"]))
        numbers = [NOTHING if point is None else f"{point.perplexity:.2f}" for point in points]
        rest = (f"{curve.points[-1].whole_perplexity:.2f}", f"{curve.baseline:,.0f}", f"{curve.num_chunks:,}")
        lines.append((*start, *numbers, *rest, f"{result.training.cpu_seconds:.1f}"))
    header = ("task", "model", "settings", "seed", *map(_length, lengths))
    table = Table((*header, "whole", "frequencies", "chunks", "CPU s"), tuple(lines))
    return table.folded(["task", "model", "settings", "frequencies", "chunks"]) if lines else table


def curve_table(curve: PerplexityCurve) -> Table:
    """Return one line for each chunk length of a curve: the perplexity of the chunks' last tokens, with its interval.

    The next column is this perplexity divided by the perplexity at the shortest length. The last column is the
    perplexity of all tokens except the first of each chunk.
    """
    lines = []
    for point in curve.points:
        low, high = point.interval
        interval = NOTHING if math.isnan(low) else f"{low:.2f} to {high:.2f}"
        ratio = ratio_text(point.last, curve.points[0].last)
        lines.append(
            (_length(point.length), f"{point.perplexity:.2f}", interval, ratio, f"{point.whole_perplexity:.2f}")
        )
    return Table(
        ("length", "last token", "95 % interval", f"ratio to {_length(curve.points[0].length)}", "whole"),
        tuple(lines),
    )


def perplexity_csv(curves: Sequence[tuple[str, Mapping[str, Any], PerplexityCurve]]) -> str:
    """Return a CSV file with a line for each chunk of each length; curves come with run id and settings."""
    rows: list[tuple[object, ...]] = [CSV_COLUMNS]
    for run_id, spec, curve in curves:
        run = (run_id, spec["task"]["name"], spec["model"]["name"], spec["seed"], curve.split)
        for point in curve.points:
            rows.extend((*run, point.length, chunk, nll) for chunk, nll in enumerate(point.last))
    return csv_text(rows)


def seeds_sentence(results: Sequence[RunResult]) -> list[str]:
    """Return one sentence about the perplexities of several runs, or no sentence if their longest lengths differ."""
    curves = [result.perplexity for result in results if result.perplexity is not None]
    if len(curves) < 2 or len({curve.points[-1].length for curve in curves}) != 1:
        return []
    logs = [fmean(curve.points[-1].last) for curve in curves]
    low, high = mean_interval(logs)
    return [
        f"perplexity of last tokens at {_length(curves[0].points[-1].length)}, over {len(curves)} seeds: mean "
        f"{math.exp(fmean(logs)):.2f}, 95 % interval {math.exp(low):.2f} to {math.exp(high):.2f}"
    ]


def _length(length: int) -> str:
    return f"{length:,}"
