"""The tables of an experiment: the main table, and all other columns."""

from collections.abc import Sequence

from lengthwise.experiment import Experiment
from lengthwise.report.tables.accuracies import about_accuracies, accuracy_table, main_columns
from lengthwise.report.tables.attempts import COLUMNS as ATTEMPT_COLUMNS
from lengthwise.report.tables.attempts import MAIN_COLUMNS as MAIN_ATTEMPT_COLUMNS
from lengthwise.report.tables.attempts import attempts_table
from lengthwise.report.tables.errors import COLUMNS as ERROR_COLUMNS
from lengthwise.report.tables.errors import MAIN_COLUMNS as MAIN_ERROR_COLUMNS
from lengthwise.report.tables.errors import error_table
from lengthwise.report.tables.perplexities import about_perplexities, perplexity_table
from lengthwise.report.tables.perplexities import main_columns as main_perplexity_columns
from lengthwise.report.tables.search import COLUMNS as SEARCH_COLUMNS
from lengthwise.report.tables.search import MAIN_COLUMNS as MAIN_SEARCH_COLUMNS
from lengthwise.report.tables.search import search_table
from lengthwise.report.tables.sources import COLUMNS as SOURCE_COLUMNS
from lengthwise.report.tables.sources import with_sources
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome


def cell_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each cell, with every column."""
    tables = {
        "error": error_table,
        "attempts": attempts_table,
        "search": search_table,
        "perplexity": perplexity_table,
    }
    table = tables.get(experiment.scoring.measure, accuracy_table)(experiment, outcomes)
    return with_sources(table, experiment, outcomes)


def main_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each cell with the most important columns, at most eight, or as the experiment sets them."""
    of_their_own = {"error": MAIN_ERROR_COLUMNS, "attempts": MAIN_ATTEMPT_COLUMNS, "search": MAIN_SEARCH_COLUMNS}
    usual = main_perplexity_columns if experiment.scoring.measure == "perplexity" else main_columns
    names = experiment.main or of_their_own.get(experiment.scoring.measure) or usual(experiment)
    return cell_table(experiment, outcomes).columns(names).without_empty().folded(["column"])


def detail_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each cell: the columns that `main_table` leaves out, folded if all cells agree."""
    table, main = cell_table(experiment, outcomes), main_table(experiment, outcomes)
    names = [name for name in table.header if name not in main.header and name != "column"]
    start = [name for name in ("row", "column") if name in main.header]
    return table.columns([*start, *names]).without_empty().folded(names)


def about_columns(experiment: Experiment, table: Table) -> list[tuple[str, str]]:
    """Return pairs of column and meaning for the columns of a table that need a sentence."""
    of_their_own = {"error": ERROR_COLUMNS, "attempts": ATTEMPT_COLUMNS, "search": SEARCH_COLUMNS}
    sources = [
        (name, meaning) for name, meaning in SOURCE_COLUMNS.items() if name in (*table.header, *dict(table.shared))
    ]
    if (columns := of_their_own.get(experiment.scoring.measure)) is not None:
        return [*((name, columns[name]) for name in table.header if name in columns), *sources]
    usual = about_perplexities if experiment.scoring.measure == "perplexity" else about_accuracies
    return [*usual(table), *sources]
