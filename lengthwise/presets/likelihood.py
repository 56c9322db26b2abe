"""The preset for hidden Markov models, which learn by the likelihood of their answers."""

from typing import ClassVar

from lengthwise.presets.base import EVERY_PREFIX, PRESETS, GoalPreset, Preset

MACHINE = {"d_model": 64, "block_dim": 64, "hidden": 0, "read": "mixture", "alignment": 6.0}
"""One block of 64 states, each of which initially prefers one answer, and a read-out that mixes their answers."""

SIZES = frozenset({"d_model", "block_dim"})
"""The settings that give the number of states. Each state gives one answer, so a net needs at least one state for each
answer."""


@PRESETS.register("likelihood")
class Likelihood(Preset):
    """Baum-Welch steps for a `block-linear-rnn` that is a hidden Markov model and becomes a finite machine in training.

    Each step reads 64 strings of 39 or 40 symbols, and computes the expected numbers of transitions and answers, given
    all answers in the strings. 100 steps are enough for most tasks. With a goal, nets of 64, 128, 256 and 512 states
    are trained in turn, each until the loss is below 0.0002 or stops falling.

    Source: ours; Baum et al. (1970), and Bengio and Frasconi (1995) for models with inputs.
    """

    train: ClassVar = {
        **EVERY_PREFIX,
        "steps": 400,
        "batch_size": 64,
        "optimizer": {"name": "baum-welch"},
        "ema_decay": 0.0,
    }
    models: ClassVar = {"block-linear-rnn": MACHINE}
    goals: ClassVar = {
        "block-linear-rnn": GoalPreset(
            train={
                "steps": 2_010,
                "optimizer": {"name": "baum-welch", "prior_by_size": True},
                # Most tasks are learned within 35 steps. The running loss can fall by a factor of 1,000 in that
                # time.
                "pace": {"solved_loss": 0.0002, "contract_steps": 10, "patience": 150, "latest": 0.2},
            },
            models=tuple({"d_model": size, "block_dim": size} for size in (64, 128, 256, 512)),
            sized_by_answers=SIZES,
        )
    }
