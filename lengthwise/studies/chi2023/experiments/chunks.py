"""Chunk sizes that differ by level, or that pilot runs choose; Chi et al. (2023) choose the size by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, SMOKE_PLAN, Cell, Experiment, Scale, ScaledSpecs
from lengthwise.ops.tree import num_levels
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import Settings
from lengthwise.studies.languages import LANGUAGES, Language

ROWS = ("Even Pairs", "Parity", "Cycle Navigation", "Tomita 5")

COLUMNS: Mapping[str, Settings] = {
    "C=2": {"chunk_size": 2},
    "C=3": {"chunk_size": 3},
    "C=4": {"chunk_size": 4},
    "C=4, then 2": {"chunk_size": 2, "lower_chunk_sizes": [4]},
}
"""Model settings by column. In the last column, the lowest level merges four symbols, and higher levels two states."""

SIZES = (2, 3, 4)
"""The chunk sizes of the pilots, of which one is chosen (`chosen_size`)."""

PILOT_STEPS = 1_000
"""The training steps of a pilot, in which the learning rate runs through its whole schedule. Full nets have 6,000."""

DEPTHS_AT = (40, 500, 10_000)


class Choice(NamedTuple):
    """The results of the pilots (short training runs) and of the full nets of one task and seed.

    `losses` contains the final training loss of each pilot by chunk size. `pilot_seconds` is the sum of the pilots' CPU
    seconds. `accuracies` and `seconds` contain the accuracy and the CPU seconds of training of each full net that has a
    result, by chunk size.
    """

    row: str
    seed: int
    losses: Mapping[int, float]
    pilot_seconds: float
    accuracies: Mapping[int, float]
    seconds: Mapping[int, float]

    @property
    def size(self) -> int:
        """Return the chunk size whose pilot (short training run) has the lowest final training loss (`chosen_size`)."""
        return chosen_size(self.losses)


class Chunks(NamedTuple):
    """The number of tree levels by column and string length (`depths`), and a `Choice` for each task and seed."""

    depths: Mapping[str, Mapping[int, int]]
    choices: tuple[Choice, ...]


def chosen_size(losses: Mapping[int, float]) -> int:
    """Return the chunk size whose pilot has the lowest final training loss; if two losses are equal, the smaller size.

    Example:
        >>> chosen_size({2: 0.69, 3: 0.02, 4: 0.11})
        3
    """
    return min(losses, key=lambda size: (losses[size], size))


@EXPERIMENTS.register("regular-gpt/chunks")
def chunks(scale: Scale = "small") -> Experiment:
    """Compare chunk sizes 2, 3 and 4, sizes that differ by level, and the size that short pilots choose."""
    specs = ScaledSpecs(scale, seeds=(0, 1))
    languages = [language for language in LANGUAGES if language.row in ROWS][: 1 if scale == "smoke" else None]
    cells = [cell for language in languages for cell in _cells(specs, language)]
    plan = SMOKE_PLAN if scale == "smoke" else EvaluationPlan(dense_strings=128, long=((10_000, 64),), structured=())
    return Experiment(
        title="RegularGPT: mixed chunk sizes, and chunk sizes chosen by pilot runs",
        about=(
            "RegularGPT merges C states at a time in a tree, and C is its chunk size. Chi et al. (2023) choose the "
            "chunk size by hand, and name this choice as a limitation."
        ),
        notes=(
            "All nets are trained with preset `fast`, at width 64, and each entry has two seeds. *Full nets*, in the "
            "columns without *pilot*, are trained for 6,000 steps, and their final weights are measured at lengths "
            "41-500. *C=4, then 2*: the lowest level merges four symbols, and each higher level merges two states.",
            f"A pilot is a training run of {PILOT_STEPS:,} steps with a complete learning-rate schedule; a full net "
            "is trained for six times as many steps. All pilots take equally many steps, but not the same CPU time, "
            "because a step with a larger chunk size is cheaper. The chunk size of the pilot with the lowest final "
            "loss is chosen. This loss is measured without noise or pads, on a new batch of each training length "
            "(`final_loss` in the records). No string longer than 40 symbols is used for this choice.",
            "Pilots must be long enough to learn something. After 300 steps (seed 0), the losses of the three sizes "
            "differed by at most 0.01 on each of the four tasks, so a choice would have been random.",
            "All levels share one layer, even if their chunk sizes differ. In a net with chunk sizes 4 and 2, a "
            "merge of two states uses only the first two of the layer's position biases. Machines cannot be "
            "extracted from such a net, and no net of the page has a certificate.",
            "*paper*: the maximum / mean that Chi et al. (2023) report by another protocol, over three seeds and "
            "probably three learning rates (see `regular-gpt/table-1`).",
        ),
        cells=cells,
        plan=plan,
        main=("row", "column", "mean", "lowest", "10,000", "solved", "CPU s", "paper"),
        study=lambda root: Chunks(_depths(), tuple(_choices(root, cells))),
    )


def _cells(specs: ScaledSpecs, language: Language) -> list[Cell]:
    published = {"C=2": language.published.chunks_of_2, "C=3": language.published.chunks_of_3}
    cells = [
        Cell(
            language.row,
            column,
            specs(language.task, {"task": language.fields, "model": model}),
            published.get(column, ""),
        )
        for column, model in COLUMNS.items()
    ]
    for size in SIZES:
        settings: Settings = {
            "task": language.fields,
            "model": {"chunk_size": size},
            "train": {"steps": PILOT_STEPS, "checkpoint_every": PILOT_STEPS},
        }
        cells.append(Cell(language.row, _pilot(size), specs(language.task, settings)))
    return cells


def _pilot(size: int) -> str:
    """Return the name of the column for pilots of a chunk size."""
    return f"pilot, C={size}"


def _depths() -> dict[str, dict[int, int]]:
    return {
        column: {n: num_levels(n, model["chunk_size"], model.get("lower_chunk_sizes", ())) for n in DEPTHS_AT}
        for column, model in COLUMNS.items()
    }


def _choices(root: Path, cells: Sequence[Cell]) -> list[Choice]:
    """Read the results in a folder of runs, and return a choice for each task and seed with a pilot's result."""
    results: dict[tuple[str, int], dict[str, RunResult]] = {}
    for cell in cells:
        for spec in cell.specs:
            if (result := RunFolder(root / spec.id).read_result()) is not None:
                results.setdefault((cell.row, spec.seed), {})[cell.column] = result
    return [choice for (row, seed), by_column in results.items() if (choice := _choice(row, seed, by_column)).losses]


def _choice(row: str, seed: int, results: Mapping[str, RunResult]) -> Choice:
    pilots = {size: results[_pilot(size)] for size in SIZES if _pilot(size) in results}
    nets = {size: results[f"C={size}"] for size in SIZES if f"C={size}" in results}
    return Choice(
        row,
        seed,
        losses={size: pilot.final_loss for size, pilot in pilots.items() if pilot.final_loss is not None},
        pilot_seconds=sum(pilot.training.cpu_seconds for pilot in pilots.values()),
        accuracies={size: net.dense.balanced().mean() for size, net in nets.items()},
        seconds={size: net.training.cpu_seconds for size, net in nets.items()},
    )
