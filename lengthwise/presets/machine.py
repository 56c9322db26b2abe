"""The preset for recurrent nets that become finite machines."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, GoalPreset, Preset


@PRESETS.register("machine")
class Machine(Preset):
    """Variant of preset `recurrent` for a `block-linear-rnn` that training turns into a finite machine.

    Training takes 2,000 steps at a learning rate of 0.1, which is high because parameters are logits. The net is one
    block of 128 states, and its answer is a mixture of the answers of states. With a goal, nets of 16, 64, again 64,
    and 128 states are trained in turn on strings of 1 to 40 symbols. Each net takes at most 2,000 steps until the loss
    is below 0.002, and then 800 steps in which states contract.

    Source: ours.
    """

    train: ClassVar = {
        **EVERY_PREFIX,
        "steps": 2_000,
        "optimizer": {"name": "adamw", "learning_rate": 0.1, "weight_decay": 0.1},
    }
    models: ClassVar = {"block-linear-rnn": {"d_model": 128, "block_dim": 128, "hidden": 0, "read": "mixture"}}
    goals: ClassVar = {
        "block-linear-rnn": GoalPreset(
            train={
                "steps": 2_800,
                "min_length": 1,
                "pace": {"solved_loss": 0.002, "contract_steps": 800, "patience": 400},
            },
            models=tuple({"d_model": size, "block_dim": size} for size in (16, 64, 64, 128)),
        )
    }
