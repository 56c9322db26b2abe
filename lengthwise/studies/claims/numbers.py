"""Functions that look up numbers in the tables and sentences of written pages."""

import re
from collections.abc import Iterator

from lengthwise.studies.claims.claim import Phrase, TableNumber


def number_in(text: str, lookup: TableNumber) -> str:
    """Return the text of the cell in this column and line, from the tables on a page.

    If several tables have this column and line, their cells must agree. A number in brackets at the end of the cell
    is left out.

    Raises:
        ValueError: no table has this column and line, or several such tables have different cells.

    Example:
        >>> page = "## Speed\\n\\n| form | T=40, ms |\\n|---|---|\\n| scan | 318.4 |\\n"
        >>> number_in(page, TableNumber("speed.md", "T=40, ms", ("scan",), "Speed"))
        '318.4'
    """
    page, column, line, heading = lookup
    cells = set()
    for section, header, rows in _tables(text):
        if column in header and (not heading or section == heading):
            index = header.index(column)
            cells |= {row[index] for row in rows if tuple(row[: len(line)]) == line}
    if len(cells) != 1:
        raise ValueError(
            f"{page}: expected one cell in a column {column!r} and a line that begins with {line}"
            f"{f' below {heading!r}' if heading else ''}, got {len(cells)} different cells; name another column, "
            "line or heading"
        )
    return re.sub(r" \([\d.,]+\)$", "", cells.pop())


def phrase_in(text: str, lookup: Phrase) -> str:
    """Return the text of the pattern's group where the pattern matches a page.

    Raises:
        ValueError: the pattern matches nowhere, or the group has different texts in different matches.

    Example:
        >>> phrase_in("51 of 140 at d_min, 701 of 840 above it", Phrase("page.md", r"(\\d+ of \\d+) above"))
        '701 of 840'
    """
    matches = set(re.findall(lookup.pattern, text.replace("\N{NO-BREAK SPACE}", " ")))
    if len(matches) != 1:
        raise ValueError(
            f"{lookup.page}: expected one number that matches the pattern {lookup.pattern!r}, got {len(matches)} "
            "different numbers; write another pattern"
        )
    (match,) = matches
    return str(match)


def _tables(text: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield section, header and lines of each table of a page in Markdown."""
    section, lines = "", list[list[str]]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(_cells(line))
            continue
        if len(lines) > 2:
            yield section, lines[0], lines[2:]
        lines = []
        if line.startswith("#"):
            section = line.lstrip("#").strip()


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\N{NO-BREAK SPACE}", " ") for cell in line.strip("|").split("|")]
