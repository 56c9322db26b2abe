"""Our preset for models that accept pads inside strings and noise on their states."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, GoalPreset, Preset

_LOW_LOSS = GoalPreset(
    train={
        "steps": 7_000,
        "pace": {
            "solved_loss": 0.05,
            "final_loss": 1e-4,
            "contract_steps": 3_000,
            "contract_after": 0.5,
            "patience": 1_500,
        },
    }
)


@PRESETS.register("fast")
class Fast(Preset):
    """The defaults of `Recipe`: 6,000 steps of Muon on final answers at lengths up to 40, with pads and noise.

    With a goal, a `regular-gpt` or `codebook-gpt` is trained for at most 4,000 steps until the loss is below 0.05. Then
    3,000 steps follow, with more noise and with a penalty on states that pads change (`late_consistency`). An attempt
    succeeds if its loss without noise is then below 1e-4.

    Source: ours; `studies/chi2023/NOTES.md` describes what was tried.
    """

    train: ClassVar = {}
    goals: ClassVar = {"regular-gpt": _LOW_LOSS, "codebook-gpt": _LOW_LOSS}
