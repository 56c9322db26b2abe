"""What a preset is, and the settings that several presets share."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from lengthwise.registry import Registry

Settings = Mapping[str, Any]


class GoalPreset(NamedTuple):
    """How a model is trained until a certificate reaches a level: changes of `train`, and what is tried in turn.

    `models` has the settings of the model that each attempt changes; after the last one the first is tried again.
    """

    train: Settings
    models: tuple[Settings, ...] = (MappingProxyType({}),)


class Preset:
    """A named recipe: what it changes in the defaults of `Recipe`, and in those of the models that it names.

    It is a description, which is never instantiated; a run's specification merges it with the settings given and
    validates the whole. `source`: where its numbers come from. `goals`: how it trains a model until a level is
    reached.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    train: ClassVar[Settings]
    models: ClassVar[Mapping[str, Settings]] = MappingProxyType({})
    goals: ClassVar[Mapping[str, GoalPreset]] = MappingProxyType({})


PRESETS: Registry[type[Preset]] = Registry("preset", "lengthwise.presets", "lengthwise.studies.*.presets", base=Preset)


UNAUGMENTED: Settings = MappingProxyType(
    {
        "late_consistency": 0.0,
        "augmentation": {
            "padding": 0.0,
            "pads_per_symbol": 0.5,
            "leading_padding": 0.0,
            "state_noise": 0.0,
            "late_state_noise": 0.0,
        },
    }
)
"""Strings and states as they are: neither pads nor noise."""

EVERY_PREFIX: Settings = MappingProxyType(
    {
        **UNAUGMENTED,
        "min_length": 39,
        "lengths": "legal",
        "length_sampling": "uniform",
        "supervision": "prefix",
    }
)
"""Every prefix of strings of 39 and 40 symbols is supervised, so that these show all shorter strings, too."""

TORCH_ADAM: Settings = MappingProxyType(
    {
        "name": "adam",
        "learning_rate": 1e-4,
        "betas": (0.9, 0.999),
        "weight_decay": 0.0,
        "schedule": "constant",
        "warmup_steps": 0,
        "clip_norm": 1e9,
        "clip_ratio": 0.0,
    }
)
"""Adam with torch's defaults at a constant rate, gradients not clipped."""
