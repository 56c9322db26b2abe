"""Looped transformers beyond their training length: loops that follow the length, or the states."""

from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, ScaledSpecs
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


@EXPERIMENTS.register("looped/lengths")
def lengths(scale: Scale = "small") -> Experiment:
    """Train up to 12 symbols and measure up to 60: vary the number of loops, and the encoding of time."""
    specs = ScaledSpecs(scale, seeds=(0, 1, 2), model="looped-transformer")
    smoke = scale == "smoke"
    return Experiment(
        title="Looped transformers beyond their training length",
        headline=(
            "With as many loops as symbols {cells[Even Pairs][by length, *][solved]} nets go on without an error to "
            "five times the training length on even pairs, {cells[Parity][by length, *][solved]} on parity and "
            "{cells[Cycle Navigation][by length, *][solved]} on cycle navigation; the highest means there are "
            "{highest[Parity][*][mean]} and {highest[Cycle Navigation][*][mean]}. Three seeds decide {decided} of "
            "{compared} differences between time encodings or numbers of loops."
        ),
        about=(
            f"One layer, applied as often as the string has symbols (*by length*), {TRAINED} times (*fixed*), or until "
            "its states stop changing (*converged*). Preset `looped-lengths`, three seeds, final weights: training "
            f"sees strings of up to {TRAINED} symbols, lengths of {TRAINED + 1} to {MEASURED} are measured. *Control*: "
            "gains and gates are the same in all loops; *index*: they are functions of the loop's number r; "
            "*fraction*: of r / R, where R is the number of all loops; *plain*: there are none. No positions, or "
            "rotary ones."
        ),
        notes=(
            "Loops by length: the answer at position t is read after t loops, in training and in the measurement.",
            "Converged: trained as by length, so that weights are the same; a prefix is answered as soon as no state "
            f"of it changes by more than a thousandth of its norm, and after {4 * MEASURED} loops at the latest. The "
            "fraction r / R is not known before the last loop, so that it can have no such column.",
            "Plain loops have another norm, with a gain of its own, and another activation than the others: variant "
            "`code`.",
            "Gates begin open. With closed ones, as in the paper, the steps of preset "
            "`looped-lengths` were too few for parity.",
            "Selection: positions, width, rates, steps, supervision and open gates were chosen by trials on parity, on "
            "seeds 0 and 1 of this page, measured on other strings.",
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
        compared=[
            ("by length, index", "by length, control"),
            ("by length, fraction", "by length, control"),
            ("by length, control", "fixed, control"),
            ("by length, control", "converged, control"),
        ],
    )
