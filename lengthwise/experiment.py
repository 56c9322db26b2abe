"""The definition of an experiment: cells of runs, the measurement of each run, and the paper's entry for each cell."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models.base import MODELS
from lengthwise.presets import PRESETS
from lengthwise.registry import Registered, Registry, nearest
from lengthwise.runs.goal import BUDGET
from lengthwise.runs.spec import RunSpec, Settings, make_spec, merge
from lengthwise.tasks.base import MachineTask, SymbolTask
from lengthwise.validation import check_choice, check_kind, truncate

Scale = Literal["smoke", "small", "paper"]
"""The size of an experiment. `small` fits a laptop. `smoke` takes seconds, and its numbers have no meaning. `paper` has
the paper's own sizes and steps. Experiments that are not from a paper reject `paper`."""

SMOKE_PLAN = EvaluationPlan(dense=(9, 20), dense_strings=16, long=((64, 16), (128, 8)), structured=((20, 4),))


def with_certificates(plan: EvaluationPlan, scale: Scale) -> EvaluationPlan:
    """Return a plan that also makes a certificate of each net: `plan`, or `SMOKE_PLAN` at scale `smoke`."""
    return (SMOKE_PLAN if scale == "smoke" else plan).model_copy(update={"certificate": True})


Made = TypeVar("Made")


def _checked_by(check: Callable[[Made], None]) -> Callable[[type[Made]], type[Made]]:
    """Return a decorator that makes a NamedTuple check each new instance. Copies by `_replace` are not checked."""

    def decorate(kind: type[Made]) -> type[Made]:
        make: Callable[..., Made] = kind.__new__

        @wraps(make)
        def checked(cls: type[Made], *given: Any, **named: Any) -> Made:
            made = make(cls, *given, **named)
            check(made)
            return made

        # A NamedTuple rejects a `__new__` in its own body.
        kind.__new__ = checked  # type: ignore[assignment, method-assign]
        return kind

    return decorate


def _check_cell(cell: "Cell") -> None:
    check_kind("row", cell.row, str, "a text")
    check_kind("column", cell.column, str, "a text")
    if not isinstance(cell.specs, Sequence) or not all(isinstance(spec, RunSpec) for spec in cell.specs):
        raise ValueError(
            f"specs: expected a tuple of RunSpec, got {truncate(repr(cell.specs))}; make each with make_spec"
        )
    if not cell.specs:
        raise ValueError(
            f"specs: expected at least one run in row {cell.row!r} and column {cell.column!r}, got none; give runs, or "
            "leave the cell out"
        )


def _check_experiment(experiment: "Experiment") -> None:
    for name in ("title", "about"):
        check_kind(name, getattr(experiment, name), str, "a text")
    cells = experiment.cells
    if not isinstance(cells, Sequence) or not all(isinstance(cell, Cell) for cell in cells):
        raise ValueError(f"cells: expected a list of Cell, got {truncate(repr(cells))}; write [Cell(...)]")
    if not cells and experiment.study is None:
        raise ValueError("cells: expected cells or a study, got neither; give at least one cell with its runs")


class Printed(NamedTuple):
    """An entry as a paper prints it, with the paper's protocol in a sentence.

    - `window`: the paper's lengths, if they differ from the cell's scored lengths.
    - `is_above_chance`: True if the entry is on a scale on which the best constant answer is 0 and a perfect answer is
      1.
    - `citation`: the key of the paper's BibTeX entry, if it has one.
    """

    entry: str
    protocol: str
    window: tuple[int, int] | None = None
    is_above_chance: bool = False
    citation: str = ""


@_checked_by(_check_cell)
class Cell(NamedTuple):
    """One entry of a table: the same configuration over several seeds, or over seeds and learning rates.

    - `published`: the paper's entry, as printed.
    - `window`: the scored lengths, if they are not the whole dense range (`EvaluationPlan`).
    - `task`: the scored task, one of the runs' `other_tasks`, if it is not the task on which the runs train.
    - `part`: the name of the table that contains the cell, if an experiment has several tables.
    - `printed`: the entries of several papers, each with its own protocol.
    """

    row: str
    column: str
    specs: tuple[RunSpec, ...]
    published: str = ""
    window: tuple[int, int] | None = None
    task: SymbolTask | None = None
    part: str = ""
    printed: tuple[Printed, ...] = ()


class Scoring(NamedTuple):
    """The score that each cell of a table shows, and the pairs of columns that are compared.

    - `measure`: accuracies are taken at all lengths at which every class can occur (`"balanced"`), or at all lengths at
      which the task has strings (`"legal"`). Numeric answers have a squared `"error"`, and language models the
      `"perplexity"` of chunks. `"attempts"` is the cost of reaching the goal of a run. `"search"` scores only one run
      of a cell, the run with the lowest final training loss.
    - `fit`: one of the plan's long lengths, and the accuracy that every run of a cell must reach there. Cells with a
      run that misses this accuracy are marked, because their scores at larger lengths do not measure generalization.
    - `best_test`: also show the best test result during training, as the paper does.
    - `compared`: pairs of columns to compare seed by seed, in each row that has both columns. The cells of these
      columns have one run for each seed.
    """

    measure: Literal["balanced", "legal", "error", "attempts", "search", "perplexity"] = "balanced"
    fit: tuple[int, float] | None = None
    best_test: bool = False
    compared: Sequence[tuple[str, str]] = ()


