"""What a setting of the optimizer promises: it changes the training, or a value other than its default is refused."""

import pytest
import torch

from lengthwise.presets import PRESETS
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.training.loop import train
from lengthwise.training.recipe import OptimizerRecipe, Recipe

OTHERS = {
    "learning_rate": 0.02,
    "matrix_learning_rate": 0.03,
    "betas": (0.5, 0.5),
    "weight_decay": 0.5,
    "schedule": "linear",
    "warmup_steps": 2,
    "clip_norm": 0.02,
    "clip_ratio": 0.1,
    "relaxation": 1.0,
    "floor": 0.1,
    "prior": 0.3,
    "prior_by_size": True,
}
MODELS = {
    "muon": ("transformer", "plain", {"d_model": 8, "num_heads": 2, "num_layers": 1}),
    "adamw": ("rnn", "recurrent", {"d_model": 8}),
    "adam": ("rnn", "recurrent", {"d_model": 8}),
    "baum-welch": ("block-linear-rnn", "likelihood", {"d_model": 4, "block_dim": 4}),
}


def spec_with(name: str, **settings: object) -> RunSpec:
    model, preset, sizes = MODELS[name]
    training = {"steps": 4, "batch_size": 4, "min_length": 1, "max_length": 6, "optimizer": {"name": name, **settings}}
    return make_spec("parity", model, {"model": sizes, "train": training}, preset=preset)


def weights_after(spec: RunSpec) -> torch.Tensor:
    net = spec.make_model()
    train(net, spec.task, spec.recipe, seed=0)
    return torch.cat([weights.detach().flatten() for weights in net.parameters()])


@pytest.mark.parametrize("name", list(MODELS))
def test_every_setting_of_the_optimizer_changes_the_training_or_is_refused(name: str) -> None:
    assert {"name", *OTHERS} == OptimizerRecipe.model_fields.keys()
    before = weights_after(spec_with(name))
    for setting, value in OTHERS.items():
        if OptimizerRecipe.uses(setting, {"name": name}):
            assert not torch.equal(before, weights_after(spec_with(name, **{setting: value}))), setting
            continue
        sentence = rf"^train.optimizer.{setting}: expected its default, .* has no effect with name='{name}', got "
        with pytest.raises(ValueError, match=sentence):
            spec_with(name, **{setting: value})
        with pytest.raises(ValueError, match=f"^{setting}: expected its default, "):
            OptimizerRecipe(name=name, **{setting: value})


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_have_no_setting_without_effect(preset: str) -> None:
    Recipe(**PRESETS[preset].train)


def test_settings_of_a_preset_for_another_optimizer_or_curriculum_are_dropped() -> None:
    as_adamw = {"train": {"optimizer": {"name": "adamw"}}}
    bounded = make_spec("parity", "transformer", as_adamw, preset="bounded").recipe.optimizer
    assert bounded == OptimizerRecipe(name="adamw", learning_rate=2e-3, weight_decay=0.0)
    likelihood = make_spec("parity", "block-linear-rnn", as_adamw, preset="likelihood-last").recipe.optimizer
    assert likelihood == OptimizerRecipe(name="adamw")
    rising = make_spec("parity", "rnn", {"train": {"rise": {"by": 2}}}, preset="chi2023").recipe
    assert (rising.rise.by, rising.length_sampling) == (2, "short-first")


def test_settings_that_a_user_gives_are_refused_next_to_a_preset() -> None:
    given = {"train": {"optimizer": {"name": "adamw", "matrix_learning_rate": 0.02}}}
    with pytest.raises(
        ValueError,
        match=r"^train.optimizer.matrix_learning_rate: .* leave matrix_learning_rate out or choose name='muon'",
    ):
        make_spec("parity", "transformer", given, preset="bounded")


def test_a_step_of_baum_welch_records_no_learning_rate() -> None:
    for name, has_rate in (("baum-welch", False), ("adam", True)):
        spec = spec_with(name)
        assert [record.learning_rate > 0 for record in train(spec.make_model(), spec.task, spec.recipe)] == [
            has_rate
        ] * 4
