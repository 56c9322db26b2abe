"""Machines learned from MLRegTest: the languages of a folder, and the accuracy on its test sets."""

from pathlib import Path

import numpy as np
import pytest

from lengthwise.automata.regex import dfa_from_regex
from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.benchmarks.experiments import mlregtest
from lengthwise.studies.benchmarks.experiments.mlregtest import FOLDER, learned_languages
from lengthwise.tasks.given.mlregtest_sampler import Group


def test_accuracy_is_the_share_of_right_answers() -> None:
    machine = dfa_from_regex("a*", ("a", "b")).transducer
    groups = [Group("TRUE", [(0,), (0, 0), (1,)]), Group("FALSE", [(1, 0), (), (0, 1), (0, 0, 1), (1, 1)])]
    assert mlregtest._accuracy(machine, groups) == 6 / 8


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


def test_the_folder_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER, raising=False)
    lacks = "LENGTHWISE_MLREGTEST: expected the folder of MLRegTest's automata (.att), got none; set this environment"
    assert EXPERIMENTS["bench/mlregtest"]("small").requires.lacks.startswith(lacks)
    assert not EXPERIMENTS["bench/mlregtest"]("smoke").requires.lacks
