"""Tests that are taken while a run trains."""

from pathlib import Path

import numpy as np
import pytest

from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.evaluation.probe import TEST_STRINGS, best_of_guesses, fresh_accuracy, length_of_tests, probe_accuracy
from lengthwise.experiment import SMOKE_PLAN
from lengthwise.models import make_model
from lengthwise.runs.execute import execute
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import SymbolTask, make_task


@pytest.mark.parametrize(("chance", "num_tests"), [(0.2, 1), (0.2, 40), (0.8, 3), (0.5, 40), (1.0, 2)])
def test_the_best_of_guesses_is_that_of_guessing(chance: float, num_tests: int) -> None:
    drawn = np.random.default_rng(0).binomial(TEST_STRINGS, chance, size=(20_000, num_tests)).max(1) / TEST_STRINGS
    assert best_of_guesses(chance, num_tests) == pytest.approx(drawn.mean(), abs=0.002)


def test_fresh_strings_are_others_at_every_step_and_the_same_again() -> None:
    spec = make_spec("parity", "rnn", {"model": {"d_model": 4}})
    model = spec.make_model()
    accuracy = [fresh_accuracy(model, spec.task, step) for step in range(1_000, 9_000, 1_000)]
    assert len(set(accuracy)) > 1
    assert accuracy[0] == fresh_accuracy(model, spec.task, 1_000)
    odd = make_spec("modular-arithmetic", "rnn", {})  # has strings of 499 symbols and none of 500
    assert 0 < fresh_accuracy(odd.make_model(), odd.task, 1) < 1


def test_tasks_of_short_strings_are_tested_at_their_longest() -> None:
    task = make_task("subset-sum", max_length=4, max_value=5)
    assert isinstance(task, SymbolTask)
    model = make_model("looped-transformer", task, d_model=8, num_heads=2, num_loops=1)
    assert length_of_tests(task) == 4
    tests = [fresh_accuracy(model, task, step) for step in (1, 2)]
    drawn = [length_curve(model, task, [4], num_strings=128, seed=(1 << 41) + step).mean() for step in (1, 2)]
    assert tests == drawn
    assert probe_accuracy(model, task) == length_curve(model, task, [4], num_strings=64, seed=1 << 40).mean()
    measured = dict(EvaluationPlan(dense=(41, 500), dense_strings=9, structured=()).measure(model, task))
    assert [point.length for point in measured["dense"].points] == [4]
    assert length_of_tests(make_task("parity")) == 500
    assert length_of_tests(make_task("modular-arithmetic")) == 499


@pytest.mark.parametrize(
    ("name", "fields", "lengths"),
    [
        ("parity", {}, [48, 100, 200, 300, 400, 500]),
        ("modular-arithmetic", {}, [47, 99, 199, 299, 399, 499]),
        ("bounded-dyck", {}, [48, 100, 200, 300, 400, 500]),
        ("regex", {"pattern": "((a|b)(a|b)(a|b))*"}, [48, 100, 200, 300, 400, 500]),  # of no length both classes
    ],
)
def test_probes_are_taken_at_lengths_that_the_task_has(name: str, fields: dict, lengths: list, monkeypatch) -> None:
    task, seen = make_task(name, **fields), []

    def curve(model, task, lengths, **others):
        seen.extend(lengths)
        return length_curve(model, task, lengths[:1], num_strings=1)

    monkeypatch.setattr("lengthwise.evaluation.probe.length_curve", curve)
    probe_accuracy(make_model("rnn", task, d_model=4), task)
    assert seen == lengths


def test_states_that_overflow_are_errors() -> None:
    spec = make_spec("parity", "linear-rnn", {"model": {"d_model": 4, "d_state": 4}})
    model = spec.make_model()
    model.layers[0].a.detach().fill_(1e20)
    assert probe_accuracy(model, spec.task) == 0.0
    for protocol in ("independent", "one-pass"):
        curve = length_curve(model, spec.task, [5, 9], num_strings=4, protocol=protocol)
        assert [point.num_correct for point in curve.points] == [0, 0]


def test_a_run_keeps_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.runs.execute.PROBE_EVERY", 2)
    monkeypatch.setattr("lengthwise.runs.folder.PROBE_EVERY", 2)
    monkeypatch.setattr("lengthwise.runs.execute.TEST_EVERY", 4)
    sizes = {"model": {"d_model": 4}, "train": {"steps": 9, "batch_size": 4, "min_length": 1, "max_length": 6}}
    result = execute(make_spec("parity", "rnn", sizes), tmp_path, SMOKE_PLAN)
    assert [probe.step for probe in result.probes] == [2, 4, 6, 8]
    assert [probe.step for probe in result.probes if probe.fresh is not None] == [4, 8]
    assert result.fresh_tests == [probe.fresh for probe in result.probes if probe.fresh is not None]
