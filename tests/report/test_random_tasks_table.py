"""Columns over tasks that were drawn at random."""

import pytest
from synthetic_runs import PLAN, synthetic_run

from lengthwise.experiment import Cell, Experiment
from lengthwise.report.tables.experiment import cell_table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.spec import make_spec


def cells_of(tasks: tuple[str, ...], parts: tuple[int, ...]) -> dict[str, str]:
    """The line of a cell whose runs, one a task, are right on one in so many strings."""
    specs = tuple(make_spec(task, "rnn", {}, seed=seed) for seed, task in enumerate(tasks))
    runs = [
        synthetic_run(num_correct=lambda length, num_strings, part=part: num_strings // part).result for part in parts
    ]
    outcomes = [
        Outcome(spec, run.model_copy(update={"run_id": spec.id})) for spec, run in zip(specs, runs, strict=True)
    ]
    table = cell_table(Experiment("title", "about", [Cell("row", "", specs)], PLAN), outcomes)
    return dict(zip(table.header, table.lines[0], strict=True))


@pytest.mark.parametrize(("tasks", "interval"), [(("parity", "even-pairs"), "0 % to 100 %"), (("parity",) * 2, "-")])
def test_a_mean_over_tasks_has_an_interval(tasks: tuple[str, str], interval: str) -> None:
    """Of means 1 and 1/2: 0.75, give or take 12.7 times 1/4, which is cut to what a score can be."""
    cells = cells_of(tasks, (1, 2))
    assert (cells["mean"], cells["interval"], cells["proved"]) == ("75.00 %", interval, "-")


def test_equal_scores_say_nothing_of_other_tasks() -> None:
    cells = cells_of(("parity", "even-pairs"), (1, 1))
    assert (cells["mean"], cells["interval"]) == ("100 %", "-")
