"""Runs of every model, each by a few steps, that tests train and measure on several devices."""

from functools import cache, partial
from typing import Any

import torch

from lengthwise.evaluation.error_curve import error_curve
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.perplexity import perplexity_curve
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.models import MODELS
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.tasks import VectorTask
from lengthwise.text.language import LanguageTask
from lengthwise.training.loop import TrainingState, training_steps

SETTINGS = {"train": {"batch_size": 4, "min_length": 1, "max_length": 9, "steps": 4}}


def short(name: str, task: str = "parity", /, **sections: dict[str, Any]) -> RunSpec:
    train = SETTINGS["train"] | sections.pop("train", {})
    return make_spec(task, name, {"train": train, **sections})


LOOPED = {"d_model": 8, "num_heads": 2, "num_loops": 1}

_MADE = {
    name: partial(short, name, model={"num_loops": 2} if name == "looped-transformer" else {}) for name in MODELS
} | {
    f"positions {name}": partial(
        short,
        "transformer",
        model={"positions": name, "d_model": 8, "num_heads": 2, "num_layers": 1}
        | ({"learned_positions": 40} if name == "learned" else {}),
        train={"supervision": "prefix"},
    )
    for name in POSITIONS
}
_MADE |= {
    "vectors": partial(short, "transformer", "decision-tree", task={"depth": 2, "dims": 3, "max_points": 9}),
    "answers inside": partial(
        short, "transformer", "edit-distance", model={"d_model": 8, "num_heads": 2, "num_layers": 1}
    ),
    "loops by length": partial(short, "looped-transformer", model=LOOPED | {"loops": "length"}),
    "loops by states": partial(short, "looped-transformer", model=LOOPED | {"loops": "converged", "max_loops": 4}),
    "states": partial(short, "regular-gpt", train={"states": {"batch_size": 4, "max_length": 9, "combined": 8}}),
    "text": partial(short, "transformer", "text", model={"d_model": 8, "num_heads": 2, "num_layers": 1}),
    "text, streamed": partial(short, "gru", "text", model={"d_model": 8}),
    "contraction": partial(short, "gru", model={"d_model": 8}, train={"contraction": {"after": 0.0}}),
}
CASES = tuple(_MADE)


@cache
def spec_of(case: str) -> RunSpec:
    """Made when a test asks for it: all of them take seconds."""
    return _MADE[case]()


def trained(spec: RunSpec, device: torch.device) -> tuple[TrainingState, list[float]]:
    """After three of four steps, the last in the second half of training; their losses and norms of gradients."""
    state, reported = TrainingState(spec.make_model().to(device), spec.recipe, spec.task), []
    for record in training_steps(state, spec.task, spec.recipe, seed=0):
        reported += [record.loss, record.gradient_norm]
        if record.step == 3:
            break
    return state, reported


@cache
def trained_here(case: str) -> tuple[TrainingState, list[float]]:
    return trained(spec_of(case), torch.device("cpu"))


def measured(state: TrainingState, spec: RunSpec) -> object:
    if isinstance(spec.task, VectorTask):
        return error_curve(state.model, spec.task, 9, num_prompts=3)
    if isinstance(spec.task, LanguageTask):
        return perplexity_curve(state.model, spec.task, [3, 9], num_chunks=3)
    lengths = [length for length in (3, 8, 9) if spec.task.is_legal_length(length)]
    return length_curve(state.model, spec.task, lengths, num_strings=5)
