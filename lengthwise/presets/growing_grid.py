"""The preset for grid recurrences, with lengths that grow, each after the previous length is learned."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, UNAUGMENTED, GoalPreset, Preset


@PRESETS.register("growing-grid")
class GrowingGrid(Preset):
    """2,000 steps at lengths that grow from the shortest to 12 letters, each after the previous length is learned.

    The learning rate of Adam is a hundred times the usual rate, because parameters are logits of a table. Training ends
    with a finite rule, whose loss on a training string is either 0 or more than 1. With a goal, the temperature of
    messages falls in 1,000 steps after the loss is below 0.1, and an attempt fails if the rule is then wrong on a
    training string.

    Source: ours.
    """

    train: ClassVar = {
        **UNAUGMENTED,
        "steps": 2_000,
        "batch_size": 64,
        "max_length": 12,
        "lengths": "legal",
        "length_sampling": "growing",
        "optimizer": {"name": "adamw", "learning_rate": 0.1, "weight_decay": 0.0, "clip_ratio": 0.0},
        "ema_decay": 0.0,
    }
    models: ClassVar = {"grid-recurrence": {"num_messages": 8}}
    goals: ClassVar = {
        "grid-recurrence": GoalPreset(
            train={
                "steps": 3_000,
                "pace": {
                    "solved_loss": 0.1,
                    "final_loss": 1e-4,
                    "contract_steps": 1_000,
                    "contract_after": 0.6,
                    "patience": 800,
                },
            }
        )
    }
