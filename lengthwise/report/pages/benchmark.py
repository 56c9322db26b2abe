"""The tables of a benchmark as a file, whose suffix selects the format."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from lengthwise.display import capitalized, csv_text, literal
from lengthwise.files import check_suffix, write_by_rename
from lengthwise.report.tables.benchmark import COLUMNS
from lengthwise.report.tables.latex import latex_table
from lengthwise.report.tables.markdown import definitions, table_paragraphs
from lengthwise.report.tables.numbers import NOTHING
from lengthwise.report.tables.table import Table


class BenchmarkReport(NamedTuple):
    """The tables of a benchmark by part, with the texts that readers need to interpret the numbers.

    - `notes`: the sentences to which the column `from` of the tables refers (`benchmark_tables`). Most of them are
      protocols of published numbers, each after a mark such as [1].
    - `protocol`: sentences about the published protocol and ours.
    - `bibtex`: the entries of the benchmark's papers.
    - `citations`: the key of a BibTeX entry for each mark.
    """

    title: str
    source: str
    scale: str
    command: str
    tables: Mapping[str, Table]
    notes: Sequence[str]
    protocol: Sequence[str]
    bibtex: str
    citations: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data; each line of a table is an object, in which empty cells are left out."""
        lines = [
            {"part": part} | {name: cell for name, cell in zip(table.header, line, strict=True) if cell != NOTHING}
            for part, table in self.tables.items()
            for line in table.lines
        ]
        return {**self._asdict(), "tables": lines}


def _markdown(report: BenchmarkReport) -> str:
    parts = [f"# {report.title}", f"{literal(report.source)}. Scale `{report.scale}`."]
    for part, table in report.tables.items():
        parts += [*([f"## {capitalized(part)}"] if part else []), *table_paragraphs(table)]
    header = next(iter(report.tables.values())).header
    lines = [f"- {literal(line)}" for line in (*report.notes, *report.protocol)]
    meanings = definitions((name, meaning) for name, meaning in COLUMNS.items() if name in header)
    return "\n\n".join([*parts, meanings, "\n".join(lines), f"```console\n{report.command}\n```"]) + "\n"


def _csv(report: BenchmarkReport) -> str:
    header = next(iter(report.tables.values())).header
    lines = [
        (part, *("" if cell == NOTHING else cell for cell in line))
        for part, table in report.tables.items()
        for line in table.lines
    ]
    return csv_text([("part", *header), *lines])


def _json(report: BenchmarkReport) -> str:
    return json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n"


def _latex(report: BenchmarkReport) -> str:
    notes, protocol = (_MARKS.sub(r"\2", " ".join(texts)) for texts in (report.notes, report.protocol))
    captions = {part: f"{report.title}{f': {part}' if part else ''} (scale {report.scale})" for part in report.tables}
    last = [*report.tables][-1]
    tables = [
        # The protocol is about all tables, so it appears only once, below the last table.
        latex_table(table, f"{captions[part]}. {notes}".rstrip(), protocol if part == last else "", report.citations)
        for part, table in report.tables.items()
    ]
    return "\n\n".join(tables) + "\n"


_MARKS = re.compile(r"([*`])([^*`]+)\1")
"""The pattern of emphasis and code in Markdown; LaTeX would print the marks * and `."""

WRITERS: Mapping[str, Callable[[BenchmarkReport], str]] = MappingProxyType(
    {".md": _markdown, ".csv": _csv, ".json": _json, ".tex": _latex, ".bib": lambda report: report.bibtex}
)
"""Functions that return the content of a file, by suffix."""


def write_benchmark(report: BenchmarkReport, path: Path) -> None:
    """Write the tables, or with suffix `.bib` the papers' BibTeX entries; the suffix of the path selects the format."""
    check_suffix("out", path, WRITERS)
    write_by_rename(path, WRITERS[path.suffix](report).encode())
