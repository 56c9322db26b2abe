"""RegularGPT, trained by preset `fast` on the final answer at lengths up to 40, is right far beyond."""

import pytest

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.spec import make_spec
from lengthwise.training.loop import train


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("task", ["parity", "even-pairs", "cycle-navigation"])
def test_what_the_demo_claims(task: str, seed: int) -> None:
    spec = make_spec(task, "regular-gpt", {}, seed=seed)
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=seed)
    measured = dict(EvaluationPlan().measure(model, spec.task))
    assert measured["dense"].mean() >= 0.9999
    assert measured["dense"].min() >= 0.99
    assert measured["long"].min() == 1.0


@pytest.mark.slow
def test_a_larger_chunk_learns_too() -> None:
    spec = make_spec("parity", "regular-gpt", {"model": {"chunk_size": 3}})
    model = spec.make_model()
    train(model, spec.task, spec.recipe, seed=0)
    assert dict(EvaluationPlan().measure(model, spec.task))["dense"].mean() >= 0.999
