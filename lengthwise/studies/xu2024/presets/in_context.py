"""The recipe of Xu and Sato (2024) for decision trees in context."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, TORCH_ADAM, UNAUGMENTED, Preset

_SIZES = {"d_model": 256, "num_heads": 8, "learned_positions": 203, "initialization": "gpt2"}


@PRESETS.register("xu2024-in-context")
class Xu2024InContext(Preset):
    """In-context regression as in Xu and Sato (2024): 26 points, then five more every 5,000 steps, up to 101.

    Source: Xu and Sato (2024), Appendix C, for in-context learning; Garg et al. (2022) for the curriculum.
    Differs from the source: in the source, the dimension of the task also rises over the same steps. Here, the setting
        `task_rise` can name a field of the task that rises.
    """

    train: ClassVar = {
        **UNAUGMENTED,
        "steps": 200_000,
        "batch_size": 64,
        "min_length": 26,
        "max_length": 101,
        "lengths": "legal",
        "rise": {},
        "supervision": "prefix",
        "optimizer": {**TORCH_ADAM, "clip_norm": 5.0},
        "ema_decay": 0.0,
        "checkpoint_every": 5000,
    }
    models: ClassVar = {
        "looped-transformer": {**_SIZES, "num_loops": 12, "variant": "timestep-in-context", "injection": "input"},
        "transformer": {**_SIZES, "num_layers": 12},
    }
