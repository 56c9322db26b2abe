"""Machines learned from examples in fewer steps: a thousand of 256 strings take seconds, and simple ones need less."""

from collections.abc import Callable

from lengthwise.presets.base import PRESETS

STEPS = 400


def train_for_fewer_steps(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Each net of a search is trained for 400 steps; slow tests train for as many as users do."""
    preset = PRESETS["examples"]
    replace(preset, "train", {**preset.train, "steps": STEPS})
