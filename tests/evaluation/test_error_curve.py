"""Squared errors by position, their intervals, and what has no error or no accuracy."""

import pytest
import torch

from lengthwise.evaluation.error_curve import bootstrap_interval, error_curve
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import SequenceModel, make_model
from lengthwise.presets import PRESETS
from lengthwise.randomness import generator_for
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import VectorTask, make_task
from lengthwise.training.loop import train
from lengthwise.training.recipe import OptimizerRecipe, Recipe

TREES = make_task("decision-tree", depth=2, dims=5, max_points=9)


def constant(number: float) -> SequenceModel:
    """A model that always answers the same number."""
    model = make_model("transformer", TREES, d_model=8, num_heads=2)
    linear = model.readout[1]
    torch.nn.init.zeros_(linear.weight)
    torch.nn.init.constant_(linear.bias, number)
    return model


def test_errors_are_those_of_the_answers_position_by_position() -> None:
    assert isinstance(TREES, VectorTask)
    model = make_model("looped-transformer", TREES, d_model=8, num_heads=2, num_loops=2, variant="code")
    curve = error_curve(model, TREES, 7, num_prompts=300, seed=3)
    batch = TREES.sample(300, 7, generator_for(3, "evaluation", 7))
    with torch.no_grad():
        answers = model(batch.inputs)[..., 0]
    assert (curve.length, curve.num_prompts, curve.input_dim) == (7, 300, 5)
    assert [point.num_examples for point in curve.points] == list(range(7))
    for point in curve.points:
        position = 2 * point.num_examples
        expected = float((answers[:, position] - batch.targets[:, position]).square().mean())
        assert point.error == pytest.approx(expected, rel=1e-5)
        assert point.low < point.error < point.high
    assert curve.last is curve.points[-1]
    assert curve.mean == pytest.approx(sum(point.error for point in curve.points) / 7)


def test_the_best_constant_scores_the_baseline() -> None:
    assert isinstance(TREES, VectorTask)
    curves = [error_curve(constant(number), TREES, 9, num_prompts=4_000) for number in (0.0, 1.0)]
    assert curves[0].baseline == TREES.baseline(9)
    assert curves[0].mean == pytest.approx(curves[0].baseline, rel=0.05)
    assert curves[1].mean == pytest.approx(curves[0].baseline + 1.0, rel=0.05)


def test_intervals_hold_nine_means_in_ten() -> None:
    """Of samples whose mean is known; 90 % of 400 have a standard error of 1.5 %."""
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(60, 400, generator=generator, dtype=torch.float64).exp()
    low, high = bootstrap_interval(samples, generator)
    mean = torch.e**0.5
    covered = ((low < mean) & (mean < high)).double().mean()
    assert 0.8 < float(covered) < 0.95


def test_plans_measure_prompts_as_long_as_the_task_has_them() -> None:
    assert isinstance(TREES, VectorTask)
    model = constant(0.0)
    plan = EvaluationPlan(dense=(41, 500), dense_strings=20)
    assert plan.measure_errors(model, TREES).length == 9
    assert plan.model_copy(update={"dense": (1, 4)}).measure_errors(model, TREES).length == 4


@pytest.mark.unchecked
def test_what_cannot_be_measured_is_one_sentence() -> None:
    assert isinstance(TREES, VectorTask)
    model = make_model("transformer", TREES, d_model=8, num_heads=2)
    with pytest.raises(
        ValueError, match="task: expected a task whose answers are classes, got decision-tree, whose answers are"
    ):
        length_curve(model, TREES, [4])
    with pytest.raises(ValueError, match="length: decision-tree has no strings of length 10"):
        error_curve(model, TREES, 10)
    with pytest.raises(ValueError, match="num_prompts: expected a whole number from 1 to 100,000, got 0"):
        error_curve(model, TREES, 4, num_prompts=0)
    with pytest.raises(ValueError, match="got rnn, which reads symbols; choose from looped"):
        make_model("rnn", TREES)
    with pytest.raises(ValueError, match=r"train\.augmentation: expected no pads for decision-tree, whose inputs are"):
        train(model, TREES, Recipe(steps=1, max_length=4, augmentation={"state_noise": 0, "late_state_noise": 0}))


@pytest.mark.unchecked
def test_models_for_other_inputs_are_named_before_they_read_any() -> None:
    recipe = make_spec("parity", "gru", {"train": {"steps": 1, "min_length": 1, "max_length": 4}}).recipe
    fewer = make_task("decision-tree", depth=2, dims=3, max_points=9)
    for model in (make_model("gru", make_task("parity")), make_model("transformer", fewer, d_model=8, num_heads=2)):
        for run in (lambda model=model: error_curve(model, TREES, 4), lambda model=model: train(model, TREES, recipe)):
            with pytest.raises(
                ValueError, match="model: expected a model that reads the vectors of the task, with 5 num"
            ):
                run()


def test_training_on_numbers_lowers_their_error() -> None:
    assert isinstance(TREES, VectorTask)
    model = make_model("looped-transformer", TREES, d_model=16, num_heads=2, num_loops=2, injection="input")
    recipe = Recipe(
        **{**PRESETS["plain"].train, "steps": 60, "batch_size": 32, "max_length": 9, "supervision": "prefix"}
    )
    recipe = recipe.model_copy(update={"optimizer": OptimizerRecipe(name="adamw", learning_rate=0.01, warmup_steps=5)})
    before = error_curve(model, TREES, 9, num_prompts=400)
    train(model, TREES, recipe)
    assert error_curve(model, TREES, 9, num_prompts=400).mean < 0.9 * before.mean


def test_one_prompt_is_enough() -> None:
    (first, *_) = error_curve(constant(0.0), TREES, 2, num_prompts=1, seed=5).points
    target = TREES.sample(1, 2, generator_for(5, "evaluation", 2)).targets[0, 0]
    assert first.error == pytest.approx(float(target.square()), rel=1e-5)
    with pytest.raises(ValueError, match="length"):
        error_curve(constant(0.0), TREES, 10)
