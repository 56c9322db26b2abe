"""The data files of MLRegTest."""

from collections.abc import Iterator
from pathlib import Path

from lengthwise.tasks.given.lines import numbered_lines

LABELS = ("FALSE", "TRUE")
"""The labels of strings outside and inside a language."""


def rows_of_mlregtest(path: Path) -> Iterator[tuple[int, tuple[list[str], str]]]:
    """Yield the line number, the symbols and the label of each line in a data file of MLRegTest.

    A line is a string, a tab, and TRUE or FALSE. Symbols are characters.

    Raises:
        ValueError: a line has the wrong form, or the file is not UTF-8.

    Source: MLRegTest (JMLR 25(283), 2024), the files ``NAME_Train.txt``, ``NAME_Dev.txt`` and ``NAME_TestSR.txt`` to
        ``NAME_TestLA.txt``.
    """
    for number, line in numbered_lines(path):
        string, tab, label = line.partition("\t")
        if not tab or label not in LABELS:
            raise ValueError(
                f"{path}: line {number:,}: expected a string, a tab, and TRUE or FALSE, as in a data file of "
                f"MLRegTest, got {line[:80]!r}; correct the line, or rename a file of another format to its suffix "
                "(.dat for Abbadingo and StaMInA)"
            )
        if strange := [symbol for symbol in string if symbol.isspace() or not symbol.isprintable()]:
            raise ValueError(
                f"{path}: line {number:,}: expected symbols that are visible characters, got {strange[0]!r}; write "
                "strings without blanks"
            )
        yield number, (list(string), label)
