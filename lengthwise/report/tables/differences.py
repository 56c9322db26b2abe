"""Columns of an experiment's table compared with each other, seed by seed."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from lengthwise.evaluation.interval import difference_from_zero, holm, mean_interval, without_rounding
from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, last_error, results_of
from lengthwise.report.tables.markdown import table_paragraphs
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome

HEADER = ("row", "first", "second", "difference", "95 % interval", "better", "p, Holm")

LEVEL = 0.05
"""The significance level: a difference is significant if its corrected p-value is at most this level."""


class Difference(NamedTuple):
    """The difference (first - second) of two columns: mean over seeds, Student's 95 % interval, and p-values.

    `p_value` is not corrected, and `corrected` is the p-value after Holm's correction for all differences of the
    experiment. With too few seeds, p-values are NaN.
    """

    row: str
    first: str
    second: str
    num_seeds: int
    mean: float
    low: float
    high: float
    p_value: float
    corrected: float


def compared_columns(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[Difference]:
    """Return the differences between the columns that an experiment compares, in each row that has both columns.

    Raises:
        ValueError: a compared column has several runs of a seed. It would then be unclear which run to pair with the
            run of the other column.
    """
    pairs: list[tuple[str, str, str, list[float]]] = []
    for row in dict.fromkeys(cell.row for cell in experiment.cells):
        cells = {cell.column: cell for cell in experiment.cells if cell.row == row}
        for first, second in experiment.scoring.compared:
            if first in cells and second in cells:
                scores = [_scores(cells[column], experiment, outcomes) for column in (first, second)]
                # Seeds that only one column has are left out, because their problems and initial weights have no
                # counterpart.
                gaps = [scores[0][seed] - scores[1][seed] for seed in scores[0].keys() & scores[1].keys()]
                pairs.append((row, first, second, gaps))
    return paired_differences(pairs)


def paired_differences(pairs: Sequence[tuple[str, str, str, Sequence[float]]]) -> list[Difference]:
    """Return a `Difference` with statistics for each tuple in `pairs`.

    In a tuple (row, first, second, gaps), `first` and `second` are the names of the compared models or columns, and
    `gaps` contains first minus second for each seed.

    Example:
        >>> difference, _ = paired_differences([("a", "x", "y", [0.3, 0.1, 0.2]), ("b", "x", "y", [0.1])])
        >>> f"{difference.low:.3f} {difference.high:.3f} {difference.p_value:.3f} {difference.corrected:.3f}"
        '-0.048 0.448 0.074 0.074'
    """
    # Equal means of accuracies may differ in their last bit; such gaps count as 0.
    pairs = [(row, one, other, without_rounding(gaps)) for row, one, other, gaps in pairs]
    p_values = [difference_from_zero(gaps) for *_, gaps in pairs]
    nothing = math.nan, math.nan
    intervals = [
        nothing if math.isnan(p) else mean_interval(gaps) for (*_, gaps), p in zip(pairs, p_values, strict=True)
    ]
    return [
        Difference(row, one, other, len(gaps), fmean(gaps) if gaps else math.nan, *interval, p, corrected)
        for (row, one, other, gaps), interval, p, corrected in zip(
            pairs, intervals, p_values, holm(p_values), strict=True
        )
    ]


def differences(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return paragraphs of an experiment's page: the differences between compared columns, with corrected p-values."""
    compared = compared_columns(experiment, outcomes)
    if not compared:
        return []
    errors = experiment.scoring.measure == "error"
    what, noun = ("error (lower is better)", "error") if errors else ("accuracy", "accuracy")
    unit = "" if errors else ", in percentage points"
    return [
        "## Differences",
        f"Entries are the {what} of net *first* minus the {noun} of net *second*{unit}. *Difference*: the mean "
        "over seeds. With each seed, both nets are trained on the same problems. *95 % interval*: Student's "
        "interval for other seeds on the same test problems, not corrected for the number of intervals. *Better*: "
        f'the better net, if the interval excludes 0. The entry is "{NOTHING}" if the interval contains 0, if the '
        "seeds are too few for an interval, or if all differences are equal. *p, Holm*: the p-value of Student's "
        "test, corrected for the number of differences by Holm's method.",
        *multiplicity(compared),
        *table_paragraphs(Table(HEADER, tuple(difference_lines(compared, errors=errors)))),
    ]


def difference_lines(compared: Sequence[Difference], *, errors: bool) -> list[tuple[str, ...]]:
    """Return a table line with the columns of `HEADER` for each `Difference`.

    Differences of accuracies are in percentage points.
    """
    return [_line(difference, errors) for difference in compared]


def multiplicity(compared: Sequence[Difference]) -> list[str]:
    """Return a sentence with the numbers of tested and of statistically significant differences."""
    tested = [difference for difference in compared if not math.isnan(difference.p_value)]
    if not tested:
        return []
    alone = sum(difference.p_value <= LEVEL for difference in tested)
    together = sum(difference.corrected <= LEVEL for difference in tested)
    seeds = span([difference.num_seeds for difference in tested])
    count = "1 difference" if len(tested) == 1 else f"{len(tested)} differences"
    return [
        f"With {seeds} seeds, {alone} of {count} would be statistically significant if taken alone, and {together} "
        f"after the correction (p at most {LEVEL})."
    ]


def _scores(cell: Cell, experiment: Experiment, outcomes: Sequence[Outcome]) -> dict[int, float]:
    """Return the score of each run, by its seed."""
    for seed, count in Counter(spec.seed for spec in cell.specs).items():
        if count > 1:
            raise ValueError(
                f"compared: expected one run of each seed in row {cell.row!r}, column {cell.column!r}, got {count} of "
                f"seed {seed}; give each setting its own column"
            )
    results = results_of(cell, outcomes)
    if experiment.scoring.measure == "error":
        return {result.spec["seed"]: last_error(result.errors) for result in results if result.errors}
    return {result.spec["seed"]: accuracies_scored(result, cell, experiment).mean() for result in results}


def _line(difference: Difference, errors: bool) -> tuple[str, ...]:
    row, first, second, num_seeds, mean, low, high, _, corrected = difference
    if not num_seeds:
        return row, first, second, *[NOTHING] * 4
    if math.isnan(low):
        return row, first, second, signed(mean, errors), *[NOTHING] * 3
    # A larger accuracy is better, and so is a smaller error.
    if_above, if_below = (second, first) if errors else (first, second)
    better = if_above if low > 0 else if_below if high < 0 else NOTHING
    interval = f"{signed(low, errors)} to {signed(high, errors)}"
    return row, first, second, signed(mean, errors), interval, better, f"{corrected:.2g}"


def signed(gap: float, errors: bool) -> str:
    """Format a difference of errors, or of accuracies in percentage points.

    Example:
        >>> signed(0.0123, errors=False), signed(0.0123, errors=True)
        ('+1.23', '+1.23e-02')
    """
    return f"{gap:+.2e}" if errors else f"{100 * gap:+.2f}"
