"""The lines of text files of examples."""

from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

from lengthwise.files import open_file

MAX_LINE = 8_000_000
"""The longest line of a file, and the longest text in one of its cells, in characters."""


def open_text(path: Path) -> TextIOWrapper:
    """Open a text file, and leave its line breaks as they are, because quoted cells of CSV may contain them."""
    return TextIOWrapper(open_file(path), encoding="utf-8-sig", newline="")


def lines_of(file: TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a file; raise a ValueError with the line's number if a line is longer than `MAX_LINE`."""
    number = 1
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise ValueError(
                f"examples: row {number:,}: expected a line of at most {MAX_LINE:,} characters, got more; cut its "
                "string into shorter strings"
            )
        yield line
        number += 1


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield the number and the text of each line, without its end: ``\n``, or ``\r\n`` as on Windows.

    Raises:
        ValueError: the file is missing, is not UTF-8, or has a line longer than `MAX_LINE`.
    """
    try:
        with open_text(path) as file:
            for number, line in enumerate(lines_of(file), 1):
                yield number, line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")
    except FileNotFoundError:  # also if a link exists, but not its target
        got = "a link to a missing file" if path.is_symlink() else "no such file"
        raise ValueError(f"{path}: expected a file, got {got}; restore the file") from None
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path}: expected text in UTF-8, got other bytes at offset {problem.start:,}; convert the file to UTF-8"
        ) from None
