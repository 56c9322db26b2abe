"""The preset for hidden Markov models that see only the last answer of each string."""

from typing import ClassVar

from lengthwise.presets.base import PRESETS, UNAUGMENTED, GoalPreset, Preset
from lengthwise.presets.likelihood import MACHINE, SIZES


@PRESETS.register("likelihood-last")
class LikelihoodLast(Preset):
    """Baum-Welch steps for a `block-linear-rnn` from the last answer of each string, on lengths that grow from 1 to 20.

    A string of one symbol shows where this symbol leads from the start. Once strings of n symbols are learned, strings
    of n + 1 symbols show one more step. With only one answer in a string, a batch shows little about most transitions.
    Therefore steps are not extrapolated (`relaxation` 1), and the previous probabilities of a distribution count as
    much as about 50 of the 256 answers in a batch.

    Nets have 128 states, or more in later attempts of a goal. With only one state for each answer, two elements of a
    group can share a state permanently; with two states for each answer, they do not.

    Source: ours; Baum et al. (1970), and Bengio and Frasconi (1995) for models with inputs.
    """

    train: ClassVar = {
        **UNAUGMENTED,
        "steps": 1_000,
        "batch_size": 256,
        "min_length": 1,
        "max_length": 20,
        "lengths": "legal",
        "length_sampling": "growing",
        "supervision": "last",
        "optimizer": {"name": "baum-welch", "relaxation": 1.0, "prior": 0.2},
        "ema_decay": 0.0,
    }
    models: ClassVar = {"block-linear-rnn": {**MACHINE, "d_model": 128, "block_dim": 128}}
    goals: ClassVar = {
        "block-linear-rnn": GoalPreset(
            train={"steps": 3_010, "pace": {"solved_loss": 0.0005, "contract_steps": 10, "patience": 1_000}},
            models=tuple({"d_model": size, "block_dim": size} for size in (128, 256)),
            sized_by_answers=SIZES,
        )
    }
