"""Our recipe for models that accept pads inside strings and noise on their states."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, GoalPreset, Preset

_LOW_LOSS = GoalPreset(
    train=MappingProxyType(
        {
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
)


@PRESETS.register("fast")
class Fast(Preset):
    """Pads, noise on states and Muon: 6,000 steps on final answers at lengths up to 40, the defaults of `Recipe`.

    Until a level is reached: 4,000 steps at most, and 3,000 more, of more noise and with states compared, once the loss
    is below 0.05; and a loss below 1e-4 without noise at the end.

    Source: ours; LOG.md has what was tried.
    """

    source = "ours"
    train = MappingProxyType({})
    goals = MappingProxyType({"regular-gpt": _LOW_LOSS, "codebook-gpt": _LOW_LOSS})
