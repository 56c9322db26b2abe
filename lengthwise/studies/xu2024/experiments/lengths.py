"""Looped transformers beyond their training length, with a fixed number of loops or a number that can grow."""

from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs, Scoring
from lengthwise.runs.spec import Settings

TRAINED, MEASURED = 12, 60
"""The longest training string and the longest measured one, in symbols."""

_TASKS = {"Even Pairs": "even-pairs", "Parity": "parity", "Cycle Navigation": "cycle-navigation"}


class _Column(NamedTuple):
    """A column: its name, and its changes to the `looped-transformer` of preset `looped-lengths`."""

    name: str
    model: Settings


_FIXED: Settings = {"loops": "fixed", "num_loops": TRAINED}
_CONVERGED: Settings = {"loops": "converged", "max_loops": 4 * MEASURED}
_CONTROL: Settings = {"variant": "control"}
_INDEX: Settings = {"variant": "timestep"}
_FRACTION: Settings = {"variant": "timestep", "time": "fraction"}
_PLAIN: Settings = {"variant": "code", "gates": "closed"}

_COLUMNS = (
    _Column("by length, control", _CONTROL),
    _Column("by length, index", _INDEX),
    _Column("by length, fraction", _FRACTION),
    _Column("by length, plain", _PLAIN),
    _Column("fixed, control", {**_FIXED, **_CONTROL}),
    _Column("converged, control", {**_CONVERGED, **_CONTROL}),
    _Column("converged, plain, rotary", {**_CONVERGED, **_PLAIN, "positions": "rotary"}),
)

_ABOUT_CONVERGED = (
    "*Converged*: nets are trained with as many loops as symbols, so *converged, control* has the weights of "
    "*by length, control*. A prefix is answered after the first loop that changes each state by at most a "
    f"thousandth of the state's norm, but after at most {4 * MEASURED} loops. The fraction r / R is unknown "
    "before the last loop, so *converged* has no column with *fraction*."
)


@EXPERIMENTS.register("looped/lengths")
def lengths(scale: Scale = "small") -> Experiment:
    """Train looped transformers up to 12 symbols and measure them up to 60, by number of loops and time encoding."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="looped-transformer")
    smoke = scale == "smoke"
    return Experiment(
        title="Looped transformers beyond their training length",
        headline=(
            "On even pairs, {cells[Even Pairs][by length, *][solved]} looped transformers with as many loops as "
            "symbols make no error up to five times the training length.\n"
            "On parity, {cells[Parity][by length, *][solved]} such nets are right on all measured strings, and on "
            "cycle navigation {cells[Cycle Navigation][by length, *][solved]}. Beyond the training length, the "
            "highest mean accuracies of all columns are {highest[Parity][*][mean]} on parity and {highest[Cycle "
            "Navigation][*][mean]} on cycle navigation.\n"
            "With three seeds, {decided} of {compared} differences between two columns are statistically significant "
            "after correction for the number of differences."
        ),
        about=(
            f"One layer is applied as often as the string has symbols (*by length*), {TRAINED} times (*fixed*), or "
            "until its states stop changing (*converged*)."
        ),
        notes=(
            f"The nets are trained with preset `looped-lengths`, with three seeds, on strings of up to {TRAINED} "
            f"symbols. Final weights are measured at lengths {TRAINED + 1} to {MEASURED}.",
            "*Control*: the layer's gains and gates are the same in all loops. *Index*: they are functions of the "
            "loop's number r. *Fraction*: they are functions of r / R, where R is the number of all loops. *Plain*: "
            "the net has no such gains and gates. The nets of *converged, plain, rotary* have rotary positions; the "
            "other nets have no position encoding.",
            "*By length*: the answer at position t is read after t loops, in training and in the measurement.",
            _ABOUT_CONVERGED,
            "*Plain* is variant `code`, the net of the published code of Xu and Sato (2024). It also has another "
            "activation (GELU instead of SiLU), and its norms have learned gains.",
            "Gates are open at the start of training. With closed gates, as in Xu and Sato (2024), the steps of "
            "preset `looped-lengths` were not enough to learn parity.",
            "Selection: positions, width, learning rates, steps, supervision and open gates were chosen by trials on "
            "parity. The trials had the seeds 0 and 1, which also occur on this page, but were measured on other "
            "strings.",
        ),
        cells=[
            Cell(row, column.name, specs(task, {"model": column.model}, preset="looped-lengths"))
            for row, task in _TASKS.items()
            for column in _COLUMNS
        ],
        plan=EvaluationPlan(
            dense=(TRAINED + 1, 16 if smoke else MEASURED),
            dense_strings=8 if smoke else 64,
            long=((20, 8),) if smoke else ((MEASURED, 128),),
            structured=(),
            seed=1,
        ),
        scoring=Scoring(
            compared=[
                ("by length, index", "by length, control"),
                ("by length, fraction", "by length, control"),
                ("by length, control", "fixed, control"),
                ("by length, control", "converged, control"),
            ]
        ),
    )
