"""The class of benchmarks (`Benchmark`), and functions that read published tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, PositiveInt

from lengthwise.experiment import Experiment, Printed, Scale
from lengthwise.registry import Registry, check_known
from lengthwise.report.tables.benchmark import MEAN, Published
from lengthwise.runs.spec import read_settings
from lengthwise.studies.leaderboard.experiments.leaderboard import ENTRANTS, Entrant
from lengthwise.validation import Description, validated

TABLES = Path(__file__).with_name("published")

MakeExperiment = Callable[[Sequence[Entrant], Scale], Experiment]
"""A function that takes models and a scale, and returns an experiment with a column for each model."""


class Benchmark(NamedTuple):
    """A protocol for training and measuring models.

    - `title`, `source`, `bibtex`: the name of the benchmark, a reference to its paper, and BibTeX entries.
    - `protocol`: sentences about the published protocol, and about the differences between it and our protocol.
    - `experiment`: the name of the experiment with our own models, under which results are recorded.
    - `entrants`: our own models.
    - `make`: a function that takes models and a scale, and returns an experiment. Its rows are the tasks, and its
      columns are the models.
    - `published`: the published entries for each part of the experiment, by the part's name. A part is one table of the
      experiment, and a single part has the name "". The published models need not be among `entrants`.
    - `score`: the score of a cell (a model on a task): `"mean"` is the mean accuracy of the cell's runs, and `"best"`
      is the accuracy of the best run.
    - `rates`: a function that takes models and a scale, and returns an experiment that searches for the models'
      learning rates. `rates` is None if the protocol sets the learning rates.
    """

    title: str
    source: str
    bibtex: str
    protocol: Sequence[str]
    experiment: str
    entrants: Sequence[Entrant]
    make: MakeExperiment
    published: Mapping[str, Published]
    score: Literal["mean", "best"] = "mean"
    rates: MakeExperiment | None = None


BENCHMARKS: Registry[Callable[[], Benchmark]] = Registry("benchmark", "lengthwise.studies.benchmarks.experiments")

COLUMNS = ("finite machine, likelihood", "RegularGPT", "block-diagonal", "LSTM", "Transformer")
"""Columns of the leaderboard. Other benchmarks measure the models of these columns, at the same learning rates."""


def entrants_of() -> tuple[Entrant, ...]:
    """Return the entrants in `COLUMNS`, in the order of `COLUMNS`."""
    by_column = {entrant.column: entrant for entrant in ENTRANTS}
    return tuple(by_column[column] for column in COLUMNS)


class _Table(Description):
    """The keys of a file with a published table.

    `window` contains the first and the last tested length, in symbols. `citation` is the key of the paper's BibTeX
    entry. `part` names the part of the experiment that has these rows, if the experiment has several parts. The row
    `mean` is the mean over all tasks. Each model has one entry for each row. An empty entry means that no number was
    published.
    """

    source: Annotated[str, Field(min_length=1)]
    protocol: Annotated[str, Field(min_length=1)]
    window: tuple[PositiveInt, PositiveInt]
    citation: Annotated[str, Field(pattern=r"^[\w:.+-]*$")] = ""
    part: str = ""
    rows: Annotated[tuple[str, ...], Field(min_length=1)]
    models: Annotated[dict[str, tuple[str, ...]], Field(min_length=1)]


def read_published(path: Path) -> tuple[str, Published]:
    """Read a published table from a TOML file. Return the name of the experiment's part, and the table's entries.

    The file has the keys `source`, `protocol`, `window`, `rows` and `models`. The keys `citation` and `part` are
    optional.

    Raises:
        ValueError: the file is not TOML, a key is unknown, missing or has another type, or a model has too few or too
            many entries.
    """
    try:
        table = validated(_Table, read_settings(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    published = {}
    for model, entries in table.models.items():
        if len(entries) != len(table.rows):
            raise ValueError(
                f"{path}: models.{model}: expected {len(table.rows)} entries, one for each of `rows`, got "
                f"{len(entries)}; write an empty entry for a number that was not published"
            )
        for row, entry in zip(table.rows, entries, strict=True):
            if entry:
                printed = Printed(entry, f"{table.source}: {table.protocol}", table.window, citation=table.citation)
                published[row, model] = (printed,)
    return table.part, published


def with_published(benchmark: Benchmark, path: Path, scale: Scale) -> Benchmark:
    """Return the benchmark, extended by the published entries in a file (`read_published`).

    Raises:
        ValueError: the file is faulty, or names a part or a row that the benchmark does not have at this scale.
    """
    part, added = read_published(path)
    cells = benchmark.make(benchmark.entrants, scale).cells
    check_known(f"{path}: part", part, dict.fromkeys(cell.part for cell in cells))
    known = [MEAN, *dict.fromkeys(cell.row for cell in cells if cell.part == part)]
    for row, _ in added:
        check_known(f"{path}: rows", row, known)
    own = benchmark.published.get(part, {})
    merged = {key: (*own.get(key, ()), *added.get(key, ())) for key in {**own, **added}}
    return benchmark._replace(published={**benchmark.published, part: merged})


def references(*keys: str) -> str:
    """Return the BibTeX entries with these keys from the package's list of papers.

    Raises:
        KeyError: the list has no entry with one of the keys.

    Example:
        >>> print(references("merrill2024illusion").splitlines()[1])
          title = {The Illusion of State in State-Space Models},
    """
    entries = (TABLES / "references.bib").read_text(encoding="utf-8").strip().split("\n\n")
    by_key = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
    return "\n\n".join(by_key[key] for key in keys) + "\n"
