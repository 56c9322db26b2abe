"""Figures 3 and 4a of Chi et al. (2023): states and gradients inside trained nets of RegularGPT."""

from pathlib import Path
from typing import NamedTuple

from lengthwise.analysis.overview import Analysis, analyze
from lengthwise.experiment import EXPERIMENTS, Cell, Experiment, Requirements, Scale
from lengthwise.runs.folder import Run, load_run
from lengthwise.studies.chi2023.experiments.regular_gpt import ours
from lengthwise.studies.chi2023.experiments.tables import specs_at_rates
from lengthwise.studies.chi2023.experiments.variants import LAYERS
from lengthwise.studies.languages import LANGUAGES

ROWS = ("Parity", "Cycle Navigation")

OURS = "ours, preset fast"


class Net(NamedTuple):
    """A trained net: its row and column in the experiment, its run, and the analysis of its states and gradients."""

    row: str
    column: str
    run: Run
    analysis: Analysis


class Inside(NamedTuple):
    """The results of the study: the trained and analyzed nets."""

    nets: tuple[Net, ...]


_HEADLINE = (
    "With one seed and width 64, this page cannot test what Chi et al. (2023) report about clusters of states "
    "(Figure 3) and gradients (Figure 4a).\n"
    "Among the nets with one of the paper's layers (the layer of its code, or GPT-2's), "
    "{cells[*][the code's | GPT-2's][solved]} make no error at lengths 41-500. So none of these nets learned its "
    "task completely, even if it answers all analyzed strings correctly."
)


@EXPERIMENTS.register("regular-gpt/inside")
def inside(scale: Scale = "small") -> Experiment:
    """Figures 3 and 4a: cluster the states of trained RegularGPTs, and measure how far their gradients reach."""
    experiment = ours(scale).select(columns="C=2")
    cells = [
        cell._replace(specs=cell.specs[:1], column=OURS) for cell in experiment.cells if cell.row in ROWS
    ] + _published_layers(scale)
    if scale == "smoke":
        cells = [cells[0], cells[-1]]

    def study(root: Path) -> Inside:
        nets = []
        for cell in cells:
            for spec in cell.specs:
                run = load_run(root / spec.id)
                nets.append(Net(cell.row, cell.column, run, analyze(run.model, run.spec.task)))
        return Inside(tuple(nets))

    return Experiment(
        title="Inside RegularGPT: Figures 3 and 4a",
        headline=_HEADLINE,
        about=(
            "Figure 3 shows the states of a net, and Figure 4a how far its gradients reach. This page shows states "
            "and gradients of nets on two tasks.\n"
            "A check of Figure 3 compares clusters of states with the elements of the task's transition monoid. An "
            "element shows to which state a string leads from each state of the task's machine. A check of Figure 4a "
            "replaces a symbol, and counts how often the answer changes."
        ),
        notes=(
            "*Ours*: the nets of `regular-gpt/ours` with seed 0 on two tasks. The other nets have the paper's layers "
            "and recipe, without noise and without inserted pads.",
            "If the monoid is a group, every position affects the answer equally, but gradients need not show this. "
            "`lengthwise analyze RUN` makes an interactive page of this kind for any RegularGPT with one layer for "
            "each level.",
            "Preset `fast` adds noise to states, and compares the states of a string with and without pads. The noise "
            "and the comparison encourage clusters, so our own nets are not evidence that clusters emerge by "
            "themselves. Nets with the paper's layers are trained without noise and without this comparison.",
            "Nets with the paper's layers: preset `chi2023`, width 64, 5,000 steps at learning rate 3e-4, seed 0 "
            "(runs of `regular-gpt/variants`).",
        ),
        cells=cells,
        plan=experiment.plan,
        study=study,
        requires=Requirements(weights=True),
    )


def _published_layers(scale: Scale) -> list[Cell]:
    """Return cells for the published code's layer and GPT-2's layer, with the second of the paper's learning rates."""
    cells = []
    for language in LANGUAGES:
        for variant in ("code", "paper"):
            if language.row in ROWS:
                model = {"chunk_size": 2, "variant": variant, "thickness": 1}
                settings = {"task": language.fields, "model": model}
                specs = specs_at_rates(scale, language.task, "regular-gpt", settings)
                middle = specs[len(specs) // 2 :][:1]
                cells.append(Cell(language.row, LAYERS[variant], middle, language.published.chunks_of_2))
    return cells
