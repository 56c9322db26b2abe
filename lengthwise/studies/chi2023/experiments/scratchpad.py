"""Section 2.2 of Chi et al. (2023): scratchpads and recency biases, a remedy that RegularGPT does not need."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lengthwise.certification.equivalence import first_error
from lengthwise.devices import one_thread
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Requirements, Scale, ScaledSpecs
from lengthwise.extraction.windows import window_machine
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.models.own_answers import OwnAnswers
from lengthwise.ops.tree import num_levels
from lengthwise.randomness import generator_for
from lengthwise.runs.folder import load_run
from lengthwise.runs.spec import RunSpec, Settings, merge
from lengthwise.tasks.base import RegularTask, make_task
from lengthwise.tasks.regular.scratchpad import Scratchpad

ROWS: Mapping[str, Settings] = {"Parity": {"name": "parity"}, "Cycle Navigation": {"name": "cycle-navigation"}}
"""The name and fields of the task of each row.

In these tasks, a prefix of a random string has the distribution of a random string.
"""

WINDOW = 2

ENCODINGS: Mapping[str, Settings] = {
    "sinusoids": {},
    "none": {"positions": "none"},
    "ALiBi": {"positions": "alibi"},
    "window": {"positions": "local", "position_range": WINDOW},
}

TRAINED_TO = 40
LENGTHS = (20, 40, 60, 100, 200, 500)
NUM_STRINGS = 64
MAX_READ_AGAIN = 100
"""The length limit, in symbols, for nets that read the whole string again for each answer, because this takes long."""


class Size(NamedTuple):
    """The size of the study: lengths, number of strings, and the length limit for nets that reread the whole string."""

    lengths: tuple[int, ...] = LENGTHS
    num_strings: int = NUM_STRINGS
    max_read_again: int = MAX_READ_AGAIN


class Windows(NamedTuple):
    """A net whose answer depends only on a window, which is the last symbols of a string.

    The fields contain the number of symbols of the longest window, the number of different windows, the smallest logit
    margin over windows, and a shortest string with a wrong answer (None if every answer is right).
    """

    receptive_field: int
    num_windows: int
    margin: float
    error: str | None


class Measured(NamedTuple):
    """The accuracy of a net by length.

    The net reads its own intermediate answers (`own`) or the right intermediate answers (`told`).

    `told` is empty for nets without a scratchpad. `windows` is None unless the net has a bounded receptive field.
    """

    row: str
    column: str
    own: Mapping[int, float]
    told: Mapping[int, float]
    windows: Windows | None


class Cost(NamedTuple):
    """The CPU seconds of three nets for a batch of strings, and the number of levels of RegularGPT.

    Two nets write their own intermediate answers into a scratchpad. For each answer, the net of `window` reads one
    window again, and the net of `read_again` reads the whole string again.
    """

    length: int
    window: float
    read_again: float | None
    regular_gpt: float
    levels: int


class Remedies(NamedTuple):
    """The results for scratchpads and recency biases. `chance` contains the chance level by row and length."""

    size: Size
    nets: tuple[Measured, ...]
    chance: Mapping[str, Mapping[int, float]]
    costs: tuple[Cost, ...]


_HEADLINE = (
    "With a scratchpad and a recency bias (ALiBi or a window), "
    "{cells[*][scratchpad, ALiBi | scratchpad, window][solved]} transformers make no error on random strings of "
    "41-100 symbols.\n"
    "On parity, mean accuracies with a recency bias alone are at most {highest[Parity][ALiBi | window][mean]}. With "
    "a scratchpad alone, mean accuracies are {cells[Parity][scratchpad][mean]} with sinusoidal positions and "
    "{cells[Parity][scratchpad, none][mean]} without positions. All nets are trained on strings of 40 symbols, for "
    "only 300 steps. This is too few steps to show that a scratchpad alone fails."
)


@EXPERIMENTS.register("regular-gpt/scratchpad")
def scratchpad(scale: Scale = "small") -> Experiment:
    """Test scratchpads and recency biases of transformers, alone and together, on parity and cycle navigation."""
    smoke = scale == "smoke"
    size = Size((2, 4, 8), 8, 4) if smoke else Size()
    cells = list(_cells(ScaledSpecs(scale, seeds=(0, 1, 2), model="transformer")))
    if smoke:
        cells = [cell._replace(window=None) for cell in (cells[0], cells[2 * len(ENCODINGS) - 1])]
    return Experiment(
        title="Scratchpads and recency biases",
        headline=_HEADLINE,
        about=(
            "Section 2.2 of Chi et al. (2023) describes a remedy for transformers that fail beyond their training "
            "length. With this remedy, a transformer writes its intermediate answers into a scratchpad, and attends "
            "mostly to the last symbols.\n"
            "In the first table, strings with a scratchpad contain the right intermediate answers. In the section "
            "*With the net's own answers*, the net reads the answers that it gave itself."
        ),
        notes=(
            "The nets are transformers with 2 layers and width 64. They are trained for 300 steps on strings of 40 "
            "symbols, and the answers to all prefixes are supervised. There are three seeds, and nothing is "
            "selected. A net that reads its own intermediate answers gives these answers one after another. In the "
            "first table, a net reads the right intermediate answers, and gives all its own answers in one pass.",
            "*Sinusoids* is a transformer with sinusoidal positions. Column *scratchpad* also has sinusoidal "
            "positions. Beyond the training length, these nets read positions that they have never seen. *None* has "
            "no position encoding. *ALiBi* and *window* are recency biases: ALiBi's slopes, and attention to the "
            f"last {WINDOW} positions only.",
            "With a *scratchpad*, the string s_1 s_2 ... s_T is written as s_1 =q_1 s_2 =q_2 ... s_T. Here =q_t is a "
            "single symbol for q_t, the right answer after s_t. The written string has 2T - 1 symbols. In the last "
            "section, column *lengths* counts all symbols of the written string, so 81-199 means 41-100 symbols of "
            "the task.",
            "All columns have the same labels in training: 40 answers for each of 16 strings in a step. The preset "
            "is `recurrent`, with 300 steps of 16 strings, a learning rate of 0.002 and 50 steps of warm-up. After "
            "these 300 steps, nets without a scratchpad do not even fit the training length (for more steps, see "
            "`regular-gpt/table-1`).",
        ),
        cells=cells,
        plan=EvaluationPlan(
            dense=(9, 20) if smoke else (41, 199), dense_strings=8 if smoke else NUM_STRINGS, long=(), structured=()
        ),
        study=lambda root: _study(root, cells, size),
        requires=Requirements(weights=True),
    )


def _cells(specs: ScaledSpecs) -> Iterator[Cell]:
    train: Settings = {
        "steps": 300,
        "batch_size": 16,
        "min_length": TRAINED_TO,
        "max_length": TRAINED_TO,
        "optimizer": {"learning_rate": 0.002, "warmup_steps": 50},
    }
    doubled: Settings = {"min_length": 2 * TRAINED_TO - 1, "max_length": 2 * TRAINED_TO - 1}
    for row, base in ROWS.items():
        fields = {key: value for key, value in base.items() if key != "name"}
        for name, positions in ENCODINGS.items():
            settings: Settings = {"task": fields, "model": positions, "train": train}
            yield Cell(row, name, specs(base["name"], settings, preset="recurrent"), window=(41, 100))
        for name, positions in ENCODINGS.items():
            settings = {"task": {"base": base}, "model": positions, "train": merge(train, doubled)}
            column = "scratchpad" if name == "sinusoids" else f"scratchpad, {name}"
            yield Cell(row, column, specs("scratchpad", settings, preset="recurrent"), window=(81, 199))


def _study(root: Path, cells: list[Cell], size: Size) -> Remedies:
    with one_thread():
        nets = tuple(
            _measured(cell, spec, load_run(root / spec.id).model, size) for cell in cells for spec in cell.specs
        )
        rows = dict.fromkeys(cell.row for cell in cells)
        chance = {row: {length: _task(row).baseline(length) for length in size.lengths} for row in rows}
        return Remedies(size, nets, chance, tuple(_cost(length, size) for length in size.lengths))


def _task(row: str) -> RegularTask:
    task = make_task(**ROWS[row])
    assert isinstance(task, RegularTask)
    return task


def _measured(cell: Cell, spec: RunSpec, model: SequenceModel, size: Size) -> Measured:
    task, trained_on = _task(cell.row), spec.task
    net, told = model, {}
    lengths = size.lengths
    if isinstance(trained_on, Scratchpad):
        net = OwnAnswers(model, num_symbols=len(task.symbols))
        told = _accuracies(model, trained_on, {2 * length - 1: length for length in lengths}, size)
        if net.num_positions_read is None:
            lengths = tuple(length for length in lengths if length <= size.max_read_again)
    own = _accuracies(net, task, {length: length for length in lengths}, size)
    return Measured(cell.row, cell.column, own, told, _windows(net, task) if cell.column.endswith("window") else None)


def _accuracies(model: SequenceModel, task: RegularTask, names: Mapping[int, int], size: Size) -> dict[int, float]:
    """Return accuracies by key: `names` maps each measured length to the key of its accuracy."""
    curve = length_curve(model, task, names, num_strings=size.num_strings, protocol="one-pass")
    return {names[point.length]: point.accuracy for point in curve.points}


def _windows(net: SequenceModel, task: RegularTask) -> Windows:
    machine, margin, receptive_field = window_machine(net, task.symbols)
    error = first_error(machine, task.reference)
    text = None if error is None else task.separator.join(error)
    return Windows(receptive_field, machine.num_states - 1, margin, text)


def _cost(length: int, size: Size) -> Cost:
    """Measure the CPU seconds of three nets. The nets are untrained, because times do not depend on weights."""
    parity = _task("Parity")
    task = Scratchpad(base=parity)
    strings = torch.randint(2, (size.num_strings, length), generator=generator_for(0, "cost", length))
    window, read_again = (
        OwnAnswers(make_model("transformer", task, **ENCODINGS[name]), num_symbols=2) for name in ("window", "ALiBi")
    )
    tree = make_model("regular-gpt", parity)
    return Cost(
        length,
        _seconds(window.last, strings),
        _seconds(read_again.last, strings) if length <= size.max_read_again else None,
        _seconds(tree.last, strings),
        num_levels(length, 2),
    )


def _seconds(answer: Callable[[Tensor], Tensor], strings: Tensor) -> float:
    """Return the smallest CPU time of three calls, in seconds."""
    times = []
    for _ in range(3):
        started = time.process_time()
        with torch.no_grad():
            answer(strings)
        times.append(time.process_time() - started)
    return min(times)
