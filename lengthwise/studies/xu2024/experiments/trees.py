"""Appendix C.3 of Xu and Sato (2024): decision trees of the paper's size, and the effect of two curricula."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from lengthwise.evaluation.error_curve import ErrorCurve
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Scale, Scoring, at_smoke_scale, with_seeds
from lengthwise.randomness import generator_for
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.spec import RunSpec, Settings, make_spec, merge
from lengthwise.studies.xu2024.experiments.looped import PRINTED_ERRORS
from lengthwise.tasks.in_context.decision_tree import DecisionTree, mean_so_far, nearest_neighbor


class _Size(NamedTuple):
    """The size of trees, the numbers of loops (or layers) and test prompts, and the steps between curriculum rises."""

    trees: Settings
    depth: int
    every: int
    num_prompts: int


_SIZES: dict[Scale, _Size] = {
    "paper": _Size({"depth": 4, "dims": 20, "max_points": 101}, 12, 5_000, 1_280),
    "small": _Size({"depth": 4, "dims": 20, "max_points": 101}, 5, 200, 1_280),
    "smoke": _Size({"depth": 4, "dims": 20, "max_points": 36}, 2, 5, 8),
}

_SMALL: Settings = {
    "model": {"d_model": 64, "num_heads": 4},
    "train": {"steps": 8_000, "batch_size": 16, "lengths": "legal", "supervision": "prefix"},
}
"""The changes to preset `plain` at scale `small`, as in `looped/table-2`."""

START_DIMS, START_POINTS = 5, 26

_HEADLINE = (
    "After 8,000 steps, no net has learned to predict a decision tree from examples: squared errors are "
    "{cells[*][*][error]}, and the error of the best constant answer is {cells[*][*][mean predicted]}.\n"
    "So the page cannot show whether loops, timestep encoding or curricula help."
)


class TreeErrors(NamedTuple):
    """Squared errors of answers by number of preceding examples, for each column's runs and for each simple learner."""

    runs: dict[str, list[ErrorCurve]]
    learners: dict[str, list[float]]


@EXPERIMENTS.register("looped/trees")
def trees(scale: Scale = "small") -> Experiment:
    """Train looped and ordinary transformers on decision trees of depth 4, with and without curricula."""
    size = _SIZES[scale]
    points, count = size.trees["max_points"], size.depth
    row = f"depth {size.trees['depth']}, {size.trees['dims']} dimensions, {points} points"
    # Recorded results at scale `small` have SiLU; the published code has GELU for in-context tasks.
    timestep = _loop("timestep-in-context" if scale == "paper" else "timestep", count)
    columns = {
        f"transformer, L={count}": ("transformer", {"num_layers": count}, "both"),
        f"plain loop, R={count}": ("looped-transformer", _loop("code-in-context", count), "both"),
        f"timestep, R={count}": ("looped-transformer", timestep, "both"),
        f"timestep, R={count}, points alone": ("looped-transformer", timestep, "points"),
        f"timestep, R={count}, no curriculum": ("looped-transformer", timestep, "none"),
    }
    cells = [
        Cell(
            row,
            column,
            _specs(scale, size, *parts),
            PRINTED_ERRORS.get(column.split(", ")[0], "") if parts[2] == "both" else "",
        )
        for column, parts in columns.items()
    ]
    return Experiment(
        title="Xu and Sato (2024), C.3: decision trees of the paper's size, and its curricula",
        headline=_HEADLINE,
        about=(
            "A prompt contains points, and each point is followed by the value of a decision tree at this point. "
            "Trees and prompts have the size of Table 2 of Xu and Sato. Nets are trained with and without the "
            "curricula of the paper, and compared with simple learners. At scale `small` there is one seed."
        ),
        notes=(
            "Curricula begin with small problems. At regular intervals, a *rise* makes the problems larger. Prompts "
            f"have {START_POINTS} points at first, and each rise adds five points. Points have {START_DIMS} "
            "dimensions at first, and nodes of the tree test only these dimensions. (Other coordinates are 0.) Each "
            f"rise adds one dimension. Curricula end with {points} points in {size.trees['dims']} dimensions. In "
            "*points alone*, only the number of points grows. All dimensions are used from the first step, as in the "
            "published code. In *no curriculum*, all points and dimensions are used from the first step. For the "
            "other nets, the number of points and the number of dimensions grow. The page on [Table "
            "2](looped-table-2.md) explains *timestep* and *plain loop*.",
            "At scale `small`, nets have width 64 (paper: 256) and 5 loops or layers (paper: 12). They are trained "
            "for 8,000 steps of 16 prompts (paper: 200,000 of 64). There is a rise every 200 steps (paper: 5,000). "
            "Here and in the paper, curricula end after 37.5 % of the steps. The preset is `plain` with Muon. There "
            "were no pilot runs, and nothing is selected.",
            "At scale `small`, *timestep* has SiLU. The published code uses GELU for its in-context tasks. Variant "
            "`timestep-in-context` has GELU, and is used at scale `paper` and in `looped/table-2`.",
            "All nets are measured at full size: on prompts with all points in all dimensions.",
            "Scale `small` takes an estimated 1.6 CPU hours. Eight steps, spread over the training of each net, were "
            "timed and extrapolated (script `benchmarks/cell_costs.py`).",
        ),
        cells=cells,
        plan=EvaluationPlan(dense=(points, points), dense_strings=size.num_prompts, long=(), structured=()),
        scoring=Scoring(measure="error"),
        study=lambda root: tree_errors(root, cells, size.num_prompts),
    )


