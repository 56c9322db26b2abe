"""The preset for transformers that are to be right on every string up to a length."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, UNAUGMENTED, GoalPreset, Preset

NOISE = 2.0
"""The standard deviation of the noise on states. Symbols enter the first layer with a standard deviation of 1."""


@PRESETS.register("bounded")
class Bounded(Preset):
    """Noise between the layers of a `transformer` with one head, so that attention can be bounded at large lengths.

    The net has width 16. Each step reads 64 strings of one length up to 40, and all of their prefixes are supervised.
    Every layer has to tolerate the noise of the layers below it, so its output changes little within the intervals that
    a proof computes for its inputs. Muon moves the scores of different symbols further apart than Adam does, so that
    attention still separates these symbols in longer strings. After the loss has fallen below 0.01, 800 steps follow.
    Training gives up if the loss has not fallen by a tenth for 400 steps. With a goal, nets of one layer and then of
    two layers are trained in turn, each first without position encodings and then with T5's.

    Source: ours.
    """

    train: ClassVar = {
        **EVERY_PREFIX,
        "steps": 1_800,
        "batch_size": 64,
        "min_length": 1,
        "max_length": 40,
        "augmentation": {**UNAUGMENTED["augmentation"], "state_noise": NOISE, "late_state_noise": NOISE},
        "optimizer": {"learning_rate": 2e-3, "matrix_learning_rate": 2e-2, "weight_decay": 0.0},
        "pace": {"solved_loss": 0.01, "contract_steps": 800, "patience": 400},
    }
    models: ClassVar = {"transformer": {"d_model": 16, "num_heads": 1, "positions": "none"}}
    goals: ClassVar = {
        "transformer": GoalPreset(
            train={},
            models=tuple(
                {"num_layers": layers, "positions": positions} for layers in (1, 2) for positions in ("none", "t5")
            ),
        )
    }
