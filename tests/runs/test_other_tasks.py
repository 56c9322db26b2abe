"""Runs that are measured on tasks, too, which they did not learn."""

from pathlib import Path

import pytest
import torch
from command import exit_code

from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scoring
from lengthwise.report.tables.cells import accuracies_scored
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.records import read_records, restore, write_records
from lengthwise.runs.spec import RunSpec, make_spec, spec_from_json
from lengthwise.tasks.regular.parity import Parity

SETTINGS = {"model": {"d_model": 8, "num_heads": 2}, "train": {"steps": 2, "batch_size": 8, "max_length": 4}}
PLAN = EvaluationPlan(dense=(5, 9), dense_strings=64, long=(), structured=())


def spec_with(*probabilities: float) -> RunSpec:
    return make_spec("parity", "regular-gpt", SETTINGS, other_tasks=[{"p": p} for p in probabilities])


def test_other_tasks_are_part_of_what_a_run_is_and_of_no_run_without_them() -> None:
    plain, one, two = spec_with(), spec_with(0.1), spec_with(0.1, 0.9)
    assert "other_tasks" not in plain.to_json()
    assert plain.id == make_spec("parity", "regular-gpt", SETTINGS).id
    assert len({plain.id, one.id, two.id}) == 3
    assert [task.p for task in two.other_tasks] == [0.1, 0.9]
    for spec in (plain, one, two):
        assert spec_from_json(spec.to_json()) == spec


def test_a_run_learns_one_task_and_is_measured_on_the_others(tmp_path: Path) -> None:
    plain, spec = spec_with(), spec_with(0.05, 0.95)
    results = [execute(each, tmp_path, PLAN) for each in (plain, spec)]
    models = [load_run(tmp_path / each.id).model for each in (plain, spec)]
    assert all(torch.equal(*pair) for pair in zip(*(model.parameters() for model in models), strict=True))
    assert results[0].dense == results[1].dense
    assert results[0].on_other_tasks == ()
    expected = [
        length_curve(models[1], Parity(p=p), range(5, 10), num_strings=64, protocol="one-pass") for p in (0.05, 0.95)
    ]
    assert list(results[1].on_other_tasks) == expected
    assert expected[0] != expected[1], "strings of few ones and of many are answered alike: the test shows nothing"
    write_records(tmp_path / "records.jsonl.gz", results)
    again = read_records(tmp_path / "records.jsonl.gz")
    assert again == results
    assert restore(again, tmp_path / "other").num_taken == 2
    assert RunFolder(tmp_path / "other" / spec.id).read_result() == results[1]


def test_a_cell_may_score_a_task_that_was_not_learned(tmp_path: Path) -> None:
    spec = spec_with(0.05, 0.95)
    result = execute(spec, tmp_path, PLAN)
    for task, curve in ((None, result.dense), *zip(spec.other_tasks, result.on_other_tasks, strict=True)):
        cell = Cell("row", "column", (spec,), window=(6, 8), task=task)
        assert accuracies_scored(
            result, cell, Experiment("T", "A.", [cell], PLAN, scoring=Scoring(measure="legal"))
        ) == curve.between(6, 8)


def test_tasks_of_other_symbols_or_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected tasks with the symbols and classes of sum, got symbols \('0', "):
        make_spec("sum", "rnn", {}, other_tasks=[{"modulus": 3}])
    with pytest.raises(ValueError, match=r"other_tasks.p: expected a number less than 1, got 2"):
        spec_with(2.0)
    with pytest.raises(ValueError, match=r"other_tasks: expected tasks whose answers are classes, got decision-tree"):
        make_spec("decision-tree", "looped-transformer", {}, other_tasks=[{"depth": 2}])


@pytest.mark.parametrize("scale", ["small", "paper"])
def test_table_2_is_read_in_two_ways_in_each_row(scale: str) -> None:
    cells = EXPERIMENTS["regular-gpt/table-2"](scale).cells
    for row in dict.fromkeys(cell.row for cell in cells):
        same, other = (
            [c for c in cells if c.row == row and ("trained at" in c.column) is is_other] for is_other in (False, True)
        )
        assert len(same) == 6
        assert len(other) == (0 if row == "P(1) = 0.5" else 6)
        for first, second in zip(same, other, strict=False):
            assert (first.published, first.window) == (second.published, second.window)
            for one, two in zip(first.specs, second.specs, strict=True):
                assert (f"P(1) = {one.task.p}", one.other_tasks, two.task.p) == (row, (), 0.5)
                assert f"P(1) = {second.task.p}" == row
                assert (one.recipe, one.model_config, one.seed) == (two.recipe, two.model_config, two.seed)


# It runs a whole experiment; test_records makes the page of another one of records alone.
@pytest.mark.slow
def test_table_2_is_made_of_records_alone(tmp_path: Path) -> None:
    words = ["reproduce", "regular-gpt/table-2", "--scale", "smoke", "--pages", str(tmp_path)]
    assert exit_code(*words, "--runs", str(tmp_path / "runs"), "--workers", "1") == 0
    page = tmp_path / "regular-gpt-table-2-smoke.md"
    whole = page.read_text()
    assert "| P(1) = 0.9 | RegularGPT, trained at 0.5, extrapolation |" in whole
    page.unlink()
    assert exit_code(*words, "--runs", str(tmp_path / "other"), "--recorded", "--page-only") == 0
    assert page.read_text() == whole
