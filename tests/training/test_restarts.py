"""Trainings that begin again where they fail."""

from pathlib import Path

import pytest
import torch

from lengthwise import make_model, make_task
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted, execute
from lengthwise.runs.folder import load_run
from lengthwise.runs.spec import make_spec, spec_from_json
from lengthwise.training.loop import TrainingState, training_steps
from lengthwise.training.recipe import Recipe

TASK = {"alphabet": 3, "max_length": 4}
PLAN = EvaluationPlan(dense=(4, 4), dense_strings=4, long=(), structured=())


def spec_of(max_loss: float, steps: int = 40):
    train = {"steps": steps, "restarts": {"attempts": 4, "max_loss": max_loss}, "max_length": 4, "batch_size": 4}
    return make_spec("levenshtein-distance", "grid-recurrence", {"task": TASK, "train": train})


def trained(spec):
    state = TrainingState(spec.make_model(), spec.recipe)
    return state, list(training_steps(state, spec.task, spec.recipe, seed=0))


def test_an_attempt_that_succeeds_is_the_last() -> None:
    state, records = trained(spec_of(max_loss=1e9))
    assert state.step == len(records) == 10


def test_attempts_that_fail_begin_again_with_other_parameters() -> None:
    spec = spec_of(max_loss=1e-30)
    state, records = trained(spec)
    assert state.step == len(records) == 40
    assert len({record.loss for record in records[::10]}) == 4
    assert [record.learning_rate for record in records[:10]] == [record.learning_rate for record in records[10:20]]


def test_an_attempt_is_what_a_training_without_restarts_is() -> None:
    spec = spec_of(max_loss=1e9)
    _, records = trained(spec)
    task = make_task("levenshtein-distance", **TASK)
    model = make_model("grid-recurrence", task, **spec.model_config.model_dump())
    state = TrainingState(model, spec.recipe.attempt)
    assert list(training_steps(state, task, spec.recipe.attempt, seed=0)) == records


def test_the_loss_of_the_last_tenth_decides() -> None:
    _, records = trained(spec_of(max_loss=1e-30))
    last = records[9].loss
    for limit, num_steps in ((last * 1.01 + 1e-9, 10), (last * 0.99 - 1e-9, 20)):
        assert len(trained(spec_of(max_loss=max(limit, 1e-30)))[1]) >= num_steps
    assert len(trained(spec_of(max_loss=last * 1.01 + 1e-9))[1]) == 10


@pytest.mark.parametrize("stop_at", [7, 10, 20, 33])
def test_a_run_that_is_interrupted_goes_on_to_the_same_weights(tmp_path: Path, stop_at: int) -> None:
    spec = spec_of(max_loss=1e-30)
    execute(spec, tmp_path / "whole", PLAN)
    requests = iter([False] * (stop_at - 1) + [True])
    with pytest.raises(Interrupted):
        execute(spec, tmp_path / "parts", PLAN, stop_requested=lambda: next(requests))
    execute(spec, tmp_path / "parts", PLAN)
    whole, parts = (load_run(tmp_path / name / spec.id) for name in ("whole", "parts"))
    assert whole.metrics == parts.metrics
    for name, weights in whole.model.state_dict().items():
        assert torch.equal(weights, parts.model.state_dict()[name])


def test_a_run_that_ends_early_is_trained(tmp_path: Path) -> None:
    spec = spec_of(max_loss=1e9)
    result = execute(spec, tmp_path, PLAN)
    run = load_run(tmp_path / spec.id)
    assert (run.steps_done, run.is_trained, result.training.step) == (10, True, 10)
    assert execute(spec, tmp_path, PLAN) == result


def test_a_specification_without_restarts_is_read_back_without_those_of_the_preset() -> None:
    spec = make_spec("levenshtein-distance", "grid-recurrence", {"task": TASK, "train": {"restarts": None}})
    assert spec_from_json(spec.to_json()) == spec
    assert spec.recipe.restarts is None


def test_attempts_are_of_equal_size() -> None:
    with pytest.raises(ValueError, match="steps: expected ten or more for each of 4 attempts"):
        Recipe(steps=42, restarts={"attempts": 4, "max_loss": 0.1})
    assert "restarts" not in Recipe().model_dump()
