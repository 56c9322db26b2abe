"""The base class of presets, and the settings that several presets share."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from lengthwise.registry import Registry

Settings = Mapping[str, Any]
"""Settings by name. A value may again be a mapping of settings."""


class GoalPreset(NamedTuple):
    """The changes to `train` and to the model's settings if a model is trained until it reaches a goal.

    `models` contains the changes to the model's settings for each attempt. After the last entry, attempts begin again
    with the first entry. `sized_by_answers` names settings that are numbers of states, where each state gives one
    answer. Such a setting is raised to at least the number of the task's answers. An attempt that then equals an
    earlier attempt is left out.
    """

    train: Settings
    models: tuple[Settings, ...] = (MappingProxyType({}),)
    sized_by_answers: frozenset[str] = frozenset()

    def models_for(self, num_answers: int) -> list[Settings]:
        """Return the changed model settings of each attempt, with sizes that suffice for this number of answers.

        Each setting in `sized_by_answers` is raised to the number of answers if it is smaller.

        Example:
            >>> GoalPreset({}, ({"d_model": 64}, {"d_model": 128}), frozenset({"d_model"})).models_for(120)
            [{'d_model': 120}, {'d_model': 128}]
        """
        if not self.sized_by_answers:
            return [*self.models]
        raised = [
            {name: max(num_answers, value) if name in self.sized_by_answers else value for name, value in one.items()}
            for one in self.models
        ]
        return [one for number, one in enumerate(raised) if one not in raised[:number]]


class Preset:
    """A named set of changes: to the defaults of `Recipe`, and to the defaults of the models in `models`.

    The class is never instantiated: a run's specification merges a preset with the given settings and validates the
    result. The docstring of a preset names the source of the preset's numbers. `goals` contains further changes for
    some models, which apply if the model is trained until it reaches a goal.
    """

    name: ClassVar[str]
    train: ClassVar[Settings]
    models: ClassVar[Mapping[str, Settings]] = MappingProxyType({})
    goals: ClassVar[Mapping[str, GoalPreset]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        # All runs of a preset share its settings, so no run may change them.
        cls.goals = MappingProxyType({model: _frozen(goal) for model, goal in cls.goals.items()})
        cls.models = MappingProxyType(cls.models)
        if "train" in vars(cls):
            cls.train = MappingProxyType(cls.train)


def _frozen(goal: GoalPreset) -> GoalPreset:
    return goal._replace(train=MappingProxyType(goal.train), models=tuple(map(MappingProxyType, goal.models)))


PRESETS: Registry[type[Preset]] = Registry("preset", "lengthwise.presets", "lengthwise.studies.*.presets", base=Preset)

UNAUGMENTED: Settings = {
    "late_consistency": 0.0,
    "augmentation": {
        "padding": 0.0,
        "pads_per_symbol": 0.5,
        "leading_padding": 0.0,
        "state_noise": 0.0,
        "late_state_noise": 0.0,
    },
}
"""Settings of `train` that turn off pads in strings and noise on states."""

UNIFORM: Settings = {**UNAUGMENTED, "lengths": "legal", "length_sampling": "uniform"}
"""Settings without pads and noise, with all possible lengths equally often."""

PUBLISHED: Settings = {**UNIFORM, "ema_decay": 0.0, "checkpoint_every": 5_000}
"""Settings that most published recipes share: the final weights are not averaged over steps."""

EVERY_PREFIX: Settings = {**UNIFORM, "min_length": 39, "supervision": "prefix"}
"""Settings that supervise every prefix of strings of 39 or 40 symbols, so that shorter strings are also learned."""

TORCH_ADAM: Settings = {
    "name": "adam",
    "learning_rate": 1e-4,
    "betas": (0.9, 0.999),
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup_steps": 0,
    "clip_norm": 1e9,
    "clip_ratio": 0.0,
}
"""Adam with torch's default betas, at a constant learning rate, without clipping."""

COSINE_ADAMW: Settings = {**TORCH_ADAM, "name": "adamw", "schedule": "cosine"}
"""AdamW with torch's default betas, on a cosine schedule, without clipping."""
