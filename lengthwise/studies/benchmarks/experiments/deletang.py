"""The fifteen tasks of "Neural Networks and the Chomsky Hierarchy"."""

from collections.abc import Sequence

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Printed, Scale, with_certificates
from lengthwise.report.tables.benchmark import Published
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS, Benchmark, entrants_of, references
from lengthwise.studies.languages import Language
from lengthwise.studies.leaderboard.experiments.leaderboard import EVERY, Entrant, protocol_specs
from lengthwise.studies.leaderboard.experiments.strings import ROWS as STRINGS

ROWS = {
    "Even Pairs": ("even-pairs", "last"),
    "Modular Arithmetic (Simple)": ("modular-arithmetic", "last"),
    "Parity Check": ("parity", "last"),
    "Cycle Navigation": ("cycle-navigation", "last"),
    "Stack Manipulation": ("stack-manipulation", "prefix"),
    "Reverse String": ("reverse-string", "prefix"),
    "Modular Arithmetic": ("modular-arithmetic-brackets", "last"),
    "Solve Equation": ("solve-equation", "last"),
    "Duplicate String": ("duplicate-string", "prefix"),
    "Missing Duplicate": ("missing-duplicate", "last"),
    "Odds First": ("odds-first", "prefix"),
    "Binary Addition": ("binary-addition", "prefix"),
    "Binary Multiplication": ("binary-multiplication", "prefix"),
    "Compute Sqrt": ("compute-sqrt", "prefix"),
    "Bucket Sort": ("bucket-sort", "prefix"),
}
"""The task and the supervision of each row. If the answer is a string, all symbols of the answer are supervised."""

SEEDS = {"smoke": (0,), "small": (0, 1, 2), "paper": tuple(range(10))}
RATES = {"smoke": (1e-2,), "small": (1e-3, 3e-3, 1e-2), "paper": (1e-4, 3e-4, 1e-3)}
STEPS = {"smoke": (1_000, 64), "small": (1_000, 64), "paper": (1_000_000, 128)}
"""The seeds, the learning rates, and the number of steps with the batch size, at each scale."""

_CLAIMED = (
    "Delétang et al.: the best of 10 seeds and 3 learning rates, in percent. Strings have up to 40 symbols in "
    "training, and 41-500 in the test."
)

_CITATION = "deletang2023neural"

PUBLISHED: Published = {
    (row, model): (Printed(entry, _CLAIMED, citation=_CITATION),)
    for row, (_, entries) in STRINGS.items()
    for model, entry in entries.items()
}

PROTOCOL = (
    "The published protocol: nets are trained for a million steps of 128 strings, with lengths uniform in 1-40. The "
    "score is the mean accuracy over lengths 41-500 of the best of 30 runs (10 seeds, 3 learning rates). Transformers "
    "read in both directions. Published entries are shown for five tasks only.",
    f"Our protocol also scores the best run. Scale `small` has {len(SEEDS['small'])} seeds, the learning rates "
    f"{', '.join(f'{rate:g}' for rate in RATES['small'])}, and {STEPS['small'][0]:,} steps of {STEPS['small'][1]} "
    "strings. Scale `paper` has the published number of seeds and steps, with our learning rates. Models are causal, "
    "and every ninth length is measured.",
    "*Finite machine, likelihood* has no learning rate, so it has one run for each seed. Its training lengths and its "
    "number of steps differ from those of the other models.",
    "If a string has several answers, one of them is drawn uniformly and scored.",
)


def deletang_experiment(entrants: Sequence[Entrant], scale: Scale) -> Experiment:
    """Return the experiment of this benchmark, with a column for each model in `entrants`."""
    plan = EvaluationPlan(dense_every=EVERY, dense_strings=64, long=((40, 256),), structured=(), certificate=True)
    return Experiment(
        title="Benchmark: fifteen tasks of the Chomsky hierarchy",
        about=(
            "Nets are trained on the fifteen tasks of Delétang et al. (2023): four are regular, four are deterministic "
            "context-free, and seven are context-sensitive."
        ),
        notes=PROTOCOL,
        cells=[
            Cell(row, entrant.column, _specs(entrant, row, scale), printed=PUBLISHED.get((row, entrant.column), ()))
            for row in ROWS
            for entrant in entrants
        ],
        plan=with_certificates(plan, scale),
        is_matrix=True,
    )


def _specs(entrant: Entrant, row: str, scale: Scale) -> tuple[RunSpec, ...]:
    task, supervision = ROWS[row]
    steps, batch_size = STEPS[scale]
    train: Settings = {"steps": steps, "batch_size": batch_size, "min_length": 1, "supervision": supervision}
    rates = RATES[scale] if entrant.rate is not None else (None,)
    return tuple(
        spec
        for rate in rates
        for spec in protocol_specs(entrant._replace(rate=rate), Language(row, task, {}), train, SEEDS[scale], scale)
    )


@BENCHMARKS.register("deletang")
def deletang() -> Benchmark:
    """Fifteen regular, context-free and context-sensitive tasks, scored by the best run (Delétang et al., 2023)."""
    return Benchmark(
        title="Fifteen tasks of the Chomsky hierarchy",
        source="Delétang et al., Neural Networks and the Chomsky Hierarchy (ICLR 2023)",
        bibtex=references(_CITATION),
        protocol=PROTOCOL,
        experiment="bench/deletang",
        entrants=entrants_of(),
        make=deletang_experiment,
        published={"": PUBLISHED},
        score="best",
    )


@EXPERIMENTS.register("bench/deletang")
def bench_deletang(scale: Scale = "small") -> Experiment:
    """Train five models on the tasks of Delétang et al. at several learning rates; certify nets on regular tasks."""
    return deletang_experiment(entrants_of(), scale)
