"""Transformers with each position encoding on every regular task: accuracy at and beyond the training lengths."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, with_certificates
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.runs.spec import Settings
from lengthwise.studies.languages import LANGUAGES
from lengthwise.studies.leaderboard.experiments.leaderboard import EVERY, LENGTHS_NOTE

MAX_LENGTH = 512
"""The number of rows in the table of learned positions, which must hold the longest measured string."""


def _model(positions: str) -> Settings:
    """Return the settings of a transformer with this position encoding."""
    table = {"learned_positions": MAX_LENGTH} if positions == "learned" else {}
    return {"positions": positions, **table}


@EXPERIMENTS.register("transformers/positions")
def positions(scale: Scale = "small") -> Experiment:
    """Train transformers with two layers on seventeen regular tasks, with each position encoding except `local`."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="transformer")
    settings: Settings = {"train": {"steps": 1_000, "batch_size": 64}}
    plan = EvaluationPlan(dense_every=EVERY, dense_strings=32, long=((500, 128),), structured=((500, 32),))
    return Experiment(
        title="Transformers by position encoding, our protocol",
        about=(
            "Causal transformers with two layers and width 64 are trained on regular tasks, with different "
            "position encodings.\n"
            "Training uses the final answers of strings of at most 40 symbols, for 1,000 steps of preset `plain`. "
            "There are three seeds, and final weights are measured.\n"
            "No machine can be extracted from a transformer, and no net of this page is proved up to a length. So no "
            "certificate is higher than *tested*."
        ),
        notes=(
            "On most tasks, these nets do not fit their training strings after 1,000 steps. To judge how an encoding "
            "generalizes to longer strings, compare the number of solved runs with the number of runs that fit.",
            "*Learned* positions are a table with 512 rows, and rows beyond 40 are never trained. *Randomized* "
            "positions are drawn from 2,048 positions in training, and are the first positions in evaluation. Encoding "
            "`local` is left out. With this encoding, answers cannot depend on symbols before a window of the last "
            "symbols (see `regular-gpt/scratchpad`).",
            "In tasks of recognition, most strings outside the language are near misses, as in `regular-gpt/ours`.",
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
