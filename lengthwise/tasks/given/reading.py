"""Examples from files and data frames."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Number
from pathlib import Path
from typing import Any, get_args

import numpy as np

from lengthwise.registry import nearest
from lengthwise.tasks.given.examples import Examples, Row, Supervision, examples_from

STRINGS = ("string", "text", "input", "trace", "word", "sequence")
LABELS = ("label", "class", "output", "answer", "accepted", "target")
"""Names of columns that are taken where none are given."""


def read_examples(
    source: Any,
    *,
    separator: str = "",
    string: str | None = None,
    label: str | None = None,
    supervision: Supervision = "last",
    min_classes: int = 2,
) -> Examples:
    """Labeled strings from a file, a data frame, or pairs (string, label).

    Files are CSV, TSV, JSONL, Parquet or Abbadingo's format (`.dat`), by their suffix. Symbols are characters or, with
    a separator, words; where a string, or its labels, is a list, its items. Columns are `string` and `label`, or those
    with usual names. A table of two columns needs no header.

    Raises:
        ValueError: the file is missing, of another kind, or not UTF-8; there is no such column; a row has no label, or
            with `supervision="prefix"` not one for each symbol; there are fewer classes than `min_classes`.

    Example:
        >>> read_examples([("ab", "in"), ("ba", "out")]).symbols
        ('a', 'b')
    """
    if supervision not in get_args(Supervision):
        kinds = " or ".join(get_args(Supervision))
        raise ValueError(
            f"supervision: expected {kinds}, got {supervision!r}{nearest(supervision, get_args(Supervision))}"
        )
    split = partial(_split, separator=separator)
    if isinstance(source, str | Path):
        rows = _rows_of_file(Path(source), (string, label), checks_first=supervision == "last")
    elif hasattr(source, "columns"):
        rows = _rows_of_frame(source, (string, label))
    elif isinstance(source, Iterable):
        rows = enumerate(source.tolist() if isinstance(source, np.ndarray) else source, 1)
    else:
        raise ValueError(f"examples: expected a file, a data frame or pairs, got a {type(source).__name__}")
    return examples_from(_split_rows(rows, split, supervision), supervision, min_classes=min_classes)


Pairs = Iterable[tuple[int, Any]]
"""The number of a row, and its string and label."""


def _split_rows(rows: Pairs, split: Callable[[Any], Sequence[str]], supervision: Supervision) -> Iterator[Row]:
    for number, row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 2:
            raise ValueError(f"examples: row {number:,}: expected a string and its label, got {str(row)[:80]!r}")
        string, label = row
        if _is_missing(string):
            raise ValueError(
                f'examples: row {number:,}: expected a string, got a missing one; write "" for the empty string, or '
                "leave the row out"
            )
        if supervision == "last" and _is_list(label):
            raise ValueError(
                f"examples: row {number:,}: expected one label, got a list of {len(label)}; where there is one for "
                "each symbol, choose supervision 'prefix'"
            )
        try:
            parts = Row(split(string), split(label) if supervision == "prefix" else [_name(label)], number)
        except ValueError as problem:
            raise ValueError(f"examples: row {number:,}: {problem}") from None
        yield parts


def _split(value: Any, separator: str) -> Sequence[str]:
    if _is_list(value):
        if others := [item for item in value if isinstance(item, Mapping) or _is_list(item)]:
            raise ValueError(f"expected symbols in a list, got {str(others[0])[:60]}; name them by text")
        names = [_name(item) for item in value]
        if "" in names:
            raise ValueError(f"expected a symbol in each place of a list, got {value[names.index('')]!r}")
        return names
    if isinstance(value, Mapping):
        raise ValueError(f"expected a string, or a list of symbols, got an object of {len(value)} entries")
    text = value if isinstance(value, str) else _name(value)
    return [part for part in text.split(separator) if part] if separator else list(text)


def _is_list(value: object) -> bool:
    """Whether it is a list of items: an array or a tensor of one dimension is."""
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1


def _is_missing(value: object) -> bool:
    """Whether it is None, NaN, or what data frames have for a missing value."""
    is_nan = isinstance(value, Number) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _name(value: Any) -> str:
    """A label or symbol as text; a missing one is empty."""
    if hasattr(value, "item"):  # a number of NumPy or torch
        value = value.item()
    if _is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip("\r\n")


def _rows_of_file(path: Path, columns: tuple[str | None, str | None], *, checks_first: bool) -> Pairs:
    """Rows of any kind of file; `checks_first`: of a table without a header, that its first row is none."""
    kind = path.suffix.lower()
    if kind not in KINDS:
        way_out = "write one object a line, as .jsonl" if kind == ".json" else "save its rows as one of these"
        raise ValueError(f"{path}: expected a file of examples ({', '.join(KINDS)}), got suffix {kind!r}; {way_out}")
    try:
        checked = {"checks_first": checks_first} if kind in TABLES else {}
        yield from KINDS[kind](path, columns, **checked)
    except FileNotFoundError:
        raise ValueError(
            f"{path}: expected a file of examples, got no such file; name it as it is named from this folder"
        ) from None
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path}: expected text in UTF-8, got other bytes at {problem.start:,}; convert it") from None
    except (OSError, csv.Error) as problem:
        raise ValueError(f"{path}: cannot be read: {problem}") from None


MAX_FIELD = 1 << 30
"""Characters of a string in a table, of which Python by itself reads 131,072."""


def _rows_of_table(path: Path, columns: tuple[str | None, str | None], *, delimiter: str, checks_first: bool) -> Pairs:
    csv.field_size_limit(MAX_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        first = next(rows, None)
        if first is None:
            return
        names = [name.strip() for name in first]
        is_header = any(columns) or any(name.lower() in STRINGS + LABELS for name in names) or len(names) != 2
        at = _column_numbers(names, columns) if is_header else (0, 1)
        first_label = None
        if not is_header:
            cells = _cells(first, at, len(names), 1)
            first_label = cells[1]
            yield 1, cells
        for row in rows:
            if row:
                cells = _cells(row, at, len(names), rows.line_num)
                first_label = None if cells[1] == first_label else first_label
                yield rows.line_num, cells
    if checks_first and first_label is not None and rows.line_num > 1:
        raise ValueError(
            f"label: expected the label {first_label!r} of the first row in another row, too, got it there alone; if "
            f"that row is a header, name its columns {names[0]!r} (string) and {names[1]!r} (label)"
        )


def _cells(row: Sequence[str], at: tuple[int, int], width: int, number: int) -> tuple[str, str]:
    if len(row) <= max(at) or any(row[width:]):  # empty cells at the end are left out, or added, by spreadsheets
        raise ValueError(
            f"examples: row {number:,}: expected {width} columns, got {len(row)}; look at commas and quotes"
        )
    return row[at[0]], row[at[1]].strip()


def _column_numbers(names: Sequence[str], columns: tuple[str | None, str | None]) -> tuple[int, int]:
    """Where strings and labels stand: in the columns that are given, or in those with a usual name."""
    numbers = []
    if len(names) == 1 and (mark := next((mark for mark in ";\t|" if mark in names[0]), None)):
        raise ValueError(
            f"examples: expected columns with commas (.csv) or tabs (.tsv) between them, got {names[0]!r}, one column "
            f"with {mark!r} in its name; write the file with commas"
        )
    for given, usual, what in zip(columns, (STRINGS, LABELS), ("string", "label"), strict=True):
        candidates = [name for name in names if (name.lower() in usual if given is None else name == given)]
        if len(candidates) != 1:
            got = f"{len(candidates)} with a usual name; name it, or write two columns, string and label"
            if given is not None:
                got = f"{given!r} {len(candidates)} times" if candidates else f"{given!r}{nearest(given, names)}"
            raise ValueError(f"{what}: expected one of the columns {', '.join(map(repr, names))}, got {got}")
        numbers.append(names.index(candidates[0]))
    if numbers[0] == numbers[1]:
        raise ValueError(f"label: expected another column than that of the strings, got {names[numbers[0]]!r} twice")
    return numbers[0], numbers[1]


def _rows_of_lines(path: Path, columns: tuple[str | None, str | None]) -> Pairs:
    """A JSON object, or a list of two, on each line."""
    keys = None
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as problem:
                raise ValueError(f"examples: row {number:,}: expected JSON, got something else ({problem})") from None
            if isinstance(content, Mapping):
                keys = _keys(list(content), columns, number, before=keys)
                content = [content[key] for key in keys]
            yield number, content


def _keys(
    names: Sequence[str], columns: tuple[str | None, str | None], number: int, *, before: tuple[str, str] | None
) -> tuple[str, str]:
    """Under which names an object has string and label; `before`: where an object of an earlier row has them."""
    try:
        string, label = _column_numbers(names, columns)
    except ValueError as problem:
        for key, what in zip(before or (), ("string", "label"), strict=False):
            if key not in names:
                raise ValueError(
                    f"examples: row {number:,}: expected a {what} under {key!r}, as in the rows before it, got none, "
                    f"but {', '.join(map(repr, names)) or 'an empty object'}; add it, or leave the row out"
                ) from None
        raise ValueError(f"examples: row {number:,}: {problem}") from None
    return names[string], names[label]


def _rows_of_abbadingo(path: Path, columns: tuple[str | None, str | None]) -> Pairs:
    """A line with the numbers of strings and of symbols, then for each string: label, length, symbols."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline().split()
        if len(header) != 2 or not all(word.isascii() and word.isdigit() and len(word) < 20 for word in header):
            raise ValueError(f"{path}: expected a first line with the numbers of strings and of symbols, got {header}")
        count, symbols = 0, set[str]()
        for number, line in enumerate(file, 2):
            words = line.split()
            if not words:
                continue
            if len(words) < 2 or not words[1].isdecimal() or len(words) != 2 + int(words[1]):
                raise ValueError(f"examples: row {number:,}: expected label, length and symbols, got {line[:80]!r}")
            if words[0] == "-1":
                raise ValueError(
                    f"examples: row {number:,}: expected a label, got -1, which marks strings without one; leave them "
                    "out, and count again in the first line"
                )
            count += 1
            symbols.update(words[2:])
            yield number, (words[2:], words[0])
    if count != int(header[0]):
        raise ValueError(f"{path}: expected {int(header[0]):,} strings, as its first line says, got {count:,}")
    if len(symbols) > int(header[1]):
        raise ValueError(f"{path}: expected {int(header[1]):,} symbols, as its first line says, got {len(symbols):,}")


def _rows_of_parquet(path: Path, columns: tuple[str | None, str | None]) -> Pairs:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(f"{path}: expected the package pyarrow for Parquet, got none; pip install pyarrow") from None
    return _rows_of_frame(parquet.read_table(path), columns)


def _rows_of_frame(frame: Any, columns: tuple[str | None, str | None]) -> Pairs:
    import narwhals.stable.v2 as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"examples: expected a file, pairs or a data frame, got a {type(frame).__name__}; collect it first"
        ) from None
    names = list(table.columns)
    if len(names) == 2 and not any(columns) and not any(name.lower() in STRINGS + LABELS for name in map(str, names)):
        columns = (names[0], names[1])
    string, label = _column_numbers(names, columns)
    chosen = table.select([names[string], names[label]])
    return enumerate(chosen.iter_rows(), 1)


TABLES = (".csv", ".tsv")
"""Kinds whose first row may be a header."""

KINDS: Mapping[str, Callable[..., Pairs]] = {
    ".csv": partial(_rows_of_table, delimiter=","),
    ".tsv": partial(_rows_of_table, delimiter="\t"),
    ".jsonl": _rows_of_lines,
    ".dat": _rows_of_abbadingo,
    ".parquet": _rows_of_parquet,
}
