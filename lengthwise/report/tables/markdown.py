"""Tables and folded parts in Markdown."""

import re
from collections.abc import Iterable, Sequence

from lengthwise.display import literal
from lengthwise.report.tables.table import Table, shared_text


def markdown_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of cells in Markdown. A | in a cell is escaped, and a number is not separated from its %."""
    return "\n".join(_line(cells) for cells in (header, ["---"] * len(header), *lines))


def table_paragraphs(table: Table) -> list[str]:
    """Return the table, and a sentence with the columns that have the same text in all rows."""
    shared = literal(shared_text(table.shared))
    header, *lines = [[literal(cell) for cell in line] for line in (table.header, *table.lines)]
    return [markdown_table(header, lines), *([f"The same in every row: {shared}."] if shared else [])]


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms and their meanings, in Markdown."""
    return "\n".join(f"- *{term}*: {meaning}" for term, meaning in pairs)


def folded(title: str, paragraphs: Iterable[str]) -> str:
    """Return paragraphs under a title; pages and code hosts hide the paragraphs until a reader clicks the title."""
    return "\n\n".join([f'<details markdown="1"><summary>{title}</summary>', *paragraphs, "</details>"])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_SPACE_IN_NUMBERS.sub(_UNBROKEN, cell.replace("|", r"\|")) for cell in cells) + " |"


_SPACE_IN_NUMBERS = re.compile(r"(?<=\d) (?=%)|(?<=\d) (?=/ \d)|(?<=\d /) (?=\d)")
_UNBROKEN = "\N{NO-BREAK SPACE}"
