"""What is trained at lengths up to 40, RegularGPT by preset `fast` and the nets of the demo, is right far beyond."""

from pathlib import Path

import pytest
import torch

from lengthwise.certification.certify import certify
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.runs.execute import execute
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.training.loop import train


@pytest.mark.slow
@pytest.mark.parametrize("spec", EXPERIMENTS["demo"]("small").specs, ids=lambda spec: spec.id)
def test_what_the_demo_claims(spec: RunSpec, tmp_path: Path) -> None:
    result = execute(spec, tmp_path, EvaluationPlan(dense=(41, 80), dense_strings=16))
    assert result.certificate is not None
    assert (result.training.status, result.certificate.level) == ("reached", "proved")
    assert len(result.training.attempts) == 1
    assert all(point.accuracy == 1.0 for curve in result.curves for point in curve.points)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["parity", "even-pairs", "cycle-navigation"])
def test_regular_gpt_is_right_far_beyond(task: str) -> None:
    spec = make_spec(task, "regular-gpt", {"train": {"steps": 5_000}})
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=spec.seed)
    measured = dict(EvaluationPlan().measure(model, spec.task))
    assert measured["dense"].mean() >= 0.9999
    assert measured["dense"].min() >= 0.99
    assert measured["long"].min() == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("task", "fields"), [("bounded-dyck", {"depth": 2}), ("tomita", {"index": 6})])
def test_near_misses_are_told_apart(task: str, fields: dict) -> None:
    spec = make_spec(task, "regular-gpt", {"task": fields})
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=0)
    assert dict(EvaluationPlan(dense_strings=64).measure(model, spec.task))["dense"].balanced().mean() >= 0.9999


@pytest.mark.slow
def test_a_larger_chunk_learns_too() -> None:
    spec = make_spec("parity", "regular-gpt", {"model": {"chunk_size": 3}})
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=0)
    assert dict(EvaluationPlan().measure(model, spec.task))["dense"].mean() >= 0.999


@pytest.mark.slow
def test_a_net_whose_states_became_codes_is_right_at_every_length() -> None:
    spec = make_spec("even-pairs", "codebook-gpt", {})
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=0)
    certificate = certify(model, spec.task)
    assert certificate.level == "proved"
    assert certificate.evidence is not None
    assert certificate.evidence.method == "codes"


@pytest.mark.slow
def test_the_state_of_pads_settles() -> None:
    """Long strings meet pads merged many times; preset `fast` makes them converge. States have norm 8."""
    spec = make_spec("even-pairs", "regular-gpt", {}, seed=0)
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=0)
    assert pad_movements(model)[16] < 0.05


def pad_movements(model: RegularGPT) -> list[float]:
    """How far the state of a window of pads moves from each level to the next."""
    layer, pad = model.layers[0], model.tree.leaves[0]
    movements = []
    with torch.no_grad():
        for _ in range(17):
            _, value = layer.key_value(layer.normalize(pad))
            merged = layer.output(pad, value.flatten(-2))
            movements.append(float((merged - pad).norm()))
            pad = merged
    return movements