class Requirements(NamedTuple):
    """The requirements of an experiment's runs, besides a laptop and the package.

    - `needs`: sentences about the device, data and time that the runs require, if a laptop does not suffice. These
      sentences are printed before the start.
    - `lacks`: a sentence about missing inputs of the runs, such as a text that is not part of the package.
    - `weights`: True if the study inspects the nets, so that recorded results cannot replace runs.
    """

    needs: str = ""
    lacks: str = ""
    weights: bool = False


@_checked_by(_check_experiment)
class Experiment(NamedTuple):
    """Cells to fill, the measurement of their runs, and the facts that a reader needs to compare the numbers.

    - `headline`: the result at `headline_scale`, with fields for numbers (`lengthwise.report.tables.headline`). Its
      first line is the sentence that answers the reader's question.
    - `about`: lines about the subject of the page. On the page, they follow the lines of `headline`. The first line of
      the page is a sentence alone, and all later lines of `headline` and `about` become bullets, at most three.
    - `notes`: differences between this setting and the paper's, and other conditions of the numbers.
    - `is_matrix`: show rows by columns, as a heat map, instead of a line for each cell.
    - `main`: the columns of the page's first table, if they are not the usual ones.
    - `study`: a function that takes the folder of runs and computes a further result, which the study's page shows
      (`lengthwise.report.pages.study`).
    """

    title: str
    about: str
    cells: Sequence[Cell] = ()
    plan: EvaluationPlan = EvaluationPlan()
    notes: Sequence[str] = ()
    scoring: Scoring = Scoring()
    study: Callable[[Path], object] | None = None
    main: Sequence[str] = ()
    is_matrix: bool = False
    requires: Requirements = Requirements()
    headline: str = ""
    headline_scale: Scale = "small"

    def introduction(self, scale: str, headline: str = "") -> str:
        """Return the beginning of a page: the lines of the headline, if given, and then the lines of `about`.

        At scale `smoke`, a warning replaces the headline. The first line is a paragraph, and the others are bullets.
        """
        opening = _SMOKE if scale == "smoke" else headline
        first, *others = [*opening.splitlines(), *self.about.splitlines()]
        return "\n\n".join(filter(None, [first, "\n".join(f"- {line}" for line in others)]))

    @property
    def specs(self) -> list[RunSpec]:
        """The specifications of all runs, cell by cell; a run that belongs to several cells is listed once."""
        return list({spec.id: spec for cell in self.cells for spec in cell.specs}.values())

    @property
    def plans(self) -> list[EvaluationPlan]:
        """The plan of measurements of each run.

        The plan's dense lengths range from the lowest to the highest length that the run's cells score. The plan
        includes a certificate only if the run's task has a reference machine.
        """
        # A run may belong to several cells; lengths outside of the cells' windows would only cost time.
        windows: dict[str, list[tuple[int, int]]] = {}
        for cell in self.cells:
            for spec in cell.specs:
                windows.setdefault(spec.id, []).append(cell.window or self.plan.dense)
        plans = [
            self.plan.restrict_dense(min(low for low, _ in own), max(high for _, high in own))
            for own in windows.values()
        ]
        return [
            plan if isinstance(spec.task, MachineTask) else plan.model_copy(update={"certificate": False})
            for spec, plan in zip(self.specs, plans, strict=True)
        ]

    def scale_notes(self, scale: str) -> list[str]:
        """Return the notes on how this scale differs from the paper's; at scale `smoke`, a warning."""
        return [_SMOKE] if scale == "smoke" else [note for note in self.notes if f"`{scale}`" in note]

    def select(self, rows: str = "", columns: str = "") -> "Experiment":
        """Return the experiment with only the cells in the named rows and columns; an empty text selects all of them.

        Names are separated by commas. A name may be typed in lower case, with one hyphen in place of any sequence of
        characters that are neither letters nor digits.

        Raises:
            ValueError: a name is not the name of a row or column, or no cell is in a named row and a named column.
        """
        cells = list(self.cells)
        for axis, text in (("row", rows), ("column", columns)):
            named = _named(axis, text, dict.fromkeys(getattr(cell, axis) for cell in cells))
            cells = [cell for cell in cells if not named or getattr(cell, axis) in named]
        return self._replace(cells=cells)


