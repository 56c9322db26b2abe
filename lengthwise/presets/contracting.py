"""The preset for recurrent nets that are to be proved right at every length."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, Preset


@PRESETS.register("contracting")
class Contracting(Preset):
    """Variant of preset `recurrent` for an `rnn`, `gru` or `lstm` of 32 units, with a penalty that allows certificates.

    Training takes 4,000 steps at a learning rate of 0.003. Lengths grow from 1 to 40, each after the previous length is
    learned. From step 1,200 on, a penalty limits the growth of intervals in a step of the net (`ContractionRecipe`).
    The net then contracts, and a net that contracts can be proved right at every length.

    Source: ours.
    """

    train: ClassVar = {
        **EVERY_PREFIX,
        "steps": 4_000,
        "min_length": 1,
        "length_sampling": "growing",
        "contraction": {"weight": 0.5},
        "optimizer": {"name": "adamw", "learning_rate": 3e-3, "weight_decay": 0.0},
    }
    models: ClassVar = {"rnn": {"d_model": 32, "activation": "tanh"}, "gru": {"d_model": 32}, "lstm": {"d_model": 32}}
