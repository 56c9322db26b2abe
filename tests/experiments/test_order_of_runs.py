"""The order in which an experiment's runs are run, and the plan that each has."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiments.base import EXPERIMENTS, Cell, Experiment
from lengthwise.experiments.leaderboard import ENTRANTS, LAST, ROWS, SEEDS
from lengthwise.runs.spec import make_spec


def test_the_first_run_of_every_cell_comes_before_the_second_of_any() -> None:
    first, second = (tuple(make_spec(task, "rnn", {}, seed=seed) for seed in seeds) for task, seeds in _CELLS.items())
    experiment = Experiment("", "", [Cell("a", "", first), Cell("b", "", second)], EvaluationPlan())
    assert experiment.specs == [first[0], second[0], first[1], second[1], first[2]]


def test_each_run_has_the_plan_of_its_own_cells() -> None:
    first, second = (tuple(make_spec(task, "rnn", {}, seed=seed) for seed in seeds) for task, seeds in _CELLS.items())
    cells = [
        Cell("a", "", first, window=(41, 100)),
        Cell("b", "", second, window=(90, 200)),
        Cell("c", "", second[:1], window=(50, 150)),
    ]
    experiment = Experiment("", "", cells, EvaluationPlan(dense=(41, 500)))
    dense = [plan.dense for plan in experiment.plans]
    assert dense == [(41, 100), (50, 200), (41, 100), (90, 200), (41, 100)]


def test_the_leaderboard_has_one_seed_of_all_models_on_all_tasks_first() -> None:
    experiment = EXPERIMENTS["leaderboard"]("small")
    firsts = experiment.specs[: len(ROWS) * len(ENTRANTS)]
    assert {spec.seed for spec in firsts} == set(SEEDS[:1])
    assert {spec.recipe.supervision for spec in firsts} == {"last"}
    assert len({spec.id for spec in firsts}) == len(firsts)
    assert {cell.part for cell in experiment.cells[: len(firsts)]} == {LAST}


_CELLS = {"parity": (0, 1, 2), "even-pairs": (0, 1)}
