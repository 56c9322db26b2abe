"""The table of a benchmark, with a line for each published model, recorded model and model of a user."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

from lengthwise.display import counted, listed, spelled
from lengthwise.experiment import Cell, Experiment, Printed
from lengthwise.report.tables.cells import accuracies_scored, results_of
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

MAX_ROWS = 15
"""The largest number of tasks with which a table has a column for each task."""

MAX_QUOTED = 20
"""The length of the longest counterexample that a table quotes, in symbols."""

MEAN = "mean"
"""The name of the column of means over all tasks, and of the row of a published mean."""

COLUMNS = {
    MEAN: "the accuracy, averaged over the tasks with a result (in brackets: their number, if it is not all tasks)",
    "runs": "the number of finished runs",
    "proved": "the number of runs whose net is proved right at every length, out of the runs with a certificate",
    "refuted by": "the shortest string that one of these nets is known to answer wrongly, with its task",
    "from": "the origin of the numbers",
}
"""The meaning of each column of a benchmark's table, by the column's name."""


Published = Mapping[tuple[str, str], tuple[Printed, ...]]
"""A mapping from pairs (row, model) to published entries. Each entry contains the protocol of its measurement."""

CLAIMS = "Published numbers are claims of their authors."


class Measured(NamedTuple):
    """An experiment's cells with outcomes, and the origin of their numbers.

    `older` maps the id of a run to the names of the user's files that changed after the run began (`older_files`).
    """

    experiment: Experiment
    outcomes: Sequence[Outcome]
    origin: str
    older: Mapping[str, Sequence[str]] = MappingProxyType({})


def benchmark_tables(
    measured: Sequence[Measured],
    published: Mapping[str, Published],
    score: Callable[[Sequence[float]], float],
) -> tuple[dict[str, Table], list[str]]:
    """Return a table for each part of a benchmark, and the notes to which the column `from` of the tables refers.

    Published models come first, then the measured models with a result. Each task has its own column, unless there
    are more than `MAX_ROWS` tasks. `published` contains the published entries of each part, and its row `mean` is the
    mean over all tasks. `score` combines the accuracies of a cell's runs.
    """
    cells = [cell for each in measured for cell in each.experiment.cells]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    columns = rows if len(rows) <= MAX_ROWS else []
    protocols: dict[str, str] = {}
    tables = {}
    for part in dict.fromkeys(cell.part for cell in cells):
        lines = _published_lines(published.get(part, {}), columns, protocols)
        for each in measured:
            lines += _measured_lines(each, part, rows, columns, score)
        table = Table(("model", *columns, *COLUMNS), tuple(lines))
        tables[part] = table.columns([name for name in table.header if name != MEAN or len(rows) > 1])
    notes = [f"{mark} {protocol}" for protocol, mark in protocols.items()]
    if notes:
        notes.append(CLAIMS)
    if not columns and any(row != MEAN for entries in published.values() for row, _ in entries):
        notes.append(f"Published numbers of single tasks are shown for at most {MAX_ROWS} tasks; select tasks.")
    return tables, [*(line for each in measured for line in older_lines(each.older)), *notes]


def older_lines(older: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence if some runs were made with earlier versions of a user's files (`older_files`).

    Example:
        >>> older_lines({"parity-mine-seed0-9226af0c66": ["mine.py"]})
        ['older mine.py: 1 run was made before this file changed; another folder of runs trains again']
    """
    names = dict.fromkeys(name for own in older.values() for name in own)
    were, this = ("was", "were")[len(older) > 1], ("this file", "these files")[len(names) > 1]
    runs = f"{counted(len(older), 'run')} {were} made before {this} changed; another folder of runs trains again"
    return [f"older {listed(list(names))}: {runs}"] if older else []


def citations(published: Mapping[str, Published], notes: Sequence[str]) -> dict[str, str]:
    """Return, for each mark in the notes of a table, the BibTeX key of the paper whose protocol has this mark.

    Example:
        >>> entries = {("Parity", "LSTM"): (Printed("99", "percent.", citation="me2026"),)}
        >>> citations({"": entries}, ["[1] percent.", CLAIMS])
        {'[1]': 'me2026'}
    """
    cells = [cell for entries in published.values() for cell in entries.values()]
    keys = {printed.protocol: printed.citation for cell in cells for printed in cell if printed.citation}
    marked = (note.partition(" ") for note in notes)
    return {mark: keys[protocol] for mark, _, protocol in marked if protocol in keys}


def _published_lines(published: Published, columns: Sequence[str], protocols: dict[str, str]) -> list[tuple[str, ...]]:
    """Return a line for each model and protocol, and add the marks of new protocols to `protocols`."""
    entries: dict[tuple[str, str], dict[str, str]] = {}
    for (row, model), cell in published.items():
        for printed in cell if row in {*columns, MEAN} else ():
            entries.setdefault((printed.protocol, model), {})[row] = printed.entry
    lines = []
    for (protocol, model), own in entries.items():
        mark = protocols.setdefault(protocol, f"[{len(protocols) + 1}]")
        scores = [own.get(row, NOTHING) for row in columns]
        lines.append((model, *scores, own.get(MEAN, NOTHING), NOTHING, NOTHING, NOTHING, mark))
    return lines


def _measured_lines(
    measured: Measured,
    part: str,
    rows: Sequence[str],
    columns: Sequence[str],
    score: Callable[[Sequence[float]], float],
) -> list[tuple[str, ...]]:
    """Return a line for each model with a result."""
    experiment = measured.experiment
    by_model: dict[str, dict[str, tuple[Cell, list[RunResult]]]] = {}
    for cell in experiment.cells:
        if cell.part == part and (results := results_of(cell, measured.outcomes)):
            by_model.setdefault(cell.column, {})[cell.row] = cell, results
    lines = []
    for model, cells in by_model.items():
        scores = {
            row: score([accuracies_scored(result, cell, experiment).mean() for result in results])
            for row, (cell, results) in cells.items()
        }
        mean = percent(fmean(scores.values()))
        mean = mean if len(scores) == len(rows) else f"{mean} ({len(scores)} of {len(rows)})"
        results = [result for _, own in cells.values() for result in own]
        certificates = [result.certificate for result in results if result.certificate]
        proved = sum(certificate.level == "proved" for certificate in certificates)
        older = dict.fromkeys(name for result in results for name in measured.older.get(result.run_id, ()))
        lines.append(
            (
                model,
                *(percent(scores[row]) if row in scores else NOTHING for row in columns),
                mean,
                str(len(results)),
                f"{proved} of {len(certificates)}" if certificates else NOTHING,
                _refutation({row: own for row, (_, own) in cells.items()}),
                ", ".join([measured.origin, *(f"older {name}" for name in older)]),
            )
        )
    return lines


def _refutation(results: Mapping[str, Sequence[RunResult]]) -> str:
    """Return the shortest counterexample in the certificates of the runs, with its task if there are several tasks."""
    strings = [
        (len(error.string), row, error.string)
        for row, own in results.items()
        for result in own
        if result.certificate and (error := result.certificate.counterexample)
    ]
    if not strings:
        return NOTHING
    length, row, string = min(strings, key=lambda each: each[0])
    # Without quotation marks, the string 0 would look like a count.
    text = f'"{spelled(string)}"' if length <= MAX_QUOTED else f"{length:,} symbols"
    return f"{text} ({row})" if len(results) > 1 else text
