"""Tables as files: LaTeX, Markdown or CSV."""

from collections.abc import Mapping
from pathlib import Path

from lengthwise.display import csv_text, literal
from lengthwise.files import check_suffix, write_by_rename
from lengthwise.report.tables.latex import latex_table
from lengthwise.report.tables.markdown import table_paragraphs
from lengthwise.report.tables.table import Table

SUFFIXES = (".tex", ".md", ".csv")
"""The suffixes of files of tables."""


def write_tables(tables: Mapping[str, Table], path: Path) -> None:
    r"""Write tables with their titles; the suffix of the path selects the format.

    LaTeX needs the package booktabs. In Markdown, a title is a heading. A CSV file contains the rows of all
    tables: the first column has the title of each row's table, and columns that this table lacks are empty.

    Raises:
        ValueError: the suffix is not one of `SUFFIXES`.
        OSError: the file cannot be written.
    """
    check_suffix("out", path, SUFFIXES)
    if path.suffix == ".tex":
        preamble = "% These tables need \\usepackage{booktabs} in the preamble."
        text = "\n\n".join([preamble, *(latex_table(table, title) for title, table in tables.items())]) + "\n"
    elif path.suffix == ".md":
        text = (
            "\n\n".join(
                part for title, table in tables.items() for part in (f"## {literal(title)}", *table_paragraphs(table))
            )
            + "\n"
        )
    else:
        text = csv_text(_csv_rows(tables))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by_rename(path, text.encode())


def _csv_rows(tables: Mapping[str, Table]) -> list[list[str]]:
    rows = [(title, row) for title, table in tables.items() for row in table.to_rows()]
    columns = list(dict.fromkeys(name for _, row in rows for name in row))
    return [["table", *columns], *([title, *(row.get(name, "") for name in columns)] for title, row in rows)]