def _named(axis: str, text: str, known: Iterable[str]) -> set[str]:
    """Return the known names in a text of names that are separated by commas; a name may itself contain commas.

    Example:
        >>> sorted(_named("column", "LSTM,Transformer, rotary", ["LSTM", "Transformer", "Transformer, rotary"]))
        ['LSTM', 'Transformer, rotary']
    """
    if not isinstance(text, str):
        raise ValueError(
            f"{axis}s: expected a text of names, got {truncate(repr(text))}; write commas between names, as in 'a,b'"
        )
    names = {**{_typed(name): name for name in known}, **{name: name for name in known}}
    chosen: set[str] = set()
    parts = [part for part in text.split(",") if part.strip()]
    while parts:
        # The longest name counts, because a part of it may be the name of another row.
        candidates = [(",".join(parts[:end]).strip(), end) for end in range(len(parts), 0, -1)]
        matches = ((names.get(name) or names.get(_typed(name)), end) for name, end in candidates)
        name, end = next(((name, end) for name, end in matches if name), (None, 0))
        if name is None:
            wrong, choices = parts[0].strip(), ", ".join(map(repr, known))
            raise ValueError(
                f"{axis}s: expected names of {axis}s, got {wrong!r}{nearest(wrong, known)} (known: {choices})"
            )
        chosen.add(name)
        parts = parts[end:]
    return chosen


def _typed(name: str) -> str:
    """Return the name of a row or column in the form in which users may type it.

    Example:
        >>> _typed("Arithmetic, = at the end")
        'arithmetic-at-the-end'
    """
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


_SMOKE = (
    "A trial at scale `smoke`: one seed, hardly any training, the smallest nets and strings. Its numbers mean nothing, "
    "and the experiment's description states the seeds, steps and sizes of scale `small`."
)


class ScaledSpecs(NamedTuple):
    """A function that makes the runs of a `Cell` at the scale smoke, small or paper.

    At scale `smoke`, there is only one seed, and sizes are tiny. At scale `paper`, the function raises a ValueError
    unless `has_paper` is True, which means that the settings are a paper's. `goal`, `budget` and `other_tasks` are as
    in `make_spec`.
    """

    scale: Scale
    seeds: Sequence[int]
    model: str = "regular-gpt"
    goal: str | None = None
    budget: float = BUDGET
    other_tasks: Sequence[Settings] = ()
    has_paper: bool = False

    def __call__(self, task: str, settings: Settings, *, preset: str | None = None) -> tuple[RunSpec, ...]:
        if not self.has_paper:
            check_is_not_paper(self.scale)
        smoke = self.scale == "smoke"
        seeds, budget = (self.seeds[:1], 0.0) if smoke else (self.seeds, self.budget)
        if smoke:
            has_pace = self.goal is not None or (preset is not None and "pace" in PRESETS[preset].train)
            contracting: Settings = {"train": {"pace": {"contract_steps": 5}}} if has_pace else {}
            settings = at_smoke_scale(merge(contracting, settings), self.model)
        spec = make_spec(
            task, self.model, settings, preset=preset, goal=self.goal, budget=budget, other_tasks=self.other_tasks
        )
        return with_seeds(spec, seeds)


def with_seeds(spec: RunSpec, seeds: Iterable[int]) -> tuple[RunSpec, ...]:
    """Return a copy of a run for each of these seeds."""
    # Copies skip the validation, which does not depend on the seed.
    return tuple(spec._replace(seed=seed) for seed in seeds)


def check_is_not_paper(scale: Scale, reason: str = "this experiment is not from a paper") -> None:
    """Raise a ValueError with a reason if the scale is `paper`; for experiments whose sizes no paper gives."""
    if scale == "paper":
        raise ValueError(
            f"scale: expected 'small' or 'smoke', got 'paper', but {reason}; use 'small', or 'smoke' for a trial"
        )


def at_smoke_scale(settings: Settings, model: str) -> Settings:
    """Return the settings with 20 training steps on short strings, and a small model if they do not give its sizes."""
    sizes = {"d_model": 16, "num_heads": 2, "block_dim": 16}
    config, given = MODELS[model].Config, settings.get("model", {})
    small = {name: size for name, size in sizes.items() if config.uses(name, given)}
    train = {"steps": 20, "batch_size": 16, "min_length": 1, "max_length": 8}
    return merge(merge({"model": small}, settings), {"train": train})


def parse_scale(name: str) -> Scale:
    """Return the scale with this name; raise a ValueError for an unknown name."""
    check_choice("scale", name, get_args(Scale))
    return cast(Scale, name)


MakeExperiment = Callable[[Scale], Experiment]


class _Experiments(Registry[MakeExperiment]):
    """The registry of experiments. Each registered function rejects an unknown scale before it makes an experiment."""

    def register(self, name: str) -> Callable[[Registered], Registered]:
        register = super().register(name)

        def decorate(make: Registered) -> Registered:
            return register(cast(Registered, _with_checked_scale(cast(MakeExperiment, make))))

        return decorate


def _with_checked_scale(make: MakeExperiment) -> MakeExperiment:
    """Return a function that rejects an unknown scale, and otherwise calls `make`."""

    @wraps(make)
    def checked(*given: Scale, **named: Scale) -> Experiment:
        for scale in (*given, *named.values()):
            parse_scale(scale)
        return make(*given, **named)

    return checked


EXPERIMENTS = _Experiments("experiment", "lengthwise.studies.*.experiments")
