"""Every model on every regular task by one protocol: training on short strings, accuracies and certificates."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import (
    EXPERIMENTS,
    SMOKE_PLAN,
    Cell,
    Experiment,
    Scale,
    ScaledSpecs,
    Scoring,
    check_is_not_paper,
    with_certificates,
)
from lengthwise.models.base import MODELS
from lengthwise.registry import is_of_package
from lengthwise.runs.spec import RunSpec, Settings, merge
from lengthwise.studies.languages import LANGUAGES, Language
from lengthwise.studies.leaderboard.experiments.published import ARITHMETIC, EQUALS, LEADING_PLUS, NOTES, PUBLISHED
from lengthwise.studies.leaderboard.experiments.random_languages import NUM_STATES, NUM_SYMBOLS, about_monoids

STEPS, BATCH_SIZE, SEEDS = 1_000, 64, (0, 1, 2)
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
"""The learning rates to choose from; each model has one rate for all tasks."""

MEAN_LENGTH = 20
"""The mean length of a training string, in symbols. Lengths are mostly short at first, and mostly long at the end."""

LAST = "last answer"
SUPERVISIONS: Mapping[str, str] = {LAST: "last", "all prefixes": "prefix"}


class Entrant(NamedTuple):
    """A column: a model with its settings, and the learning rate that `leaderboard/rates` chose for it.

    A model that is trained by maximum likelihood (`LIKELIHOOD`) has no learning rate.
    """

    column: str
    model: str
    settings: Settings
    rate: float | None


_ONE_BLOCK: Settings = {"d_model": 64, "block_dim": 64, "hidden": 0}

ENTRANTS = (
    Entrant("RNN", "rnn", {}, 3e-2),
    Entrant("GRU", "gru", {}, 1e-2),
    Entrant("LSTM", "lstm", {}, 3e-2),
    Entrant("sLSTM", "xlstm", {"cells": "s"}, 1e-2),
    Entrant("mLSTM", "xlstm", {"cells": "m"}, 1e-2),
    Entrant("Transformer", "transformer", {}, 3e-3),
    Entrant("Transformer, rotary", "transformer", {"positions": "rotary"}, 3e-3),
    Entrant("Mamba [0, 1]", "mamba", {"eigenvalues": "positive"}, 1e-2),
    Entrant("Mamba [-1, 1]", "mamba", {"eigenvalues": "signed"}, 1e-2),
    Entrant("DeltaNet [0, 1]", "delta-net", {"eigenvalues": "positive"}, 1e-2),
    Entrant("DeltaNet [-1, 1]", "delta-net", {"eigenvalues": "signed"}, 3e-3),
    Entrant("DeltaProduct, 2", "delta-net", {"eigenvalues": "signed", "householders": 2}, 3e-3),
    Entrant("diagonal", "diagonal-linear-rnn", {"transitions": "input-dependent"}, 1e-2),
    Entrant("linear CDE", "linear-cde", {}, 3e-2),
    Entrant("linear CDE, low rank", "linear-cde", {"structure": "low-rank"}, 3e-2),
    Entrant("PD-SSM", "pd-ssm", {}, 3e-2),
    Entrant("PD-SSM, machine", "pd-ssm", {"diagonal": "none", "driven": False}, 3e-2),
    Entrant(
        "SD-SSM",
        "block-linear-rnn",
        {**_ONE_BLOCK, "columns": "unit", "input_map": "linear", "first_state": "zero", "read": "last"},
        3e-2,
    ),
    Entrant("RegularGPT", "regular-gpt", {}, 3e-3),
    Entrant("LDRU", "ldru", {}, 3e-3),
    Entrant("block-diagonal", "block-linear-rnn", {}, 3e-2),
    Entrant("finite machine", "block-linear-rnn", {**_ONE_BLOCK, "read": "mixture"}, 1e-1),
    Entrant("finite machine, likelihood", "block-linear-rnn", {"d_model": 128, "block_dim": 128}, None),
)

LIKELIHOOD: Mapping[str, tuple[str, Settings]] = {
    "prefix": ("likelihood", {"steps": 500}),
    "last": ("likelihood-last", {"steps": 880, "batch_size": 128, "optimizer": {"prior": 0.4}}),
}
"""The preset of a model without a learning rate, and the changes to this preset, by supervision.

