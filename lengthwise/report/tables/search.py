"""Cells that search for a recipe: the run with the lowest final training loss is chosen."""

from collections.abc import Sequence

from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, best_by_loss, fit_text, table_of_cells
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.settings import variations_of
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

MAIN_COLUMNS = ("row", "column", "recipes", "chosen", "final loss", "fits", "mean", "chance")
"""The columns of `search_table` that the main table of a page shows."""

COLUMNS = {
    "recipes": (
        "a recipe is a choice of settings. The entry counts the recipes with a result, each with one net; the other "
        "recipes diverged"
    ),
    "chosen": (
        "the settings of the run with the lowest final training loss in this line; the accuracies are for this run"
    ),
    "final loss": "the chosen run's loss after training, on new strings of the training lengths",
    "losses": 'the final losses of all recipes, in the order of the search; "-": the recipe has no result',
    "fits": (
        "whether the chosen run is right on nearly all strings of the longest training length; if not, its accuracy "
        "at this length is in brackets"
    ),
    "mean": (
        "the chosen run's accuracy of the final answer, averaged over lengths. It does not measure generalization if "
        "the run does not fit"
    ),
    "chance": "accuracy of the best constant answer, averaged over lengths",
    "CPU s": "CPU seconds of training of all recipes that have a result",
}
"""The meaning of each column of `search_table`, by the column's name."""


def search_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`: the recipe chosen by training loss alone, and scores of the resulting net."""
    columns = ("chosen", "final loss", "losses", "fits", "mean", "chance", "CPU s")
    table = table_of_cells(experiment, outcomes, columns, _numbers)
    return table._replace(header=("row", "column", "recipes", *columns, "paper"))


def _numbers(cell: Cell, results: Sequence[RunResult], experiment: Experiment) -> Sequence[str]:
    chosen = best_by_loss(results)
    if chosen is None or chosen.final_loss is None:
        return ()
    curve = accuracies_scored(chosen, cell, experiment)
    settings = variations_of({spec.id: spec.to_json() for spec in cell.specs})
    losses = {result.run_id: result.final_loss for result in results}
    return (
        settings[chosen.run_id] or NOTHING,
        f"{chosen.final_loss:.4f}",
        ", ".join(NOTHING if (loss := losses.get(spec.id)) is None else f"{loss:.3f}" for spec in cell.specs),
        fit_text([chosen], experiment) if experiment.scoring.fit else NOTHING,
        percent(curve.mean()),
        percent(curve.baseline()),
        f"{sum(result.training.cpu_seconds for result in results):,.0f}",
    )
