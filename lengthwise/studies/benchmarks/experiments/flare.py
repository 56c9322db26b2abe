"""The seven regular languages of FLaRe."""

from collections.abc import Sequence

from lengthwise.automata.flare import PROBLEMS
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, Scoring, check_is_not_paper, with_certificates
from lengthwise.runs.spec import Settings
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark, entrants_of, references
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import SEEDS, Entrant, protocol_specs, rates_of

ROWS = tuple(Language(problem, "flare", {"problem": problem}) for problem in PROBLEMS)

STEPS, BATCH_SIZE = 4_000, 64

PROTOCOL = (
    "The protocol of Butoi et al. (2025), the paper on FLaRe: the training set has 10,000 strings of 0-40 symbols, "
    "half of them in the language. About half of the other strings are edits of a string in the language. The test "
    "has 5,010 strings of 0-500 symbols. Nets have five layers and about 64,000 weights. They are trained with ten "
    "random pairs of learning rate and batch size, and with up to three losses. The score for inductive bias is the "
    "mean test accuracy over ten runs, for the best loss. The package contains no numbers of the paper, because the "
    "paper's tables were not available.",
    "Our protocol uses only one of the paper's losses: the loss of the final answer, which tells whether the whole "
    f"string is in the language. New strings of 1-40 symbols are drawn for each of {STEPS:,} steps of {BATCH_SIZE} "
    "strings. Most strings outside the language are near misses, which are edits of strings in the language. Test "
    "strings have 1-500 symbols. Each model has three seeds, and final weights are measured. Models have the sizes "
    "and learning rates of experiment `leaderboard`.",
    "*Finite machine, likelihood* is trained on strings of 1 to 20 symbols instead, for 880 steps of 128 strings.",
    "Our nets do not answer the empty string. In the published test, about one string in 500 is empty.",
)


def flare_experiment(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment of this benchmark, with a column for each model in `entrants`.

    Raises:
        ValueError: the scale is `paper`.
    """
    check_is_not_paper(scale, "the paper's nets train on one fixed set until a validation set stops them")
    train: Settings = {"steps": STEPS, "batch_size": BATCH_SIZE, "min_length": 1, "supervision": "last"}
    plan = EvaluationPlan(dense=(1, 500), dense_strings=10, long=((10_000, 16),), certificate=True)
    return Experiment(
        title="Benchmark: the regular languages of FLaRe",
        about=(
            "Nets learn to recognize regular languages from strings of at most 40 symbols, and are tested on random "
            "strings of up to 500 symbols and on a few strings of 10,000 symbols."
        ),
        notes=PROTOCOL,
        cells=[
            Cell(language.row, entrant.column, protocol_specs(entrant, language, train, SEEDS, scale))
            for language in ROWS
            for entrant in entrants
        ],
        plan=with_certificates(plan, scale),
        scoring=Scoring(measure="legal"),
        is_matrix=True,
    )


@BENCHMARKS.register("flare")
def flare_benchmark() -> Benchmark:
    """Recognition of FLaRe's seven regular languages, trained at 1-40 symbols, tested at 1-500 (Butoi et al., 2025)."""
    return Benchmark(
        title="The regular languages of FLaRe",
        source="Butoi et al., Training Neural Networks as Recognizers of Formal Languages (2025)",
        bibtex=references("butoi2025training"),
        protocol=PROTOCOL,
        experiment="bench/flare",
        entrants=entrants_of(),
        make=flare_experiment,
        published={},
        rates=rates_of,
    )


@EXPERIMENTS.register("bench/flare")
def bench_flare(scale: Scale = "small") -> Experiment:
    """Train five models to recognize the seven regular languages of FLaRe, three seeds, and certify them."""
    return flare_experiment(entrants_of(), scale)
