"""The penalty that makes recurrent models contract."""

import pytest
import torch

from lengthwise.models import MODELS, make_model
from lengthwise.presets import PRESETS
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.training.contraction import excess_growth, growth
from lengthwise.training.loop import train
from lengthwise.training.recipe import ContractionRecipe, Recipe
from lengthwise.training.requirements import check_model

TASK = make_task("parity")
STRINGS = torch.randint(2, (3, 7), generator=torch.Generator().manual_seed(0))


def test_the_growth_of_an_elman_net_is_that_of_its_formula() -> None:
    """Each number is tanh of a sum whose ends are reached at a corner of the intervals, sign by sign."""
    model = make_model("rnn", TASK, d_model=5, activation="tanh").double()
    measured, radius = growth(model, STRINGS, 0.2), 0.2
    assert measured.shape == (3, 7, 5)
    with torch.no_grad():
        state = model.initial_state(3)
        for index, token in enumerate(STRINGS.unbind(1)):
            sums = state @ model.hidden_weight.T + model.input_weight.T[token]
            spread = radius * model.hidden_weight.abs().sum(1)
            expected = ((sums + spread).tanh() - (sums - spread).tanh()) / (2 * radius)
            torch.testing.assert_close(measured[:, index].detach(), expected, rtol=0, atol=1e-4)
            _, state = model.step(token, state)


@pytest.mark.parametrize("kind", ["gru", "lstm", "rnn"])
def test_the_excess_has_a_gradient_and_none_below_the_limit(kind: str) -> None:
    model = make_model(kind, TASK, d_model=8)
    excess_growth(model, STRINGS, ContractionRecipe(weight=2.0, max_growth=0.0)).backward()
    assert any(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters())
    assert float(excess_growth(model, STRINGS, ContractionRecipe(max_growth=1e6)).detach()) == 0


def test_training_with_it_makes_steps_contract() -> None:
    settings = {"min_length": 1, "max_length": 6, "steps": 200, "lengths": "legal", "supervision": "prefix"}
    settings |= {"optimizer": {"learning_rate": 5e-3}}
    grown = []
    for contraction in (None, {"weight": 3.0, "max_growth": 0.3, "after": 0.0}):
        train_settings = settings | ({"contraction": contraction} if contraction else {})
        spec = make_spec("parity", "rnn", {"model": {"d_model": 16, "activation": "tanh"}, "train": train_settings})
        model = spec.make_model()
        train(model, spec.task, spec.recipe)
        grown.append(float(growth(model, STRINGS, 0.1).detach().mean()))
    assert grown[1] < 0.7 * grown[0]


def test_it_begins_when_the_recipe_says_so() -> None:
    recipe = Recipe(steps=10, contraction=ContractionRecipe(after=0.35))
    assert [recipe.contraction_at(step) is not None for step in range(10)] == [False] * 4 + [True] * 6
    assert Recipe(steps=10).contraction_at(9) is None


def test_recipes_without_it_are_written_as_before() -> None:
    assert "contraction" not in Recipe().model_dump()


def test_a_model_that_does_not_bound_its_steps_is_rejected() -> None:
    recipe = Recipe(**PRESETS["recurrent"].train, contraction=ContractionRecipe())
    with pytest.raises(ValueError, match=r"train.contraction: expected a model that computes bounds on its next"):
        check_model(MODELS["s4d"], recipe)
    for kind in ("gru", "lstm", "rnn"):
        check_model(MODELS[kind], recipe)
