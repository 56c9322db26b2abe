"""The result of an experiment in sentences, whose numbers are looked up when a page is made.

A headline is a format string with fields. Names in brackets select rows or columns: `*` matches any text, `A | B`
selects both, and `not A` selects all others.

| field | what it becomes |
|---|---|
| `{cells[ROW][COLUMN][FIGURE]}` | the figure of a cell; for several cells, "k of n" added up, or lowest and highest |
| `{highest[ROW][COLUMN][FIGURE]}`, `{lowest[...]}` | the highest or lowest figure among cells |
| `{share[ROW][COLUMN][FIGURE][TEXT]}` | in how many of the cells the figure is TEXT, as "k of n" |
| `{reached[ROW][COLUMN]}` | in how many cells our mean is at least the paper's, to the digits that the paper prints |
| `{runs}`, `{diverged}` | runs of the experiment, and runs without a result |
| `{compared}`, `{decided}` | compared pairs of columns, and pairs that differ significantly after Holm's correction |

Figures are the columns of the tables on the page. There are two more figures. `level proved` (or another level) is the
number of runs whose certificate has this level. `counterexamples` is the range of the lengths of refuting strings.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from lengthwise.experiment import Experiment
from lengthwise.registry import nearest
from lengthwise.report.tables.cells import results_of
from lengthwise.report.tables.differences import LEVEL, compared_columns
from lengthwise.report.tables.experiment import cell_table
from lengthwise.report.tables.levels import LEVELS
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.printed import as_share, printed_range
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome, diverged

_COUNT = re.compile(r"(\d+) of (\d+)")
_NUMBER = re.compile(r"(?P<low>[\d,.]+(?:e[+-]\d+)?)(?:-(?P<high>[\d,.]+))?(?P<unit>(?: %)?)")


def headline(experiment: Experiment, outcomes: Sequence[Outcome]) -> str:
    """Return the headline of an experiment with the numbers of its results, and `-` for missing numbers.

    If a run is neither finished nor diverged and belongs to a cell that the headline names, the headline is empty.
    Fields about the whole experiment, and a headline without fields, name all cells.

    Raises:
        ValueError: the headline names a field, row, column or figure that does not exist.
    """
    fields = _Fields(experiment, outcomes)
    text = experiment.headline.format_map(fields)
    pending = {outcome.spec.id for outcome in outcomes if outcome.result is None and not diverged(outcome)}
    named = [cell for cell in experiment.cells if (cell.row, cell.column) in fields.named] or experiment.cells
    return text if pending.isdisjoint(spec.id for cell in named for spec in cell.specs) else ""


def figure_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return one line for each `Cell`, with all numbers that a headline may name."""
    table = cell_table(experiment, outcomes)
    header, lines = (*table.header, *(f"level {level}" for level in LEVELS), "counterexamples"), []
    for cell, line in zip(experiment.cells, table.lines, strict=True):
        results = results_of(cell, outcomes)
        certificates = [result.certificate for result in results if result.certificate]
        levels: list[str] = [certificate.level for certificate in certificates]
        counts = [f"{levels.count(level)} of {len(results)}" if levels else NOTHING for level in LEVELS]
        lengths = [len(c.counterexample.string) for c in certificates if c.counterexample]
        lines.append((*line, *counts, span(lengths)))
    return Table(header, tuple(lines))