def _loop(variant: str, num_loops: int) -> Settings:
    return {"variant": variant, "num_loops": num_loops, "injection": "input"}


def _specs(scale: Scale, size: _Size, model: str, sizes: Settings, curriculum: str) -> tuple[RunSpec, ...]:
    """Return specs of one seed; at scale `paper`, of three seeds and preset `xu2024-in-context`."""
    points, dims = size.trees["max_points"], size.trees["dims"]
    rise = {"by": 5, "every": size.every}
    of_dims = {"field": "active_dims", "start": START_DIMS, "stop": dims, "every": size.every}
    settings: Settings = {"task": size.trees, "model": sizes}
    if scale != "paper":
        settings = merge(merge(_SMALL, {"model": {"learned_positions": 2 * points - 1}}), settings)
    if scale == "smoke":
        settings = at_smoke_scale(settings, model)
    rises: Settings = {"min_length": START_POINTS, "max_length": points, "rise": rise}
    if curriculum == "none":
        rises = {"min_length": points, "max_length": points, "rise": None}
    if curriculum == "both":
        rises["task_rise"] = of_dims
    settings = merge(settings, {"train": rises})
    preset, seeds = ("xu2024-in-context", 3) if scale == "paper" else ("plain", 1)
    return with_seeds(make_spec("decision-tree", model, settings, preset=preset), range(seeds))


def tree_errors(root: Path, cells: Sequence[Cell], num_prompts: int) -> TreeErrors:
    """Return the errors of the runs in a folder, from the runs' results, and the errors of simple learners."""
    runs: dict[str, list[ErrorCurve]] = {}
    for cell in cells:
        results = [RunFolder(root / spec.id).read_result() for spec in cell.specs]
        runs[cell.column] = [result.errors for result in results if result is not None and result.errors is not None]
    task = cells[0].specs[0].task
    assert isinstance(task, DecisionTree)
    inputs, targets = task.sample(num_prompts, task.max_points, generator_for(0, "simple learners"))
    answers = {"nearest neighbor": nearest_neighbor(inputs), "mean so far": mean_so_far(inputs)}
    learners = {name: _errors(given, targets) for name, given in answers.items()}
    return TreeErrors(runs, learners)


def _errors(answers: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """Return the mean squared error at each point of a prompt."""
    errors: list[float] = (answers - targets)[:, ::2].square().mean(0).tolist()
    return errors
