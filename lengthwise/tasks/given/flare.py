"""The splits of FLaRe: folders with a file of strings and a file of labels."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from math import isfinite
from pathlib import Path

from lengthwise.files import strict_json_loads
from lengthwise.tasks.given.lines import numbered_lines
from lengthwise.validation import type_in_words

STRINGS, LABELS = "main.tok", "labels.txt"
NEXT_SYMBOLS, NUM_EDITS = "next-symbols.jsonl", "num-edits.txt"

Row = tuple[int, tuple[list[str], str]]
"""The number of a line, with its symbols and its label."""


def rows_of_flare(folder: Path) -> Iterator[Row]:
    """Yield the line number, the symbols and the label (0 or 1) of each string in a split of FLaRe.

    `main.tok` has a string on each line, with blanks between its symbols; an empty line is the empty string.
    `labels.txt` has a label on each line. The other files of a split are checked if they exist, but not used. Each of
    these other files has lines only for the strings of one label. This label is 1 for `next-symbols.jsonl` and
    `log-probabilities.txt`, and 0 for `num-edits.txt` and `edit-distances.txt`.

    Raises:
        ValueError: the folder is not a split; a line has the wrong form; or the files have different numbers of lines.

    Source: Butoi et al., "Training Neural Networks as Recognizers of Formal Languages" (arXiv 2411.07107), FLaRe.
    """
    if missing := [name for name in (STRINGS, LABELS) if not (folder / name).is_file()]:
        raise ValueError(
            f"{folder}: expected a file of examples, or a folder with {STRINGS} and {LABELS} as in FLaRe, got a folder "
            f"without {missing[0]}; name a file, or the folder of a split"
        )
    others = {
        name: (label, check, numbered_lines(folder / name))
        for name, (label, check) in _OTHERS.items()
        if os.path.lexists(folder / name)  # a broken link is an error, and not a missing file
    }
    counts = {"0": 0, "1": 0}
    pairs = zip_longest(numbered_lines(folder / STRINGS), numbered_lines(folder / LABELS))
    for string, label in pairs:
        if string is None or label is None:
            first, second = (sum(1 for _ in numbered_lines(folder / name)) for name in (STRINGS, LABELS))
            raise ValueError(
                f"{folder / LABELS}: expected {first:,} lines, as in {STRINGS}, got {second:,}; restore the two files"
            )
        row = _row(folder, string, label)
        counts[row[1][1]] += 1
        for name, (of_label, check, lines) in others.items():
            if of_label == row[1][1]:
                _check_line(folder / name, next(lines, None), check, row)
        yield row
    for name, (of_label, _, lines) in others.items():
        if (extra := next(lines, None)) is not None:
            raise ValueError(
                f"{folder / name}: expected {counts[of_label]:,} lines, one for each string with label {of_label}, got "
                f"at least {extra[0]:,}; restore the files of this split"
            )


def _row(folder: Path, string: tuple[int, str], label: tuple[int, str]) -> Row:
    number, text = string
    symbols = text.split(" ") if text else []
    if strange := [symbol for symbol in symbols if symbol.split() != [symbol] or not symbol.isprintable()]:
        raise ValueError(
            f"{folder / STRINGS}: line {number:,}: expected symbols with one blank between them, got "
            f"{strange[0][:40]!r} as a symbol; remove tabs and extra blanks"
        )
    if label[1] not in ("0", "1"):
        raise ValueError(
            f"{folder / LABELS}: line {number:,}: expected the label 0 or 1, got {label[1][:40]!r}; correct the label"
        )
    return number, (symbols, label[1])


def _check_line(
    path: Path, line: tuple[int, str] | None, check: Callable[[str, Sequence[str]], None], row: Row
) -> None:
    number, (symbols, label) = row
    if line is None:
        raise ValueError(
            f"{path}: expected a line for each string with label {label}, got none for the string on line {number:,} "
            f"of {STRINGS}; restore the files of this split"
        )
    try:
        check(line[1], symbols)
    except ValueError as problem:
        raise ValueError(f"{path}: line {line[0]:,}: {problem}") from None


def _check_next_symbols(line: str, symbols: Sequence[str]) -> None:
    sets = strict_json_loads(line)
    if not isinstance(sets, list) or len(sets) != len(symbols) + 1:
        got = f"a list of {len(sets)}" if isinstance(sets, list) else type_in_words(sets)
        raise ValueError(
            f"expected a list of {len(symbols) + 1} sets, one for each prefix, got {got}; correct the line"
        )
    for entry, symbol in zip(sets, [*symbols, None], strict=True):
        if not (
            isinstance(entry, dict)
            and entry.keys() == {"s", "e"}
            and isinstance(entry["s"], str)
            and isinstance(entry["e"], bool)
        ):
            raise ValueError(f'expected sets such as {{"s": "0 1", "e": true}}, got {str(entry)[:60]}; correct the set')
        if entry["e"] is False if symbol is None else symbol not in entry["s"].split(" "):
            what = "the end" if symbol is None else repr(symbol)
            raise ValueError(f"expected a set with {what}, which comes next in {STRINGS}, got {entry}; correct the set")


def _check_log_probability(line: str, symbols: Sequence[str]) -> None:
    try:
        is_number = isfinite(float(line))
    except ValueError:
        is_number = False
    if not is_number:
        raise ValueError(f"expected the logarithm of a probability, got {line[:40]!r}; correct the line")


def _check_count(line: str, symbols: Sequence[str]) -> None:
    if line and not (line.isascii() and line.isdigit() and int(line[:20]) > 0):
        raise ValueError(f"expected an empty line, or a number of edits from 1, got {line[:40]!r}; correct the line")


_OTHERS: dict[str, tuple[str, Callable[[str, Sequence[str]], None]]] = {
    NEXT_SYMBOLS: ("1", _check_next_symbols),
    "log-probabilities.txt": ("1", _check_log_probability),
    NUM_EDITS: ("0", _check_count),
    "edit-distances.txt": ("0", _check_count),
}
"""The other files of a split, besides strings and labels. Each file is listed with the label of the strings to which
its lines belong, and with a function that checks a line."""
