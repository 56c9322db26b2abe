"""Figure 5 of Xu and Sato (2024): accuracy on a fixed training set, compared with accuracy on test problems."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, Scoring, at_smoke_scale, with_seeds
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.spec import RunSpec, Settings, make_spec, merge

LOOPS: dict[Scale, tuple[int, ...]] = {"paper": (5, 10, 50, 100), "small": (2, 5, 10, 20), "smoke": (2,)}

KINDS = {"plain loop": "code", "timestep": "timestep"}
"""The variant of `looped-transformer` in each column."""


class _Size(NamedTuple):
    """The numbers of letters in a string and in the alphabet, and the numbers of training and of test problems."""

    length: int
    alphabet: int
    num_examples: int
    test: int


_SIZES: dict[Scale, _Size] = {
    "paper": _Size(60, 26, 1_000_000, 1_000),
    "small": _Size(8, 4, 4_000, 4_000),
    "smoke": _Size(8, 4, 16, 64),
}

_SMALL: Settings = {
    "model": {"learned_positions": 20},
    "train": {"steps": 2_000, "batch_size": 64, "optimizer": {"schedule": "constant", "warmup_steps": 100}},
}
"""The changes to preset `plain` at scale `small`, as in `looped/table-1`."""


class TrainTest(NamedTuple):
    """The accuracies of a run on its training set and on test strings.

    `train` is the accuracy on the first `num_scored` strings of the training set, or None if training strings are
    always new.
    """

    row: str
    kind: str
    num_loops: int
    seed: int
    train: float | None
    test: float
    num_scored: int


@EXPERIMENTS.register("looped/figure-5")
def figure_5(scale: Scale = "small") -> Experiment:
    """Figure 5: compare training and test accuracy on edit distances, by number of loops and timestep encoding."""
    size = _SIZES[scale]
    cells = list(_cells(scale, size))
    return Experiment(
        title="Xu and Sato (2024), Figure 5: training and test accuracy on edit distances",
        about=(
            "Xu and Sato use test accuracy to measure what a net can represent, because accuracies on training and "
            "test problems rise together.\n"
            "One layer is applied R times. In *timestep*, the layer's gains and gates are functions of the loop's "
            "number. *Plain loop* is the net of the published code, without such gains and gates ([Table "
            "1](looped-table-1.md))."
        ),
        notes=(
            f"Row *{size.num_examples:,} problems*: nets are trained on this number of fixed problems, and measured on "
            "these problems and on new problems. Row *new problems*: every batch has newly drawn problems.",
            "A problem asks for the edit distance (2 for an inserted or deleted letter, 3 for a replaced one) "
            f"between two strings of about {size.length} letters from an alphabet of {size.alphabet}. (In the paper, "
            "strings have 60 letters from an alphabet of 26, and training makes 100 passes through a million "
            "problems, in order.) Here each batch is drawn with replacement. At scale `small`, each of the 4,000 "
            "fixed problems is drawn 32 times on average. The first table has accuracies on test problems.",
            "At scale `small`, nets have width 64 (paper: 256). They are trained for 2,000 steps of 64 problems with "
            "preset `plain`, Muon at a constant learning rate, and learned positions. There were no pilot runs, and "
            "nothing is selected. Training and test accuracy may also be correlated because both change with the "
            "number of loops. A correlation does not show that one accuracy can replace the other.",
            "Scale `small` takes 2.3 CPU hours, estimated from the time of three steps of each cell (`python "
            "benchmarks/cell_costs.py looped/figure-5`).",
        ),
        cells=cells,
        plan=EvaluationPlan(dense=(size.length, size.length), dense_strings=size.test, long=(), structured=(), seed=1),
        scoring=Scoring(measure="legal", compared=[(f"timestep, R={r}", f"plain loop, R={r}") for r in LOOPS[scale]]),
        study=lambda root: accuracies(root, cells),
    )


def _cells(scale: Scale, size: _Size) -> Iterator[Cell]:
    fixed: Settings = {"num_examples": size.num_examples}
    rows: dict[str, Settings] = {f"{size.num_examples:,} problems": fixed}
    if scale != "paper":
        rows["new problems"] = {}
    for row, train in rows.items():
        for kind, variant in KINDS.items():
            for num_loops in LOOPS[scale]:
                model: Settings = {"variant": variant, "num_loops": num_loops}
                if scale == "paper" and num_loops > 10:
                    model["activations"] = "recomputed"
                yield Cell(row, f"{kind}, R={num_loops}", _specs(scale, size, model, train))


def _specs(scale: Scale, size: _Size, model: Settings, train: Settings) -> tuple[RunSpec, ...]:
    lengths = {"min_length": size.length, "max_length": size.length, "lengths": "legal"}
    task: Settings = {"max_length": size.length, "alphabet": size.alphabet}
    if scale == "paper":
        task["border"] = "published"
    settings: Settings = {"task": task, "model": model, "train": lengths | train}
    if scale != "paper":
        settings = merge(_SMALL, settings)
    if scale == "smoke":
        settings = merge(at_smoke_scale(settings, "looped-transformer"), {"train": lengths})
    preset, seeds = ("xu2024" if scale == "paper" else "plain"), (1 if scale == "smoke" else 3)
    return with_seeds(make_spec("edit-distance", "looped-transformer", settings, preset=preset), range(seeds))


def accuracies(root: Path, cells: Sequence[Cell]) -> list[TrainTest]:
    """Return the accuracies of the runs in a folder, from the runs' results alone."""
    points = []
    for cell in cells:
        kind, _, loops = cell.column.partition(", R=")
        for spec in cell.specs:
            result = RunFolder(root / spec.id).read_result()
            if result is None:
                continue
            scored = sum(point.num_strings for point in result.examples)
            train = sum(point.num_correct for point in result.examples) / scored if scored else None
            points.append(TrainTest(cell.row, kind, int(loops), spec.seed, train, result.dense.mean(), scored))
    return points
