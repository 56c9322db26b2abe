"""The files of the competitions Abbadingo and StaMInA: labeled strings, one on each line."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from lengthwise.tasks.given.lines import lines_of, open_text

Row = tuple[int, tuple[list[str], str]]
"""The number of a line, with its symbols and its label."""


def rows_of_competition(path: Path) -> Iterator[Row]:
    """Yield the rows of a file of Abbadingo, which begins with counts, or of StaMInA, whose lines begin with + or -.

    Raises:
        ValueError: a line has the wrong form or no label, or the first line has wrong counts.

    Source: the competitions Abbadingo One (1998) and StaMInA (2010).
    """
    with open_text(path) as file:
        lines = enumerate(lines_of(file), 1)
        first = next((numbered for numbered in lines if numbered[1].split()), (1, ""))
        if first[1].split()[:1] in ([sign] for sign in "+-?"):
            yield from _rows_of_stamina(chain([first], lines))
        else:
            yield from _rows_of_abbadingo(path, first[1].split(), lines)


def _rows_of_stamina(lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield a row for each line: + or -, then the symbols of a string."""
    for number, line in lines:
        words = line.split()
        if not words:
            continue
        if words[0] not in ("+", "-"):
            got = "?, which marks strings to be labeled" if words[0] == "?" else repr(words[0][:80])
            raise ValueError(
                f"examples: row {number:,}: expected + or - before the symbols, got {got}; give the file of training "
                "strings, or label these strings"
            )
        yield number, (words[1:], words[0])


def _rows_of_abbadingo(path: Path, header: Sequence[str], lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield a row for each line of label, length and symbols; the first line has the numbers of strings and symbols.

    The tool FlexFringe appends the number of attributes to the second number, as in 2:0.
    """
    numbers = [*header[:-1], *header[-1].split(":")] if len(header) == 2 else []
    if not numbers or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in numbers):
        raise ValueError(
            f"{path}: expected a first line with the numbers of strings and of symbols, got {str(header)[:80]}; write "
            "these two counts first"
        )
    if any(int(number) for number in numbers[2:]):
        raise ValueError(
            f"{path}: expected symbols without attributes, got {header[1]!r} in the first line; remove the attributes "
            "from all lines"
        )
    count, symbols = 0, set[str]()
    for number, line in lines:
        words = line.split()
        if not words:
            continue
        if len(words) < 2 or not words[1].isdecimal() or len(words) != 2 + int(words[1][:20]):
            raise ValueError(
                f"examples: row {number:,}: expected label, length and symbols, got {line[:80]!r}; make the length "
                "equal to the number of symbols"
            )
        if words[0] == "-1":
            raise ValueError(
                f"examples: row {number:,}: expected a label, got -1, which marks strings without a label; leave these "
                "strings out, and correct the count in the first line"
            )
        count += 1
        symbols.update(words[2:])
        yield number, (words[2:], words[0])
    if count != int(numbers[0]):
        raise ValueError(
            f"{path}: expected {int(numbers[0]):,} strings, the count in the first line, got {count:,}; correct the "
            "first line, or restore the missing lines"
        )
    if len(symbols) > int(numbers[1]):
        raise ValueError(
            f"{path}: expected at most {int(numbers[1]):,} different symbols, the count in the first line, got "
            f"{len(symbols):,}; correct the first line, or the symbols"
        )
