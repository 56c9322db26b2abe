"""Print lines and tables: the only module that writes to standard output and standard error.

Symbols, answers and names may come from other people's files. An escape sequence in such a name could clear the screen,
and a line break could begin a line that looks like the program's own. So this module escapes all text before it writes.
"""

import sys
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lengthwise.display import printable

UNBROKEN = "\N{NO-BREAK SPACE}%"
"""A percent sign after a no-break space, which keeps the sign and its number on one line. Printed text contains no
other no-break space, because `printable` escapes it."""


def print_line(console: Console, text: str) -> None:
    """Print a sentence without colors or markup, wrapped for a terminal, and with control characters escaped."""
    # In a plain string, rich would replace words such as ":bug:" by emoji; a Text stays as it is.
    console.print(Text(folded(printable(text), line_width(console))), soft_wrap=True)


def write_lines(lines: Iterable[str], *, is_error: bool = False) -> None:
    """Write sentences to standard output or standard error, wrapped for a terminal, and with control characters
    escaped.
    """
    stream = sys.stderr if is_error else sys.stdout
    width = line_width(Console(file=stream))
    stream.write("".join(f"{folded(printable(line), width)}\n" for line in lines))


def line_width(console: Console) -> int | None:
    """Return the width of a terminal, in characters, or None for files and other programs.

    The environment variable COLUMNS does not turn a file into a terminal. A program that uses readline sets COLUMNS
    for all processes that the program starts.
    """
    # A replaced stream need not have `isatty`, and COLUMNS=0 means that the width is unknown.
    is_terminal = getattr(console.file, "isatty", lambda: False)()
    return console.width or None if is_terminal else None


def folded(line: str, width: int | None) -> str:
    """Break a line between words into parts of at most `width` characters, and return the parts as one text.

    Words, percentages and lines of Python are never split, so paths without blanks can be copied. Further parts are
    indented by two more spaces.

    Example:
        >>> print(folded("level: refuted, see runs/parity-lstm, 100 % right", 17))
        level: refuted,
          see
          runs/parity-lstm,
          100 % right
    """
    is_code = line.lstrip().startswith((">>> ", "... "))
    if width is None or len(line) <= width or is_code:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    text = line.replace(" %", UNBROKEN)
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(UNBROKEN, " %")


def write_row(cells: Iterable[str]) -> None:
    """Write cells to standard output, with control characters escaped and tabs between them."""
    sys.stdout.write("\t".join(map(printable, cells)) + "\n")


def print_grid(console: Console, title: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Print a table without frames, or a paragraph for each line if the terminal is too narrow for whole words."""
    header = [printable(name) for name in header]
    rows = [[printable(cell) for cell in line] for line in lines]
    console.print(Text(printable(title), style="italic"))
    widths = _fitted([[name, *column] for name, *column in zip(header, *rows, strict=True)], console.width)
    if widths is None:
        for row in rows:
            items = [f"{name} {cell}" for name, cell in zip(header, row, strict=True) if cell]
            for line in _wrapped(items, console.width - 2):
                console.print(Text(line))
        return
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.show_header, grid.header_style = True, "underline"
    for name, width in zip(header, widths, strict=True):
        grid.add_column(Text(name), overflow="fold", width=width)
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def _wrapped(items: Sequence[str], width: int) -> list[str]:
    """Return lines of at most `width` letters that list the items; only items longer than a line are split.

    Example:
        >>> _wrapped(["task parity", "mean 99.9 %", "steps 6,000"], 24)
        ['- task parity; mean 99.9 %', '  steps 6,000']
    """
    lines = [""]
    for item in items:
        longer = f"{lines[-1]}; {item}" if lines[-1] else item
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines += textwrap.wrap(item, width)
    return [f"{'- ' if index == 0 else '  '}{line}" for index, line in enumerate(filter(None, lines))]


def _fitted(columns: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return the widths of columns that are separated by a space, or None if words would have to be split.

    Short cells such as "50.00 %" stay whole, and longer cells may break between words. The columns that need the most
    lines get the remaining width.
    """
    expected = [max(map(len, column)) for column in columns]
    minimum = [
        max(len(cell) if len(cell) <= len("50.00 %") else max(map(len, cell.split())) for cell in column)
        for column in columns
    ]
    slack = available - sum(minimum) - len(columns)
    if slack < 0:
        return None
    widths = list(minimum)
    for _ in range(min(slack, sum(expected) - sum(minimum))):
        tallest = max(range(len(columns)), key=lambda index: expected[index] / widths[index])
        widths[tallest] += 1
    return widths
