"""What an experiment is: cells of runs, how each run is measured, and what the paper reports for the cell."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models.base import MODELS
from lengthwise.registry import Registry, nearest
from lengthwise.runs.goal import BUDGET
from lengthwise.runs.spec import RunSpec, Settings, make_spec, merge
from lengthwise.tasks.base import SymbolTask

Scale = Literal["smoke", "small", "paper"]
"""`small`: what a laptop does. `smoke`: seconds; its numbers say nothing. `paper`: the paper's own sizes and steps,
where an experiment re-runs a paper's; those of our own protocol have no larger size and reject it."""

SMOKE_PLAN = EvaluationPlan(dense=(9, 20), dense_strings=16, long=((64, 16), (128, 8)), structured=((20, 4),))


class Printed(NamedTuple):
    """An entry as a paper prints it, the protocol in a sentence, and its lengths, where they are not those scored.

    `is_above_chance`: 0 is what the best constant answer scores, 1 is right.
    """

    entry: str
    protocol: str
    window: tuple[int, int] | None = None
    is_above_chance: bool = False


class Cell(NamedTuple):
    """One entry of a table: the same configuration over several seeds, or seeds and rates.

    `published` is the paper's entry, as printed; `window` the lengths scored, where they are not the whole dense range;
    `task` the one of its runs' `other_tasks` that is scored, where it is not the task that they learned; `part` the
    name of the matrix that the cell stands in, where an experiment has several; `printed` what several papers
    print, each by a protocol of its own.
    """

    row: str
    column: str
    specs: tuple[RunSpec, ...]
    published: str = ""
    window: tuple[int, int] | None = None
    task: SymbolTask | None = None
    part: str = ""
    printed: tuple[Printed, ...] = ()


class Experiment(NamedTuple):
    """Cells to be filled, how their runs are measured, and what a reader has to know to compare the numbers.

    `about`: what the page shows, in one to three sentences; `headline`: what came out of it at `headline_scale`, with
    fields for numbers (`lengthwise.report.tables.headline`);
    `notes`: how the setting differs from the paper's, and what else its numbers need.
    `scored`: the lengths that count, those at which every class can occur (`"balanced"`) or all (`"legal"`); or, where
    answers are numbers, their squared `"error"`; or, of language models, the `"perplexity"` of chunks; or what
    it cost to reach a level (`"attempts"`); or, of the recipes that a cell searches, the run whose final training loss
    is lowest (`"search"`).
    `fit`: a length, one of the plan's long ones, and the accuracy that every run of a cell has to reach at it; where
    one does not, the cell is marked: how it scores beyond says nothing of generalization.
    `best_test`: show, next to final weights, the best of the tests taken while a run trains, as the paper does.
    `compared`: pairs of columns, each of one run a seed, that are compared seed by seed in each row that has both.
    `is_matrix`: show rows by columns, as a heat map, instead of a line for each cell.
    `needs`: the device, data and time that its runs take, where these are no laptop's: sentences, printed before they
    start.
    `lacks`: what has to be given before its runs can be run, as a text that is not part of the package: a sentence.
    `main`: the columns of the page's first table, where they are not the usual ones.
    `study`: what else is computed, from the folder that holds the runs, or from none where there are no cells. The page
    of a study (`lengthwise.report.pages.study`) shows what it returns.
    `needs_weights`: the study looks into the nets, so that recorded results do not stand for runs.
    """

    title: str
    about: str
    cells: Sequence[Cell]
    plan: EvaluationPlan
    notes: Sequence[str] = ()
    scored: Literal["balanced", "legal", "error", "attempts", "search", "perplexity"] = "balanced"
    fit: tuple[int, float] | None = None
    best_test: bool = False
    compared: Sequence[tuple[str, str]] = ()
    study: Callable[[Path], object] | None = None
    main: Sequence[str] = ()
    is_matrix: bool = False
    needs: str = ""
    lacks: str = ""
    needs_weights: bool = False
    headline: str = ""
    headline_scale: Scale = "small"

    def introduction(self, scale: str, headline: str = "") -> str:
        """What a page begins with: what came out, if this is given, and what the page shows."""
        return " ".join(filter(None, [_SMOKE if scale == "smoke" else headline, self.about]))

    @property
    def specs(self) -> list[RunSpec]:
        """All runs, cell by cell, each once."""
        return list({spec.id: spec for cell in self.cells for spec in cell.specs}.values())

    @property
    def plans(self) -> list[EvaluationPlan]:
        """How each run is measured: of the dense range, what its cells score."""
        windows: dict[str, list[tuple[int, int]]] = {}
        for cell in self.cells:
            for spec in cell.specs:
                windows.setdefault(spec.id, []).append(cell.window or self.plan.dense)
        return [self.plan.within(min(low for low, _ in own), max(high for _, high in own)) for own in windows.values()]

    def select(self, row: str | None = None, column: str | None = None) -> "Experiment":
        """The experiment with only the cells of a row, of a column, or of both; a name of none is a ValueError."""
        cells = list(self.cells)
        for axis, name in (("row", row), ("column", column)):
            known = list(dict.fromkeys(getattr(cell, axis) for cell in cells))
            if name is not None and name not in known:
                names = ", ".join(map(repr, known))
                raise ValueError(f"{axis}: no cell is in {axis} {name!r}{nearest(name, known)} (known: {names})")
            cells = [cell for cell in cells if name is None or getattr(cell, axis) == name]
        return self._replace(cells=cells)


