import pytest
from synthetic_runs import synthetic_run

from lengthwise.report.charts.curves import LOSS_FLOOR, LOSS_WINDOWS, accuracy_chart, loss_chart, side_by_side
from lengthwise.report.tables.runs import RunRow, run_rows
from lengthwise.report.tables.training import late_change
from lengthwise.runs.spec import make_spec
from lengthwise.training.loop import StepRecord
from lengthwise.training.recipe import Recipe


def rows_of(*seeds: int) -> list[RunRow]:
    return run_rows([synthetic_run(seed=seed).result for seed in seeds])


def values_in(chart: dict[str, object]) -> list[dict[str, object]]:
    datasets = chart["datasets"]
    assert isinstance(datasets, dict)
    return [value for values in datasets.values() for value in values]


def test_every_measured_point_is_drawn() -> None:
    rows = rows_of(0, 1)
    drawn = [value for value in values_in(accuracy_chart(rows, trained_to=40).to_dict()) if "accuracy" in value]
    points = [(row.seed, p) for row in rows for p in (*row.dense.points, *row.long.values())]
    assert sorted((v["seed"], v["length"], v["accuracy"]) for v in drawn) == sorted(
        (seed, p.length, p.accuracy) for seed, p in points
    )


def test_training_length_and_best_constant_answer_are_marked() -> None:
    values = values_in(accuracy_chart(rows_of(0), trained_to=40).to_dict())
    assert {"length": 40, "text": "trained up to 40"} in values
    assert [value for value in values if "score" in value][:2] == [
        {"length": 41, "score": 0.5},
        {"length": 100_000, "score": 0.5},
    ]


def test_unbalanced_lengths_are_not_drawn() -> None:
    row = run_rows([synthetic_run(is_balanced=lambda length: length % 2 == 0).result])
    drawn = [value for value in values_in(accuracy_chart(row, trained_to=40).to_dict()) if "accuracy" in value]
    assert drawn
    assert all(int(str(value["length"])) % 2 == 0 for value in drawn)


def test_a_single_length_is_a_point_and_its_best_constant_answer_a_line_across() -> None:
    row = run_rows([synthetic_run(is_balanced=lambda length: length == 41).result])
    marks = [layer["mark"] for layer in accuracy_chart(row, trained_to=40, hover=False).to_dict()["layer"]]
    assert "line" not in [mark["type"] for mark in marks]
    assert sum(mark["type"] == "point" and "shape" not in mark for mark in marks) == 1  # long lengths have diamonds
    assert sum(mark["type"] == "rule" and "strokeDash" in mark for mark in marks) == 1


@pytest.mark.parametrize(("num_steps", "window"), [(1, 1), (200, 1), (201, 2), (100_000, 500)])
def test_a_loss_curve_stays_small_and_says_how(num_steps: int, window: int) -> None:
    records = [StepRecord(step, 0.5, 40, 1.0, 1e-3) for step in range(1, num_steps + 1)]
    chart = loss_chart({0: records}).to_dict()
    values = values_in(chart)
    assert len(values) <= LOSS_WINDOWS
    assert values[-1]["step"] == num_steps
    title = chart["layer"][-1]["encoding"]["y"]["title"]
    assert title == f"training loss ({f'median of {window} steps' if window > 1 else 'each step'})"


def test_a_loss_of_zero_is_drawn_on_a_logarithmic_axis() -> None:
    values = values_in(loss_chart({0: [StepRecord(1, 0.0, 40, 0.0, 1e-3)]}).to_dict())
    assert values == [{"seed": 0, "step": 1, "loss": LOSS_FLOOR}]


@pytest.mark.parametrize("steps", [400, 6_001])
def test_a_rule_says_what_training_adds_and_when(steps: int) -> None:
    recipe = Recipe(steps=steps, late_consistency=0.5)
    change = late_change(recipe.model_dump(mode="json"))
    assert change is not None
    assert [recipe.consistency_at(change.step - 1), recipe.consistency_at(change.step)] == [0.0, 0.5]
    assert change.additions == ("state noise of 0.3 (before: 0.1)", "consistency loss x 0.5")
    values = values_in(loss_chart({0: [StepRecord(1, 0.5, 40, 1.0, 1e-3)]}, change).to_dict())
    text = "from here on:\nstate noise of 0.3 (before: 0.1)\nconsistency loss x 0.5"
    assert {"step": change.step, "text": text} in values


def test_a_recipe_that_adds_nothing_has_no_rule() -> None:
    plain = make_spec("parity", "gru", {}).recipe
    assert late_change(plain.model_dump(mode="json")) is None


@pytest.mark.parametrize("num_seeds", [1, 2, 12])
def test_any_number_of_seeds_makes_a_chart(num_seeds: int) -> None:
    rows = rows_of(*range(num_seeds))
    panels = {"one": accuracy_chart(rows, trained_to=40), "two": accuracy_chart(rows, trained_to=40, hover=False)}
    assert len(side_by_side(panels).to_dict()["concat"]) == 2
