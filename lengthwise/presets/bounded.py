"""The preset for transformers that are to be right on every string up to a length."""

from types import MappingProxyType

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, UNAUGMENTED, GoalPreset, Preset

NOISE = 2.0
"""The standard deviation of the noise on states. Symbols enter the first layer with a standard deviation of 1."""


@PRESETS.register("bounded")
class Bounded(Preset):
    """Noise on the states of a `transformer` of width 16 with one head, because bounds on its attention then reach far.

    Each step reads 64 strings of one length up to 150, and all of their prefixes have answers. Every layer has to
    tolerate the noise of the layers below it, so its result changes little over the boxes that bound its inputs. With a
    goal, nets of one layer and then of two are trained in turn, without positions and with T5's.

    Source: ours.
    """

    source = "ours"
    train = MappingProxyType(
        {
            **EVERY_PREFIX,
            "steps": 1_500,
            "batch_size": 64,
            "min_length": 1,
            "max_length": 150,
            "augmentation": {**UNAUGMENTED["augmentation"], "state_noise": NOISE, "late_state_noise": NOISE},
            "optimizer": {"name": "adamw", "learning_rate": 3e-3, "weight_decay": 0.1},
        }
    )
    models = MappingProxyType({"transformer": {"d_model": 16, "num_heads": 1, "positions": "none"}})
    goals = MappingProxyType(
        {
            "transformer": GoalPreset(
                train=MappingProxyType(
                    {"steps": 2_000, "pace": {"solved_loss": 0.01, "contract_steps": 1_000, "patience": 300}}
                ),
                models=tuple(
                    MappingProxyType({"num_layers": layers, "positions": positions})
                    for layers in (1, 2)
                    for positions in ("none", "t5")
                ),
            )
        }
    )
