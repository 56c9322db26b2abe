"""Our recipe for models that accept pads inside strings and noise on their states."""

from types import MappingProxyType

from lengthwise.presets.base import PRESETS, Preset, Pursuit


@PRESETS.register("fast")
class Fast(Preset):
    """Pads, noise on states and Muon: 6,000 steps on final answers at lengths up to 40, the defaults of `Recipe`.

    Until a level is reached: 2,000 steps at most, and 1,000 more, of more noise and with states compared, once the loss
    is below 0.1.

    Source: ours; LOG.md has what was tried.
    """

    source = "ours"
    train = MappingProxyType({})
    until = MappingProxyType(
        {
            "regular-gpt": Pursuit(
                train=MappingProxyType(
                    {
                        "steps": 3_000,
                        "pace": {
                            "solved_loss": 0.1,
                            "contract_steps": 1_000,
                            "contract_after": 0.5,
                            "patience": 800,
                        },
                    }
                )
            )
        }
    )
