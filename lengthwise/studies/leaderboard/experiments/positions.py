"""Transformers with position encodings on every regular task: their accuracy at and beyond training lengths."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.runs.spec import Settings
from lengthwise.studies.languages import LANGUAGES
from lengthwise.studies.leaderboard.experiments.leaderboard import EVERY, LENGTHS_NOTE

MAX_LENGTH = 512
"""The longest measured string, in symbols, and therefore the size of the table of learned positions."""


def _model(positions: str) -> Settings:
    """Return the settings of a transformer with this encoding."""
    table = {"learned_positions": MAX_LENGTH} if positions == "learned" else {}
    return {"positions": positions, **table}


@EXPERIMENTS.register("transformers/positions")
def positions(scale: Scale = "small") -> Experiment:
    """Train transformers of two layers on seventeen regular tasks, each position encoding but `local`, three seeds."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="transformer")
    settings: Settings = {"train": {"steps": 1_000, "batch_size": 64}}
    plan = EvaluationPlan(dense_every=EVERY, dense_strings=32, long=((500, 128),), structured=((500, 32),))
    return Experiment(
        title="Transformers by position encoding, our protocol",
        about=(
            "Causal transformers of two layers (D=64) learn from final answers of strings of at most 40 symbols, with "
            "each position encoding.\n"
            "Preset `plain`, 1,000 steps, three seeds, final weights. No method reads a machine off a transformer, so "
            "no certificate is higher than *tested*."
        ),
        notes=(
            "On most tasks these nets do not fit their training strings after 1,000 steps. To judge an encoding on "
            "longer strings, compare the number of solved runs with the number of runs that fit.",
            "Learned positions are a table of 512 rows, and rows beyond 40 are never trained. Randomized positions are "
            "drawn from 2,048 in training, and are the first positions in evaluation. *Local* is left out, because "
            "answers cannot depend on symbols before its windows (see `regular-gpt/scratchpad`).",
            "Recognition tasks draw near misses, as in `regular-gpt/ours`.",
            LENGTHS_NOTE,
        ),
        cells=[
            Cell(language.row, name, specs(language.task, {"task": language.fields, "model": _model(name), **settings}))
            for language in LANGUAGES
            for name in POSITIONS
            if name != "local"
        ],
        plan=with_certificates(plan, scale),
        is_matrix=True,
    )
