"""The preset for hidden Markov models, which learn by the likelihood of their answers."""

from types import MappingProxyType

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, GoalPreset, Preset

MACHINE = MappingProxyType({"d_model": 64, "block_dim": 64, "hidden": 0, "read": "mixture", "alignment": 6.0})
"""One block of 64 states that begin as copies of answers, and a mixture over them that answers."""


@PRESETS.register("likelihood")
class Likelihood(Preset):
    """Baum-Welch steps for a `block-linear-rnn` that is a hidden Markov model and ends as a finite machine.

    Each step counts the transitions and answers that 64 strings of 1 to 40 symbols make likely, given all their
    answers. 400 steps are enough for most tasks. With a goal, nets of 32, 64 and 128 states are trained in turn.

    Source: ours; Baum et al. (1970), and Bengio and Frasconi (1995) for models with inputs.
    """

    source = "ours"
    train = MappingProxyType(
        {**EVERY_PREFIX, "steps": 400, "batch_size": 64, "min_length": 1, "optimizer": {"name": "baum-welch"}}
    )
    models = MappingProxyType({"block-linear-rnn": MACHINE})
    goals = MappingProxyType(
        {
            "block-linear-rnn": GoalPreset(
                train=MappingProxyType(
                    {
                        "steps": 1_020,
                        "pace": {"solved_loss": 0.005, "contract_steps": 20, "patience": 150},
                    }
                ),
                models=tuple(MappingProxyType({"d_model": size, "block_dim": size}) for size in (32, 64, 128)),
            )
        }
    )
