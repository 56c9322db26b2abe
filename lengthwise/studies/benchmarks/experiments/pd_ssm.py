"""The four tasks of the paper on PD-SSM, with a protocol that comes from the paper on SLiCE."""

from collections.abc import Sequence

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, with_certificates
from lengthwise.runs.spec import Settings
from lengthwise.studies.benchmarks.benchmark import (
    BENCHMARKS,
    TABLES,
    Benchmark,
    entrants_of,
    read_published,
    references,
)
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import Entrant, protocol_specs, rates_of

ROWS = (
    Language("Cycle Navigation", "cycle-navigation", {}),
    Language("Even Pairs", "even-pairs", {}),
    Language("Arithmetic, = at the end", "modular-arithmetic-equals", {}),
    Language("Parity", "parity", {}),
)

SEEDS = (0, 1, 2, 3, 4)

STEPS = {"small": (4_000, 64), "smoke": (4_000, 64), "paper": (100_001, 256)}
"""The number of steps and the batch size at each scale; runs at scale `smoke` are shortened further."""

_, PUBLISHED = read_published(TABLES / "pd_ssm.toml")

PROTOCOL = (
    "The protocol of Terzić et al. (2025), the paper on PD-SSM: nets are trained on the answers to whole strings of "
    "3-40 symbols, with all lengths equally frequent, and tested at 40-256 symbols. Scores are means over 5 seeds. A "
    "run is trained for 100,001 steps of 256 strings. The best of several checkpoints is chosen by its accuracy at "
    "40-256 symbols.",
    "Our protocol has the paper's training lengths and number of seeds, also trains on the answers to whole strings, "
    "and tests nets at 41-256 symbols. But it measures final weights, not the checkpoint that is best in the test. "
    f"At scale `small`, runs are trained for {STEPS['small'][0]:,} steps of {STEPS['small'][1]} strings, and at scale "
    "`paper` for the published number of steps. Models have the sizes and learning rates of experiment `leaderboard`.",
    "*Finite machine, likelihood* is trained on strings of 1 to 20 symbols instead, for 880 steps of 128 strings.",
)


def pd_ssm_experiment(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment of this benchmark, with a column for each model in `entrants`."""
    steps, batch_size = STEPS[scale]
    train: Settings = {"steps": steps, "batch_size": batch_size, "min_length": 3, "supervision": "last"}
    plan = EvaluationPlan(dense=(41, 256), dense_strings=64, long=((10_000, 16),), certificate=True)
    return Experiment(
        title="Benchmark: the four tasks of the paper on PD-SSM",
        about=(
            "Nets are trained on four tasks with the answers to whole strings of up to 40 symbols, and are tested on "
            "random strings of up to 256 symbols and on a few strings of 10,000 symbols."
        ),
        notes=PROTOCOL,
        cells=[
            Cell(
                language.row,
                entrant.column,
                protocol_specs(entrant, language, train, SEEDS, scale),
                printed=PUBLISHED.get((language.row, entrant.column), ()),
            )
            for language in ROWS
            for entrant in entrants
        ],
        plan=with_certificates(plan, scale),
        is_matrix=True,
    )


@BENCHMARKS.register("pd-ssm")
def pd_ssm() -> Benchmark:
    """Cycle navigation, even pairs, parity, and arithmetic with a final =, from final answers (Terzić et al., 2025)."""
    return Benchmark(
        title="The four tasks of the paper on PD-SSM",
        source="Terzić et al., Structured Sparse Transition Matrices to Enable State Tracking in State-Space Models",
        bibtex=references("terzic2025structured"),
        protocol=PROTOCOL,
        experiment="bench/pd-ssm",
        entrants=entrants_of(),
        make=pd_ssm_experiment,
        published={"": PUBLISHED},
        rates=rates_of,
    )


@EXPERIMENTS.register("bench/pd-ssm")
def bench_pd_ssm(scale: Scale = "small") -> Experiment:
    """Train five models by the protocol of the paper on PD-SSM: four tasks, final answers, five seeds."""
    return pd_ssm_experiment(entrants_of(), scale)
