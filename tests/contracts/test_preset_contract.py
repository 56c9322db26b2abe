"""What every registered preset promises, whatever its name."""

import pytest

from lengthwise.models import MODELS
from lengthwise.presets import PRESETS
from lengthwise.runs.spec import make_spec
from lengthwise.training.recipe import Recipe
from lengthwise.validation import validated


@pytest.fixture(params=list(PRESETS))
def name(request) -> str:
    return request.param


def test_is_a_recipe(name: str) -> None:
    validated(Recipe, PRESETS[name].train, path="train")


def test_its_settings_cannot_be_changed(name: str) -> None:
    goals = PRESETS[name].goals.values()
    for settings in (PRESETS[name].train, PRESETS[name].models, *(one for goal in goals for one in goal.models)):
        with pytest.raises(TypeError):
            settings["steps"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("name", "model"), [(name, model) for name in PRESETS for model in PRESETS[name].models], indirect=["name"]
)
def test_trains_the_models_that_it_names(name: str, model: str) -> None:
    spec = make_spec("parity", model, {}, preset=name)
    expected = MODELS[model].Config(**PRESETS[name].models[model])
    assert spec.model_config == expected != MODELS[model].Config()


@pytest.mark.parametrize("model", MODELS)
def test_a_model_with_goals_in_several_presets_names_one_of_them(model: str) -> None:
    with_goal = [name for name in PRESETS if model in PRESETS[name].goals]
    named = MODELS[model].default_goal_preset
    assert named in with_goal if len(with_goal) > 1 else named in ("", *with_goal)


def test_some_preset_names_models() -> None:
    assert any(PRESETS[name].models for name in PRESETS)


@pytest.mark.parametrize(
    ("name", "model"), [(name, model) for name in PRESETS for model in PRESETS[name].goals], indirect=["name"]
)
def test_trains_models_until_a_level_is_reached(name: str, model: str) -> None:
    """Each of the models that it tries, and at a pace by which training ends early."""
    attempts = PRESETS[name].goals[model]
    spec = make_spec("parity", model, {}, preset=name, goal="solved")
    assert spec.recipe.pace is not None
    assert spec.goal is not None
    assert [dict(changes) for changes in attempts.models] == list(spec.goal.models)
    for number, changes in enumerate(attempts.models):
        config = spec.attempt(number).model_config.model_dump()
        assert changes.items() <= config.items()
    with pytest.raises(TypeError):
        attempts.train["steps"] = 1  # type: ignore[index]


def test_some_preset_trains_until_a_level_is_reached() -> None:
    assert any(PRESETS[name].goals for name in PRESETS)