The changes keep the model within the budget of symbols that all models share. With last answers, strings have at most
20 symbols.
"""

LIKELIHOOD_NOTE = (
    "*Finite machine, likelihood* is trained by Baum-Welch steps, which have no learning rate. With all prefixes, it "
    f"reads {LIKELIHOOD['prefix'][1]['steps']} batches of {BATCH_SIZE} strings of 39 and 40 symbols. With last "
    f"answers, it reads {LIKELIHOOD['last'][1]['steps']} batches of {LIKELIHOOD['last'][1]['batch_size']} strings, "
    "whose lengths grow from 1 to at most 20 symbols as it learns. In both cases, it reads at most as many symbols "
    "as the budget allows."
)

EVERY = 9
"""The distance between measured lengths, in symbols."""

LENGTHS_NOTE = (
    "If strings of every length exist, the measured lengths are 41, 50, 59, ... All these lengths leave a remainder "
    "of 2 when divided by 3. A string is in Tomita 6 if its numbers of 0s and 1s are equal modulo 3. At the measured "
    "lengths, the number of 1s modulo 3 alone decides this, so a net that counts only the 1s is right."
)

NUM_RANDOM = 10
"""The number of random languages. They have as many states as the languages in `linear-rnn/random-languages`."""

ROWS = (
    *LANGUAGES,
    Language(LEADING_PLUS, "modular-arithmetic", {"leading_plus": True}),
    Language(EQUALS, "modular-arithmetic-equals", {}),
    Language("Arithmetic, left to right", "left-to-right-arithmetic", {}),
    *(Language(f"{group[0]}_{group[1:]}", "word-problem", {"group": group}) for group in ("S4", "A5", "S5")),
    *(
        Language(
            f"random {seed}", "random-language", {"num_states": NUM_STATES, "num_symbols": NUM_SYMBOLS, "seed": seed}
        )
        for seed in range(NUM_RANDOM)
    ),
)

HELD_OUT = Language("Sum(5)", "sum", {"modulus": 5})
"""The task on which learning rates are chosen. It is not part of the leaderboard."""

_ABOUT_RUNS = (
    f"{STEPS:,} steps of AdamW. Each step draws {BATCH_SIZE} new strings of one length between 1 and 40. Short lengths "
    "are drawn more often at first, and long lengths toward the end. Over all steps, a net reads about "
    f"{STEPS * BATCH_SIZE * MEAN_LENGTH / 1e6:.1f} million symbols. The learning rate follows a cosine schedule after "
    "200 steps of warm-up, and there is no weight decay and no augmentation. Models have width 64 and one layer "
    "(transformers: two), unless their names state other sizes"
)


def entrant_cell(entrant: Entrant, language: Language, part: str, scale: Scale) -> Cell:
    """Return the cell of a model on a task with one kind of supervision."""
    return Cell(
        language.row,
        entrant.column,
        specs_of(entrant, language, SUPERVISIONS[part], scale, SEEDS),
        part=part,
        printed=PUBLISHED.get((language.row, entrant.column), ()) if part == LAST else (),
    )


def leaderboard_of(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment `leaderboard` with a column for each of these models."""
    others = [entrant.column for entrant in entrants if not is_of_package(MODELS[entrant.model])]
    plan = EvaluationPlan(
        dense_every=EVERY, dense_strings=64, long=((10_000, 16),), structured=((500, 16),), certificate=True
    )
    return Experiment(
        title="Leaderboard: regular tasks by one protocol",
        about=(
            "Every model is trained twice on every task: once on the answer to the whole string, and once on the "
            "answers to all prefixes.\n"
            "Each model has three seeds on each task, and final weights are measured. No seed or checkpoint is "
            "selected, and no setting depends on the task.\n"
            "The page also counts certificates, and shows the lengths of strings that nets answer wrongly."
        ),
        notes=(
            f"Budget, the same for all models except *finite machine, likelihood*: {_ABOUT_RUNS}.",
            _rate_note(entrants),
            f"Some models, such as Mamba, mLSTM and DeltaNet with one reflection, do not fit {HELD_OUT.row} at any of "
            "these learning rates. The rate of such a model has the lowest of several high losses.",
            "The papers in the tables of published numbers trained their models on 200 to 4,000 times as many "
            "symbols as this page. Many published numbers are the best of several checkpoints, learning rates or "
            "seeds.",
            f"Published definitions of modular arithmetic differ. In row *{ARITHMETIC}*, products come before sums, "
            "and lengths are odd, as in Delétang et al. (2023) and Fan et al. (2024). The other rows of arithmetic "
            "have a + in front (Chi et al.), an = at the end (Grazzi et al., papers on PD-SSM and SLiCE), or "
            "evaluation from left to right (Butoi et al., and the paper on LDRU by Pert et al., 2026).",
            *NOTES,
            LIKELIHOOD_NOTE,
            *(
                [f"These models are not from this package, and come last in all tables: {', '.join(others)}."]
                if others
                else []
            ),
            "On D_n and Tomita n, most strings outside the language are near misses. These tasks are measured at "
            "lengths at which both answers occur.",
            LENGTHS_NOTE,
            "Nets are measured in float32, as they were trained. The nets of column *RNN* have ReLU, so their states "
            "may grow without bound. If states overflow on a string, the answer counts as wrong, although the same "
            "net may be right in float64.",
            f"Random languages have {NUM_STATES} states and {NUM_SYMBOLS} symbols. {about_monoids(NUM_RANDOM)}",
        ),
        cells=[
            entrant_cell(entrant, language, part, scale)
            for part in SUPERVISIONS
            for language in ROWS
            for entrant in entrants
        ],
        plan=with_certificates(plan, scale),
        is_matrix=True,
    )


