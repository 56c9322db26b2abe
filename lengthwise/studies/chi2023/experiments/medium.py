"""Table 1 of Chi et al. (2023) at the paper's width: the tasks of Deletang et al., trained until the loss is low."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.languages import LANGUAGES

ROWS = ("Even Pairs", "Modular Arithmetic", "Parity", "Cycle Navigation")

_SHORT, _LONG = (30_000, (0, 1, 2)), (100_000, (0,))
"""The maximal steps of a net whose loss does not become low, and the seeds; `_LONG` is only for modular arithmetic."""

SOLVED_LOSS = 1e-3
MORE_STEPS = 2_000
"""The number of further training steps after the running loss is below `SOLVED_LOSS`."""


_HEADLINE = (
    "At the paper's width, our means reach its means, to the printed digits, on {reached[not Modular Arithmetic][*]} "
    "tasks other than modular arithmetic.\n"
    "These nets take {cells[not Modular Arithmetic][*][steps]} steps; the paper's nets take 100,000. The last 2,000 of "
    "our steps begin once the training loss is low.\n"
    "On modular arithmetic our means are {cells[Modular Arithmetic][30,000 steps][mean]} after 30,000 steps and "
    "{cells[Modular Arithmetic][100,000 steps][mean]} after 100,000 (the paper: {cells[Modular Arithmetic][*][paper]})."
)


@EXPERIMENTS.register("regular-gpt/medium")
def medium(scale: Scale = "small") -> Experiment:
    """Train four tasks of Table 1 at D=256, the paper's width, until the training loss is low; three seeds."""
    cells = []
    for language in LANGUAGES:
        if language.row in ROWS:
            is_arithmetic = language.task == "modular-arithmetic"
            fields = {"leading_plus": True} if is_arithmetic else language.fields
            for steps, seeds in (_SHORT, _LONG) if is_arithmetic else (_SHORT,):
                specs = _specs(scale, language.task, fields, steps, seeds)
                cells.append(Cell(language.row, f"{steps:,} steps", specs, language.published.chunks_of_2))
    plan = EvaluationPlan(dense=(41, 500), dense_strings=128, long=(), structured=())
    return Experiment(
        title="Chi et al. (2023), Table 1: RegularGPT at the paper's width",
        headline=_HEADLINE,
        about="The paper's entries are max / mean: compare with *best run* and *mean*.",
        notes=(
            "Preset `chi2023` with C=2: the published code's layer, D=256, 8 heads, and batches of 128 strings of at "
            "most 40 symbols. The optimizer is Adam at 3e-4, the middle one of the paper's three rates. Nets are "
            "measured at 41-500 with final weights.",
            "The training loss alone decides when a net stops. As soon as the running loss (the latest step has a "
            f"weight of a twentieth) is below {SOLVED_LOSS:g}, the net takes {MORE_STEPS:,} more steps at the same "
            "rate. No test influences this, and no step is selected afterwards. If the loss stays higher, the net "
            "takes the number of steps in its column's name. The paper trains for 100,000 steps. Its code trains for "
            "up to 1,000,000 steps on modular arithmetic, with a selected seed.",
            "Expressions of modular arithmetic begin with a +, as in the code.",
            "The paper counts 4.3 M parameters (its Transformer baseline has about as many); this net has 0.79 M.",
            "The nets on cycle navigation moved from a CPU to a GPU after some 2,480 steps.",
            "The first third of the 100,000 steps comes from runs of the same seed with other limits on steps. Such "
            "runs differ only in the end of training.",
            "Cost: a step at D=256 takes 36 ms (even pairs, parity) or 50 ms (cycle navigation, modular arithmetic) "
            "on one core. A net that is not solved takes 18 to 28 CPU minutes for 30,000 steps. Modular arithmetic "
            "takes 1.5 CPU hours for 100,000 steps. The page takes 3 to 5 CPU hours.",
        ),
        cells=cells,
        plan=SMOKE_PLAN if scale == "smoke" else plan,
        scoring=Scoring(measure="legal"),
        main=("row", "column", "best run", "mean", "solved", "steps", "CPU s", "paper"),
    )


def _specs(scale: Scale, task: str, fields: Settings, steps: int, seeds: tuple[int, ...]) -> tuple[RunSpec, ...]:
    """Return specs of preset `chi2023` at a constant rate.

    The contraction phase of `PaceRecipe` only adds steps here.
    """
    more = 5 if scale == "smoke" else MORE_STEPS
    pace = {"solved_loss": SOLVED_LOSS, "contract_steps": more, "patience": steps}
    settings: Settings = {"task": fields, "train": {"steps": steps + more, "pace": pace}}
    return ScaledSpecs(scale, seeds)(task, settings, preset="chi2023")
