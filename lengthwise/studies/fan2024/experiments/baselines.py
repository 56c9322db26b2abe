"""A search by training loss for settings with which the baselines of Fan et al. (2024) fit the training length."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import RunSpec, Settings, merge
from lengthwise.studies.fan2024.experiments.linear_rnn import BASELINES, FIT, TASKS, at_fan_rate

STEPS = 1_000

GRID: tuple[tuple[float, int, int], ...] = (
    (1e-3, 0, 1),
    (4e-3, 100, 1),
    (1e-2, 100, 1),
    (1e-3, 100, 2),
    (4e-3, 100, 2),
)
"""The recipes of the search: learning rate, steps of warm-up, and number of layers."""


_HEADLINE = (
    "With the best of five choices of settings, {share[EvenPair(5)][*][fits][yes]} baselines fit the training length "
    "of 40 symbols on EvenPair(5), and {share[Sum(5)][*][fits][yes]} on Sum(5).\n"
    "On EvenPair(5), the mean accuracies of the 8 chosen nets at 41-500 symbols are at most "
    "{highest[EvenPair(5)][*][mean]}.\n"
    "{diverged} of the {runs} nets diverged."
)


@EXPERIMENTS.register("linear-rnn/baselines-search")
def baselines_search(scale: Scale = "small") -> Experiment:
    """Choose settings for each baseline on Sum and EvenPair by final training loss; test the fit at 40 symbols."""
    cells = [
        Cell(row, column, tuple(spec for point in GRID for spec in _point(scale, row, column, point)))
        for row in ("Sum(5)", "EvenPair(5)")
        for column in BASELINES
    ]
    return Experiment(
        title="Baselines of the block-diagonal RNN: do they fit their training length?",
        headline=_HEADLINE,
        about=(
            "A net that does not fit its training length cannot test generalization. The baselines S4, S4D and "
            "Liquid-S4 of Fan et al. (2024) do not fit it with the recipe of the paper's own layer ([Table "
            "2](linear-rnn-table-2.md))."
        ),
        notes=(
            "The baselines are eight linear recurrences that Fan et al. (2024) name. The page on [Table "
            "2](linear-rnn-table-2.md) explains them. Each baseline is trained with the same five recipes. For each "
            f"task and recipe, one net is trained for {STEPS:,} steps of 128 strings of 40 symbols, with the answers "
            "to all prefixes. For each baseline and task, the recipe with the lowest loss at the end of training is "
            "chosen; measurements beyond 40 symbols are not used. A net fits if its accuracy at 40 symbols is at "
            "least 99 %.",
            "The recipes differ in their learning rate and, in brackets, in their steps of warm-up and number of "
            "layers. They are: "
            + "; ".join(f"{rate:g} ({warmup} steps, {layers})" for rate, warmup, layers in GRID)
            + ". All other settings come from preset `fan2024`, except that there is no weight decay.",
            "The final loss is the loss of the final weights on 128 new strings of 40 symbols.",
            "If the transitions of a net are constant, or diagonal and real, the net cannot count modulo 5 at every "
            "length, but may count at 40 symbols. With diagonal complex transitions that depend on the input, a net "
            "can count at every length. A net that does not fit with these recipes may fit with other recipes or "
            "more steps.",
            "In Liquid-S4, the state of each channel has 8 numbers. In S4 and S4D, it has 64.",
        ),
        cells=cells,
        plan=SMOKE_PLAN if scale == "smoke" else EvaluationPlan(dense_strings=128, long=((40, 256),), structured=()),
        scoring=Scoring(measure="search", fit=(64, FIT[1]) if scale == "smoke" else FIT),
    )


def _point(scale: Scale, row: str, column: str, point: tuple[float, int, int]) -> tuple[RunSpec, ...]:
    """Return the specs of one recipe, a point of `GRID`."""
    rate, warmup, layers = point
    model, settings = BASELINES[column]
    task = TASKS[row]
    small: Settings = {"d_state": 8} if model == "liquid-s4" else {}
    optimizer: Settings = {"learning_rate": rate, "warmup_steps": warmup, "weight_decay": 0.0}
    given: Settings = {
        "model": merge({**settings, **small}, {"num_layers": layers}),
        "train": merge(at_fan_rate(task), {"steps": STEPS, "optimizer": optimizer}),
    }
    return ScaledSpecs(scale, seeds=(0,), model=model)(task.name, given, preset="fan2024")
