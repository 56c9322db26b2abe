"""The preset for nets whose steps end as reflections."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, Preset


@PRESETS.register("reflecting")
class Reflecting(Preset):
    """Variant of preset `recurrent` for a `block-linear-rnn` of one block of 4 x 4 reflections.

    Training takes 2,000 steps at a learning rate of 0.03. Reflections preserve distances between states, so a
    certificate can bound the length up to which the net is right.

    Source: ours.
    """

    train: ClassVar = {
        **EVERY_PREFIX,
        "steps": 2_000,
        "optimizer": {"name": "adamw", "learning_rate": 0.03, "weight_decay": 0.1},
    }
    models: ClassVar = {"block-linear-rnn": {"d_model": 4, "block_dim": 4, "hidden": 0, "columns": "reflected"}}