_SMOKE = (
    "A trial at scale `smoke`: one seed, hardly any training, the smallest nets and strings. Its numbers mean nothing, "
    "and the seeds, steps and sizes below are those of scale `small`."
)


class ScaledSpecs(NamedTuple):
    """Makes the specifications of a cell at a scale: at `smoke` one seed and tiny sizes; `paper` is a ValueError.

    `goal` and `budget` as in `make_spec`.
    """

    scale: Scale
    seeds: Sequence[int]
    model: str = "regular-gpt"
    goal: str | None = None
    budget: float = BUDGET

    def __call__(self, task: str, settings: Settings, *, preset: str | None = None) -> tuple[RunSpec, ...]:
        check_is_not_paper(self.scale)
        smoke = self.scale == "smoke"
        seeds, budget = (self.seeds[:1], 0.0) if smoke else (self.seeds, self.budget)
        if smoke:
            contracting: Settings = {} if self.goal is None else {"train": {"pace": {"contract_steps": 5}}}
            settings = at_smoke_scale(merge(contracting, settings), self.model)
        return with_seeds(make_spec(task, self.model, settings, preset=preset, goal=self.goal, budget=budget), seeds)


def with_seeds(spec: RunSpec, seeds: Iterable[int]) -> tuple[RunSpec, ...]:
    """The same run with each of these seeds: it is validated once."""
    return tuple(spec._replace(seed=seed) for seed in seeds)


def check_is_not_paper(scale: Scale, reason: str = "this experiment is our own and no paper's") -> None:
    """Raise a ValueError with the reason if an experiment is to be run at a size that no paper has."""
    if scale == "paper":
        raise ValueError(f"scale: {reason}; use small, the real thing, or smoke")


def at_smoke_scale(settings: Settings, model: str) -> Settings:
    """Settings with hardly any training, and a small model where they do not say how large it is."""
    sizes = {"d_model": 16, "num_heads": 2, "block_dim": 16}
    config, given = MODELS[model].Config, settings.get("model", {})
    small = {name: size for name, size in sizes.items() if config.uses(name, given)}
    train = {"steps": 20, "batch_size": 16, "min_length": 1, "max_length": 8}
    return merge(merge({"model": small}, settings), {"train": train})


def parse_scale(name: str) -> Scale:
    """The scale of that name; an unknown one is a ValueError."""
    if name not in get_args(Scale):
        raise ValueError(f"scale: expected one of {', '.join(get_args(Scale))}, got {name!r}")
    return cast(Scale, name)


EXPERIMENTS: Registry[Callable[[Scale], Experiment]] = Registry("experiment", "lengthwise.studies.*.experiments")
