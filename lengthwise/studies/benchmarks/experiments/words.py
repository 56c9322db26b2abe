"""Word problems of groups over all of their elements, as in "The Illusion of State"."""

from collections.abc import Sequence

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, Scoring
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark, entrants_of, references
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import SEEDS, Entrant, protocol_specs, rates_of

GROUPS = ("A5", "A4xZ5", "Z60")
"""The groups of Merrill et al., of 60 elements each. A5 is not solvable, A4xZ5 is solvable, and Z60 is commutative."""

LENGTHS = {"smoke": (2, 20), "small": (2, 5, 10, 15, 20), "paper": tuple(range(2, 21))}
"""The lengths k at each scale, in symbols. Scale `paper` has the lengths of the source."""

STEPS, BATCH_SIZE = 4_000, 64

DEPTHS = (1, 2, 4)
"""The numbers of layers of the transformers."""

PROTOCOL = (
    "The protocol of Merrill et al. (2024): for each length k = 2 ... 20, a net is trained and validated on strings "
    "of k elements, with the answers to all prefixes. Training uses 80 % of the strings. The question is how many "
    "layers a net needs for an accuracy of 0.99 on validation strings. The paper answers this in figures, so the "
    "package contains no published numbers. The paper reports that RNNs need one layer on A5, and that transformers, "
    "S4 and Mamba need more layers for longer strings.",
    f"Our protocol draws new strings of k elements for each of {STEPS:,} steps of {BATCH_SIZE} strings, and for each "
    "of 500 steps with *finite machine, likelihood*. So for k = 2, most strings of the test occur in training. In "
    "each cell, *mean* and *solved* are about random strings of up to k symbols. Final weights are measured, with "
    "three seeds. Scale `small` has five lengths, and scale `paper` has all 19. All lengths have the same number of "
    "steps.",
    "A certificate is about strings of every length, not only of k symbols.",
)


def words_experiment(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment of this benchmark, with a column for each model in `entrants`."""
    plan = EvaluationPlan(dense=(1, max(LENGTHS[scale])), long=((100, 64),), structured=(), certificate=True)
    smoke_plan = SMOKE_PLAN.model_copy(update={"dense": plan.dense, "certificate": True})
    return Experiment(
        title="Benchmark: word problems over all elements of a group",
        about=(
            "Nets are trained on word problems of three groups of 60 elements: each symbol is an element, and the "
            "answer is the product of all symbols so far."
        ),
        notes=PROTOCOL,
        cells=[
            Cell(
                f"{group}, k = {length}",
                entrant.column,
                _specs(entrant, group, length, scale),
                # At scale smoke, all rows of a group have the same runs, which are measured at the same lengths.
                window=None if scale == "smoke" else (1, length),
            )
            for group in GROUPS
            for length in LENGTHS[scale]
            for entrant in entrants
        ],
        plan=smoke_plan if scale == "smoke" else plan,
        scoring=Scoring(measure="legal"),
        is_matrix=True,
    )


def _specs(entrant: Entrant, group: str, length: int, scale: Scale) -> tuple[RunSpec, ...]:
    language = Language(group, "word-problem", {"group": group, "alphabet": "elements"})
    lengths: Settings = {"min_length": length, "max_length": length, "lengths": "legal", "length_sampling": "uniform"}
    train: Settings = {**lengths, "steps": STEPS, "batch_size": BATCH_SIZE, "supervision": "prefix"}
    return protocol_specs(entrant, language, train, SEEDS, scale, lengths)


def word_entrants() -> tuple[Entrant, ...]:
    """Return our own models, with one transformer for each depth in `DEPTHS` instead of the single transformer."""
    *others, transformer = entrants_of()
    layers = [f"{depth} layer{'s' * (depth > 1)}" for depth in DEPTHS]
    return (
        *others,
        *(
            Entrant(f"{transformer.column}, {text}", transformer.model, {"num_layers": depth}, transformer.rate)
            for depth, text in zip(DEPTHS, layers, strict=True)
        ),
    )


@BENCHMARKS.register("words")
def words() -> Benchmark:
    """Products in A5, A4xZ5 and Z60 over all of their elements, at 2 to 20 symbols (Merrill et al., 2024)."""
    return Benchmark(
        title="Word problems over all elements of a group",
        source="Merrill, Petty and Sabharwal, The Illusion of State in State-Space Models (2024)",
        bibtex=references("merrill2024illusion"),
        protocol=PROTOCOL,
        experiment="bench/words",
        entrants=word_entrants(),
        make=words_experiment,
        published={},
        rates=rates_of,
    )


@EXPERIMENTS.register("bench/words")
def bench_words(scale: Scale = "small") -> Experiment:
    """Train seven models on word problems over all elements of three groups, at fixed lengths, and certify them."""
    return words_experiment(word_entrants(), scale)