class _Fields:
    """The fields of a headline; each is computed when the headline names it.

    `named` contains the row and the column of each cell that the headline has named so far.
    """

    def __init__(self, experiment: Experiment, outcomes: Sequence[Outcome]) -> None:
        self._experiment, self._outcomes = experiment, outcomes
        self.named: set[tuple[str, str]] = set()
        self._fields: dict[str, Callable[[], object]] = {
            "cells": lambda: _Names(3, lambda *names: combined(self._figures(*names))),
            "highest": lambda: _Names(3, lambda *names: _extreme(self._figures(*names), max)),
            "lowest": lambda: _Names(3, lambda *names: _extreme(self._figures(*names), min)),
            "share": lambda: _Names(4, self._share),
            "reached": lambda: _Names(2, self._reached),
            "runs": lambda: len(experiment.specs),
            "diverged": lambda: sum(outcome.result is None for outcome in outcomes),
            "compared": lambda: len(compared_columns(experiment, outcomes)),
            "decided": lambda: sum(pair.corrected <= LEVEL for pair in compared_columns(experiment, outcomes)),
        }

    def __getitem__(self, name: str) -> object:
        if name not in self._fields:
            known = f"{nearest(name, self._fields)} (known: {', '.join(self._fields)})"
            raise ValueError(f"headline: unknown field {name!r}{known}")
        if name in ("runs", "diverged", "compared", "decided"):
            self.named |= {(cell.row, cell.column) for cell in self._experiment.cells}
        return self._fields[name]()

    @cached_property
    def _all_lines(self) -> list[dict[str, str]]:
        table = figure_table(self._experiment, self._outcomes)
        return [dict(zip(table.header, line, strict=True)) for line in table.lines]

    def _lines(self, row: str, column: str) -> list[dict[str, str]]:
        """Return, for each cell in the selected rows and columns, its figures by their names."""
        lines = self._all_lines
        for axis, pattern in (("row", row), ("column", column)):
            names = list(dict.fromkeys(line[axis] for line in lines))
            selected = _selected(pattern, names)
            if not selected:
                raise ValueError(
                    f"headline: unknown {axis} {pattern!r}{nearest(pattern, names)} (known: {', '.join(names)})"
                )
            lines = [line for line in lines if line[axis] in selected]
        self.named |= {(line["row"], line["column"]) for line in lines}
        return lines

    def _figures(self, row: str, column: str, figure: str) -> list[str]:
        """Return the texts of one figure in all selected cells that have this figure."""
        lines = self._lines(row, column)
        if figure not in lines[0]:
            raise ValueError(
                f"headline: unknown figure {figure!r}{nearest(figure, lines[0])} (known: {', '.join(lines[0])})"
            )
        return [line[figure] for line in lines if line[figure] not in ("", NOTHING)]

    def _share(self, row: str, column: str, figure: str, text: str) -> str:
        figures = self._figures(row, column, figure)
        return f"{figures.count(text)} of {len(figures)}"

    def _reached(self, row: str, column: str) -> str:
        printed = [line for line in self._lines(row, column) if line["paper"] and line["mean"] != NOTHING]
        reached = [line for line in printed if as_share(line["mean"]) >= printed_range(line["paper"])[0]]
        return f"{len(reached)} of {len(printed)}"


class _Names:
    """A field of a headline that collects names in brackets, and becomes a text when it has all names."""

    def __init__(self, num_names: int, answer: Callable[..., str], names: tuple[str, ...] = ()) -> None:
        self._num_names, self._answer = num_names, answer
        self._names = names

    def __getitem__(self, name: str | int) -> "str | _Names":
        names = (*self._names, str(name))  # format strings pass digits as an integer
        return self._answer(*names) if len(names) == self._num_names else _Names(self._num_names, self._answer, names)

    def __format__(self, form: str) -> str:
        raise ValueError(
            f"headline: expected {self._num_names} names in brackets after a field, got {len(self._names)}; add the "
            "missing names, each in brackets"
        )


def _selected(pattern: str, names: Sequence[str]) -> set[str]:
    listed = pattern.removeprefix("not ")
    forms = [".*".join(map(re.escape, part.split("*"))) for part in listed.split(" | ")]
    matching = {name for name in names if any(re.fullmatch(form, name) for form in forms)}
    return set(names) - matching if pattern != listed else matching


def combined(figures: Sequence[str]) -> str:
    """Combine several numbers of a headline into one text: counts are added, other numbers become a range.

    Example:
        >>> combined(["4 of 5", "5 of 5"]), combined(["97.13 %", "100 %"]), combined(["396-557", "1,249"])
        ('9 of 10', '97.13 to 100 %', '396 to 1,249')
    """
    counts = [_COUNT.fullmatch(figure) for figure in figures]
    if counts and all(counts):
        return " of ".join(str(sum(int(count[part]) for count in counts if count)) for part in (1, 2))
    if len(set(figures)) <= 1:
        return figures[0] if figures else NOTHING
    low, high = _extreme(figures, min), _extreme(figures, max)
    unit = " %" if high.endswith(" %") else ""
    return low if low == high else f"{low.removesuffix(unit)} to {high}"


def _extreme(figures: Sequence[str], extreme: Callable[..., tuple[float, str]]) -> str:
    """Return the text of the lowest or highest number among figures. A figure may be a span of two numbers."""
    if not figures:
        return NOTHING
    numbers = []
    for figure in figures:
        parts = _NUMBER.fullmatch(figure)
        if parts is None:
            raise ValueError(
                f"headline: expected a figure whose text is a number, got the text {figure!r}; name another figure"
            )
        numbers += [(_value(parts[side]), parts[side] + parts["unit"]) for side in ("low", "high") if parts[side]]
    return extreme(numbers)[1]


def _value(text: str) -> float:
    return float(text.replace(",", ""))
