"""The experiment about transformers that are proved right up to a length."""

from collections import Counter

import pytest

from lengthwise.experiment import EXPERIMENTS, Experiment
from lengthwise.presets import PRESETS

POSITIONS = ("none", "alibi", "t5")

OTHERS = ("kerple-log", "kerple-power", "fire", "rotary", "xl")
"""Encodings that are trained on Tomita 1 alone."""


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return EXPERIMENTS["transformers/proved"]("small")


def test_each_row_has_the_layers_and_positions_of_its_name(experiment: Experiment) -> None:
    assert len({cell.row for cell in experiment.cells}) == len(experiment.cells)
    for cell in experiment.cells:
        _, layers, positions = cell.row.split(", ")
        for spec in cell.specs:
            config = spec.model_config
            assert spec.model_name == "transformer"
            assert layers == ("1 layer" if config.num_layers == 1 else f"{config.num_layers} layers")
            assert positions == config.positions
    per_language = Counter(cell.row.rpartition(", ")[0] for cell in experiment.cells if not cell.row.endswith(OTHERS))
    assert set(per_language.values()) == {len(POSITIONS)}
    others = [cell.row for cell in experiment.cells if cell.row.endswith(OTHERS)]
    assert others == [f"Tomita 1, 1 layer, {name}" for name in OTHERS]
    # Languages of occurring symbols have one layer; one of them, and all languages of orders, also have two.
    assert Counter(name.rpartition(", ")[2] for name in per_language) == {"1 layer": 11, "2 layers": 8}


def test_every_net_is_trained_by_the_preset_with_the_settings_that_the_page_states(experiment: Experiment) -> None:
    preset = PRESETS["bounded"]
    for cell in experiment.cells:
        for spec in cell.specs:
            recipe, config = spec.recipe, spec.model_config
            assert (recipe.steps, recipe.max_length) == (preset.train["steps"], preset.train["max_length"])
            assert recipe.augmentation.state_noise == preset.train["augmentation"]["state_noise"]
            assert recipe.optimizer.learning_rate == preset.train["optimizer"]["learning_rate"]
            assert (recipe.pace.contract_steps, recipe.pace.patience) == (800, 400)
            assert (config.d_model, config.num_heads) == (16, 1)
            assert spec.goal is None
    assert len({spec.recipe for cell in experiment.cells for spec in cell.specs}) == 1, "no setting depends on the task"


def test_languages_that_nets_can_learn_have_more_seeds(experiment: Experiment) -> None:
    occurring = ("Tomita 1, 1 layer", "no c, 1 layer", "only c, 1 layer", "all symbols equal, 1 layer")
    learned = ("Tomita 1, 2 layers", "ab occurs, 2 layers")
    for cell in experiment.cells:
        count = 5 if cell.row.startswith(occurring) else 3 if cell.row.startswith(learned) else 1
        count = 3 if cell.row.endswith(OTHERS) else count
        assert [spec.seed for spec in cell.specs] == [*range(count)]


@pytest.mark.parametrize("scale", ["smoke", "small"])
def test_every_net_is_certified(scale: str) -> None:
    assert EXPERIMENTS["transformers/proved"](scale).plan.certificate
