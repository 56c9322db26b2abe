"""Table 1 of Chi et al. (2023) at the paper's width: the tasks of Delétang et al., trained until the loss is low."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import RunSpec, Settings
from lengthwise.studies.languages import LANGUAGES

ROWS = ("Even Pairs", "Modular Arithmetic", "Parity", "Cycle Navigation")

_SHORT, _LONG = (30_000, (0, 1, 2)), (100_000, (0,))
"""The steps of a net whose loss stays above `SOLVED_LOSS`, and the seeds. `_LONG` is only for modular arithmetic."""

SOLVED_LOSS = 1e-3
MORE_STEPS = 2_000
"""The number of further training steps after the running loss is below `SOLVED_LOSS`."""


_HEADLINE = (
    "RegularGPT with the width of Chi et al. (2023) reaches the paper's mean accuracies, to the printed digits, on "
    "{reached[not Modular Arithmetic][*]} tasks other than modular arithmetic.\n"
    "On these tasks, our nets are trained for {cells[not Modular Arithmetic][*][steps]} steps, and the paper's nets "
    "for 100,000. The last 2,000 of our steps begin once the training loss is low.\n"
    "On modular arithmetic, our mean accuracies are {cells[Modular Arithmetic][30,000 steps][mean]} after 30,000 "
    "steps and {cells[Modular Arithmetic][100,000 steps][mean]} after 100,000 (the paper's maximum / mean: "
    "{cells[Modular Arithmetic][*][paper]})."
)


@EXPERIMENTS.register("regular-gpt/medium")
def medium(scale: Scale = "small") -> Experiment:
    """Train RegularGPT on four tasks of Table 1 with the paper's width, until the training loss is low."""
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
        about="The paper's entries are maximum / mean: compare them with columns *best run* and *mean*.",
        notes=(
            "Nets are trained with preset `chi2023` and chunk size C=2: the published code's layer, width 256, 8 "
            "heads, and batches of 128 strings of at most 40 symbols. The optimizer is Adam with learning rate 3e-4, "
            "the second of the paper's three learning rates. Final weights are measured at lengths 41-500.",
            "The training loss alone decides when training stops. The running loss is an exponential moving average, "
            "in which the latest step has a weight of a twentieth. As soon as the running loss is below "
            f"{SOLVED_LOSS:g}, the net is trained for {MORE_STEPS:,} more steps at the same learning rate. No test "
            "influences this decision, and no step is selected afterwards. If the running loss stays higher, the net "
            "is trained for the number of steps in the name of its column. The paper trains for 100,000 steps. Its "
            "code trains for up to 1,000,000 steps on modular arithmetic, with a selected seed.",
            "Expressions of modular arithmetic begin with a +, as in the published code.",
            "The paper states 4.3 million parameters (its Transformer baseline has about as many). Our net has 0.79 "
            "million.",
            "The training of the nets on cycle navigation moved from a CPU to a GPU after about 2,480 steps.",
            "The first third of the run of 100,000 steps comes from runs with the same seed and other limits on "
            "steps. A limit on steps changes only the end of training.",
            "Cost: a step takes 36 ms (even pairs, parity) or 50 ms (cycle navigation, modular arithmetic) on one "
            "core. A net that is trained for all 30,000 steps takes 18 to 28 CPU minutes. Modular arithmetic takes "
            "1.5 CPU hours for 100,000 steps. All nets of the page together take 3 to 5 CPU hours.",
        ),
        cells=cells,
        plan=SMOKE_PLAN if scale == "smoke" else plan,
        scoring=Scoring(measure="legal"),
        main=("row", "column", "best run", "mean", "solved", "steps", "CPU s", "paper"),
    )


def _specs(scale: Scale, task: str, fields: Settings, steps: int, seeds: tuple[int, ...]) -> tuple[RunSpec, ...]:
    """Return specs of preset `chi2023`, whose number of steps depends on the training loss.

    The contraction phase of `PaceRecipe` changes no setting here, so it only adds steps.
    """
    more = 5 if scale == "smoke" else MORE_STEPS
    pace = {"solved_loss": SOLVED_LOSS, "contract_steps": more, "patience": steps}
    settings: Settings = {"task": fields, "train": {"steps": steps + more, "pace": pace}}
    return ScaledSpecs(scale, seeds)(task, settings, preset="chi2023")