def _rate_note(entrants: Sequence[Entrant]) -> str:
    """Return sentences: how the models got their learning rates, and which models have the first or last of `RATES`."""
    at_end = [entrant.column for entrant in entrants if entrant.rate in (RATES[0], RATES[-1])]
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    note = (
        "Learning rate: each model has one learning rate for all tasks, chosen by `leaderboard/rates`. Among "
        f"{rates}, this rate has the lowest final training loss on {HELD_OUT.row}, a task that is not in the table."
    )
    if at_end:
        columns = "* and of *".join(at_end)
        note += f" The learning rate of *{columns}* is at an end of this list, so a rate beyond this end may be better."
    return note


@EXPERIMENTS.register("leaderboard")
def leaderboard(scale: Scale = "small") -> Experiment:
    """Compare all models on regular tasks by one protocol, trained on last answers and on answers to all prefixes."""
    return leaderboard_of(ENTRANTS, scale)


def rates_of(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment that chooses the learning rates of these models."""
    return Experiment(
        title="Learning rates of the leaderboard",
        about=(
            "For the leaderboard, each model gets the learning rate with the lowest loss at the end of training on "
            f"{HELD_OUT.row}, the sum of digits modulo 5.\n"
            "Measurements beyond the training lengths are not used to choose the rate.\n"
            f"The learning rates are tried in this order: {', '.join(f'{rate:g}' for rate in RATES)}. Each net is "
            "trained on the answers to all prefixes, with one seed."
        ),
        notes=(
            f"A *recipe* is one of the {len(RATES)} learning rates. All other settings are as in `leaderboard`: "
            f"{_ABOUT_RUNS}.",
            "The table has no accuracies on structured strings. Only the records contain them.",
        ),
        cells=[
            Cell(
                HELD_OUT.row,
                entrant.column,
                tuple(
                    spec
                    for rate in RATES
                    for spec in specs_of(entrant._replace(rate=rate), HELD_OUT, "prefix", scale, SEEDS[:1])
                ),
            )
            for entrant in entrants
        ],
        plan=SMOKE_PLAN if scale == "smoke" else EvaluationPlan(dense_every=EVERY, dense_strings=64, long=((40, 256),)),
        scoring=Scoring(measure="search", fit=(64, 0.99) if scale == "smoke" else (40, 0.99)),
    )


@EXPERIMENTS.register("leaderboard/rates")
def leaderboard_rates(scale: Scale = "small") -> Experiment:
    """Choose the learning rate of each model of the leaderboard, on a task outside the leaderboard."""
    return rates_of([entrant for entrant in ENTRANTS if entrant.rate is not None], scale)


def specs_of(
    entrant: Entrant,
    language: Language,
    supervision: str,
    scale: Scale,
    seeds: Sequence[int],
    lengths: str = "mostly-balanced",
) -> tuple[RunSpec, ...]:
    """Return the specs of a cell, with the training budget that all cells share."""
    check_is_not_paper(scale)
    train: Settings = {
        "min_length": 1,
        # The strings of smoke runs are too short for all elements of S_5.
        "lengths": "legal" if scale == "smoke" else lengths,
        "length_sampling": "short-first",
        "steps": STEPS,
        "batch_size": BATCH_SIZE,
        "supervision": supervision,
    }
    return protocol_specs(entrant, language, train, seeds, scale)


def protocol_specs(
    entrant: Entrant,
    language: Language,
    train: Settings,
    seeds: Sequence[int],
    scale: Scale,
    likelihood: Settings | None = None,
) -> tuple[RunSpec, ...]:
    """Return the runs that train a model on a task.

    The runs use AdamW with the model's learning rate and the protocol's settings `train`. These settings contain
    `supervision` and the number of steps for the scale. Unless `train` sets other lengths, all legal lengths are
    equally frequent. A model without a learning rate is trained by maximum likelihood. It uses the leaderboard's number
    of steps and string lengths, unless the settings `likelihood` contain others.
    """
    model: Settings = {"task": language.fields, "model": entrant.settings}
    specs = ScaledSpecs(scale, seeds, entrant.model, has_paper=True)
    if entrant.rate is None:
        preset, changes = LIKELIHOOD[train["supervision"]]
        return specs(language.task, {**model, "train": merge(changes, likelihood or {})}, preset=preset)
    optimizer: Settings = {"name": "adamw", "learning_rate": entrant.rate, "weight_decay": 0.0}
    usual: Settings = {"optimizer": optimizer, "lengths": "legal", "length_sampling": "uniform"}
    given = {**model, "train": merge(usual, train)}
    return specs(language.task, given, preset="recurrent")
