"""The recipe of grid recurrences: lengths grow, and a training that fails is begun again."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, UNAUGMENTED, Preset


@PRESETS.register("growing-grid")
class GrowingGrid(Preset):
    """Lengths from the shortest to 12 letters, each once the one before is learned; up to six attempts.

    An attempt ends as a finite rule, whose loss on a training string is 0, or more than 1: where it errs on one in the
    last tenth of the steps, parameters are drawn again. The rate of Adam is a hundred times as high as is usual, as
    parameters are logits of a table.

    Source: ours.
    """

    source = "ours"
    train = MappingProxyType(
        {
            **UNAUGMENTED,
            "steps": 12_000,
            "restarts": {"attempts": 6, "max_loss": 1e-5},
            "batch_size": 64,
            "max_length": 12,
            "lengths": "legal",
            "length_sampling": "growing",
            "optimizer": {"name": "adamw", "learning_rate": 0.1, "weight_decay": 0.0, "clip_ratio": 0.0},
            "ema_decay": 0.0,
        }
    )
    models = MappingProxyType({"grid-recurrence": {"num_messages": 8}})
