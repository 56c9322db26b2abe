"""A recipe and a net whose training takes a second."""

from lengthwise.models import make_model
from lengthwise.training.loop import TrainingState
from lengthwise.training.recipe import Recipe

SMALL = {"d_model": 16, "num_heads": 2}


def small_recipe(**changes) -> Recipe:
    return Recipe(**{"steps": 30, "batch_size": 16, "max_length": 12, "checkpoint_every": 10} | changes)


def small_state(task, recipe: Recipe) -> TrainingState:
    return TrainingState(make_model("regular-gpt", task, **SMALL), recipe)
