"""The tables of an experiment: the main table, and all other columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lengthwise.experiment import Experiment
from lengthwise.report.tables import accuracies, attempts, errors, perplexities, search, sources
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome


class _Measure(NamedTuple):
    """Functions for one `Scoring.measure`: its table, its most important columns, and the meanings of columns."""

    table: Callable[[Experiment, Sequence[Outcome]], Table]
    main: Callable[[Experiment], Sequence[str]]
    about: Callable[[Table], list[tuple[str, str]]]


def _about(columns: Mapping[str, str]) -> Callable[[Table], list[tuple[str, str]]]:
    return lambda table: [(name, columns[name]) for name in table.header if name in columns]


_ACCURACY = _Measure(accuracies.accuracy_table, accuracies.main_columns, accuracies.about_accuracies)
_MEASURES: Mapping[str, _Measure] = {
    "balanced": _ACCURACY,
    "legal": _ACCURACY,
    "perplexity": _Measure(perplexities.perplexity_table, perplexities.main_columns, perplexities.about_perplexities),
    "error": _Measure(errors.error_table, lambda _: errors.MAIN_COLUMNS, _about(errors.COLUMNS)),
    "attempts": _Measure(attempts.attempts_table, lambda _: attempts.MAIN_COLUMNS, _about(attempts.COLUMNS)),
    "search": _Measure(search.search_table, lambda _: search.MAIN_COLUMNS, _about(search.COLUMNS)),
}


def cell_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`, with every column."""
    table = _MEASURES[experiment.scoring.measure].table(experiment, outcomes)
    return sources.with_sources(table, experiment, outcomes)


def main_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`, with the columns `Experiment.main` or, by default, the most important ones."""
    names = experiment.main or _MEASURES[experiment.scoring.measure].main(experiment)
    return cell_table(experiment, outcomes).columns(names).without_empty().folded(["column"])


def detail_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return the columns that `main_table` leaves out; columns that agree in all cells are moved to `shared`."""
    table, main = cell_table(experiment, outcomes), main_table(experiment, outcomes)
    names = [name for name in table.header if name not in main.header and name != "column"]
    start = [name for name in ("row", "column") if name in main.header]
    return table.columns([*start, *names]).without_empty().folded(names)


def about_columns(experiment: Experiment, table: Table) -> list[tuple[str, str]]:
    """Return pairs (column, meaning) for the columns of a table that need an explanation."""
    names = (*table.header, *dict(table.shared))
    about_sources = [(name, meaning) for name, meaning in sources.COLUMNS.items() if name in names]
    return [*_MEASURES[experiment.scoring.measure].about(table), *about_sources]
