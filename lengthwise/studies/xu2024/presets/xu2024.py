"""The recipe of Xu and Sato (2024) for dynamic programming."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, PUBLISHED, TORCH_ADAM, Preset


@PRESETS.register("xu2024")
class Xu2024(Preset):
    """Looped transformers as in Xu and Sato (2024): AdamW, 781,250 steps, with warm-up in the first twentieth.

    In the paper these steps are 100 passes over 1,000,000 strings. Here strings are always new, unless
    `train.num_examples` sets their number.

    The length of the problem has to be given.

    Source: Xu and Sato (2024), Appendix C, for edit distance and longest common subsequence.
    Differs from the source: weight decay applies to all parameters, including gains and biases, and the learning rate
        warms up step by step. The paper specifies neither.
    """

    train: ClassVar = {
        **PUBLISHED,
        "steps": 781_250,
        "optimizer": {
            **TORCH_ADAM,
            "name": "adamw",
            "weight_decay": 0.01,
            "schedule": "linear",
            "warmup_steps": 39_063,
        },
    }
    models: ClassVar = {
        "looped-transformer": {"d_model": 256, "num_heads": 4},
        "transformer": {"d_model": 256, "num_heads": 4, "num_layers": 12},
    }
