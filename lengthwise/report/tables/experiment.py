"""The tables of an experiment: the one that a reader comes for, and all other columns."""

from collections.abc import Sequence

from lengthwise.experiments.base import Experiment
from lengthwise.report.tables.accuracies import about_accuracies, accuracy_table, main_columns
from lengthwise.report.tables.errors import COLUMNS as ERROR_COLUMNS
from lengthwise.report.tables.errors import MAIN_COLUMNS as MAIN_ERROR_COLUMNS
from lengthwise.report.tables.errors import error_table
from lengthwise.report.tables.table import Table
from lengthwise.runs.pool import Outcome


def cell_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """One line for each cell, with every column."""
    return (error_table if experiment.scored == "error" else accuracy_table)(experiment, outcomes)


def main_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """One line for each cell: what a reader comes for, in at most eight columns."""
    names = MAIN_ERROR_COLUMNS if experiment.scored == "error" else main_columns(experiment)
    return cell_table(experiment, outcomes).columns(names).without_empty().folded(["column"])


def detail_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """One line for each cell: the columns that `main_table` leaves out, folded where all cells agree."""
    table, main = cell_table(experiment, outcomes), main_table(experiment, outcomes)
    names = [name for name in table.header if name not in main.header and name != "column"]
    start = [name for name in ("row", "column") if name in main.header]
    return table.columns([*start, *names]).without_empty().folded(names)


def about_columns(experiment: Experiment, table: Table) -> list[tuple[str, str]]:
    """(column, what it says) for each column of a table that needs a sentence."""
    if experiment.scored == "error":
        return [(name, ERROR_COLUMNS[name]) for name in table.header if name in ERROR_COLUMNS]
    return about_accuracies(table)
