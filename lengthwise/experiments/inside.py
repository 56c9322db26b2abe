"""Figures 3 and 4a of Chi et al. (2023): states and gradients inside trained RegularGPTs."""

from pathlib import Path
from typing import NamedTuple

from lengthwise.analysis.overview import Analysis, analyze
from lengthwise.experiments.base import EXPERIMENTS, Experiment, Scale
from lengthwise.experiments.regular_gpt import ours
from lengthwise.runs.folder import Run, load_run

ROWS = ("Parity", "Cycle Navigation")


class Inside(NamedTuple):
    """Trained runs, and the analysis of each."""

    runs: tuple[Run, ...]
    analyses: tuple[Analysis, ...]


@EXPERIMENTS.register("regular-gpt/inside")
def inside(scale: Scale = "small") -> Experiment:
    """Figures 3 and 4a: states of trained nets in clusters, and how far their gradients reach."""
    experiment = ours(scale)
    cells = [cell._replace(specs=cell.specs[:1]) for cell in experiment.cells if cell.row in ROWS]

    def study(root: Path) -> Inside:
        runs = tuple(load_run(root / spec.id) for cell in cells for spec in cell.specs)
        return Inside(runs, tuple(analyze(run.model, run.spec.task) for run in runs))

    return Experiment(
        title="Inside RegularGPT: Figures 3 and 4a",
        about=(
            "Chi et al. (2023) show the states of a net (Figure 3) and how far its gradients reach (Figure 4a). Here "
            "are the same for the first seed of two tasks of `regular-gpt/ours`, each with a check: whether clusters "
            "of states are the elements of the task's monoid, and whether the answer changes when a symbol does. For "
            "a group every position matters alike; gradients need not say so. These nets are trained by preset `fast`, "
            "whose noise on states and comparison of states pull states into points: clusters here are no evidence "
            "that they emerge by themselves."
        ),
        notes=(
            "The paper's own nets, trained without noise (preset `chi2023`, variants `paper` and `code`), are not "
            "shown: whether their states cluster is not decided here.",
            "`lengthwise analyze RUN` makes an interactive page of this kind of any run.",
        ),
        cells=cells,
        plan=experiment.plan,
        study=study,
    )
