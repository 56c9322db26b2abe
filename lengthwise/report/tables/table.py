"""Text in rows and columns."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import NamedTuple

from lengthwise.report.tables.numbers import NOTHING

COUNTED = ("runs", "states", "steps")
"""The names of columns of counts; in a sentence, the name follows the count."""


class Table(NamedTuple):
    """Cells of text under a header; `shared` contains pairs (column, text) of columns with equal text in every row."""

    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    shared: tuple[tuple[str, str], ...] = ()

    def columns(self, names: Sequence[str]) -> "Table":
        """Return the named columns that the table has, in the order of the names.

        Example:
            >>> Table(("a", "b", "c"), (("1", "2", "3"),)).columns(["c", "a", "z"]).lines
            (('3', '1'),)
        """
        kept = [self.header.index(name) for name in names if name in self.header]
        lines = tuple(tuple(line[index] for index in kept) for line in self.lines)
        return self._replace(header=tuple(self.header[index] for index in kept), lines=lines)

    def without_empty(self) -> "Table":
        """Return the table without columns that are empty or "-" in every row; a table without rows keeps all columns.

        Example:
            >>> Table(("a", "b"), (("1", "-"), ("2", ""))).without_empty().header
            ('a',)
        """
        filled = [
            name
            for index, name in enumerate(self.header)
            if not self.lines or any(line[index] not in ("", NOTHING) for line in self.lines)
        ]
        return self.columns(filled)

    def to_rows(self) -> list[dict[str, str]]:
        """Return the lines as mappings from column to text, with the shared columns in each.

        Example:
            >>> Table(("a",), (("1",), ("2",)), shared=(("b", "3"),)).to_rows()
            [{'a': '1', 'b': '3'}, {'a': '2', 'b': '3'}]
        """
        return [{**dict(zip(self.header, line, strict=True)), **dict(self.shared)} for line in self.lines]

    def to_html(self) -> str:
        """Return the rows under the header, as HTML.

        Example:
            >>> Table(("a",), (("<",),)).to_html()
            '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;</td></tr></tbody></table>'
        """

        def line(cells: Sequence[str], tag: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

        body = "".join(line(cells, "td") for cells in self.lines)
        return f"<table><thead>{line(self.header, 'th')}</thead><tbody>{body}</tbody></table>"

    @property
    def note(self) -> str:
        """A sentence with the columns that have the same text in all rows, as HTML; "" without such columns."""
        return f"The same in every row: {escape(shared_text(self.shared))}." if self.shared else ""

    def _repr_html_(self) -> str:
        """Return the table for notebooks, with the shared columns below."""
        return f"<div>{self.to_html()}{f'<p>{self.note}</p>' if self.note else ''}</div>"

    def folded(self, foldable: Collection[str]) -> "Table":
        """Move the foldable columns that have equal text in every row to `shared`.

        Example:
            >>> Table(("a", "b"), (("1", "2"), ("3", "2"))).folded(["a", "b"])
            Table(header=('a',), lines=(('1',), ('3',)), shared=(('b', '2'),))
        """
        same = {
            name: texts.pop()
            for index, name in enumerate(self.header)
            if name in foldable and len(texts := {line[index] for line in self.lines}) == 1
        }
        rest = self.columns([name for name in self.header if name not in same])
        return rest._replace(shared=self.shared + tuple((name, text) for name, text in same.items() if text))


def table_of(rows: Sequence[Mapping[str, str]]) -> Table:
    """Return a table with a line for each row; the first row has the names of all columns.

    Example:
        >>> table_of([{"a": "1", "b": "2"}, {"b": "4", "a": "3"}])
        Table(header=('a', 'b'), lines=(('1', '2'), ('3', '4')), shared=())
    """
    header = tuple(rows[0])
    return Table(header, tuple(tuple(row[name] for name in header) for row in rows))


def is_length(name: str) -> bool:
    """Return whether a column's name is a number. Such a column is about strings of this length."""
    return name.replace(",", "").isdecimal()


def shared_text(shared: Sequence[tuple[str, str]]) -> str:
    """Return pairs (column, text) as phrases. A column whose name is a number contains accuracies at this length.

    Example:
        >>> shared_text([("runs", "2"), ("lengths", "41-500"), ("40", "100 %")])
        '2 runs; lengths 41-500; 100 % at length 40'
    """
    return "; ".join(_phrase(name, text) for name, text in shared)


def _phrase(name: str, text: str) -> str:
    if is_length(name):
        return f"{text} at length {name}"
    if name in COUNTED:
        return f"{text} {name.removesuffix('s') if text == '1' else name}"
    return f"{name} {text}"
