"""Machines learned from MLRegTest: the languages of a folder, and the accuracy on its test sets."""

from pathlib import Path

import numpy as np
import pytest
from command import exit_code

from lengthwise.automata.regex import dfa_from_regex
from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.benchmarks.benchmark import entrants_of
from lengthwise.studies.benchmarks.experiments import mlregtest
from lengthwise.studies.benchmarks.experiments.mlregtest import FOLDER, learned_languages
from lengthwise.studies.benchmarks.experiments.mlregtest_nets import nets_experiment
from lengthwise.tasks.given.mlregtest_sampler import Group


def test_accuracy_is_the_share_of_right_answers() -> None:
    machine = dfa_from_regex("a*", ("a", "b")).transducer
    groups = [Group("TRUE", [(0,), (0, 0), (1,)]), Group("FALSE", [(1, 0), (), (0, 1), (0, 0, 1), (1, 1)])]
    assert mlregtest._accuracy(machine, groups) == 6 / 8


@pytest.mark.usefixtures("fewer_strings")
def test_languages_of_the_users_folder_are_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "04.04.Zp.2.1.0.att").write_text(
        "0 1 a a\n1 0 a a\n" + "".join(f"{q} {q} {v} {v}\n" for q in (0, 1) for v in "bcd") + "0\n"
    )
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (result,) = learned_languages(tmp_path / "runs", 1, (400,), 0.0)
    assert learned_languages(tmp_path / "runs", 1, (400,), 0.0) == [result]
    assert len([*(tmp_path / "runs" / "mlregtest").iterdir()]) == 1
    assert (result.name, result.language_class, result.num_states, result.level) == (
        "04.04.Zp.2.1.0",
        "Zp",
        2,
        "proved",
    )
    assert len(result.accuracies) == 4
    assert result.is_right == all(np.array(result.accuracies) == 1)


def test_the_folder_must_be_named(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    lacks = "LENGTHWISE_MLREGTEST: expected the folder of MLRegTest's automata (.att), got none; set this environment"
    for name in ("bench/mlregtest", "bench/mlregtest-nets"):
        assert EXPERIMENTS[name]("small").requires.lacks.startswith(lacks)
        assert not EXPERIMENTS[name]("smoke").requires.lacks
    assert exit_code("bench", "mlregtest", "--columns", "lstm") == 2
    assert capsys.readouterr().err.startswith(f"lengthwise: {lacks}")


def test_nets_are_trained_on_the_languages_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "04.04.SL.2.1.0.att").write_text("0 1 a a\n0 0 b b\n1 0 b b\n0\n1\n")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    experiment = nets_experiment(entrants_of(), "small")
    assert not experiment.requires.lacks
    assert {cell.row for cell in experiment.cells} == {"04.04.SL.2.1.0", "04.04.coSL.2.1.0"}
    assert len({spec.id for spec in experiment.specs}) == 2 * len(entrants_of())
    parts = {cell.part: (cell.window, cell.task and cell.task.strings) for cell in experiment.cells}
    assert sorted(parts.values(), key=str) == [
        ((20, 29), "pairs"),
        ((20, 29), None),
        ((31, 50), "pairs"),
        ((31, 50), None),
    ]
    for spec in experiment.specs:
        assert (spec.recipe.min_length, spec.recipe.max_length, spec.recipe.num_examples) == (20, 29, 1_000)
        assert [task.strings for task in (spec.task, *spec.other_tasks)] == ["random", "pairs"]
