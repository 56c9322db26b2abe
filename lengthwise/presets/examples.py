"""The preset for labeled strings of a user."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("examples")
class ExamplesPreset(Preset):
    """Variant of preset `machine` for examples: 1,000 steps at all lengths, short lengths first.

    The net is one block of 32 states. By default, each string has one label (`supervision="last"`). If each symbol has
    a label, set `supervision="prefix"`.

    Source: ours.
    """

    train: ClassVar = {
        **UNAUGMENTED,
        "steps": 1_000,
        "batch_size": 256,
        "lengths": "legal",
        "length_sampling": "short-first",
        "optimizer": {"name": "adamw", "learning_rate": 0.1, "weight_decay": 0.1},
    }
    models: ClassVar = {"block-linear-rnn": {"d_model": 32, "block_dim": 32, "hidden": 0, "read": "mixture"}}
