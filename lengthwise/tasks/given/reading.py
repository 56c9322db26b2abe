"""Examples from files and data frames."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Number
from pathlib import Path
from typing import Any, get_args

import numpy as np

from lengthwise.files import exists, open_file, strict_json_loads
from lengthwise.registry import check_known
from lengthwise.tasks.given.columns import Columns
from lengthwise.tasks.given.competition import rows_of_competition
from lengthwise.tasks.given.examples import Examples, Row, Supervision, examples_from
from lengthwise.tasks.given.flare import rows_of_flare
from lengthwise.tasks.given.lines import MAX_LINE, lines_of, open_text
from lengthwise.tasks.given.mlregtest import rows_of_mlregtest
from lengthwise.validation import check_kind

MAX_STRING = 1_000_000
"""The longest string, in symbols."""

MAX_ROW_GROUP = 500_000_000
"""The largest size of strings and labels in a row group of Parquet, in bytes before compression."""

MAX_ROWS = 5_000_000
MAX_SYMBOLS = 100_000_000
MAX_LABELS = 10_000_000
"""The largest number of labels; `MAX_ROWS` and `MAX_SYMBOLS` limit rows and symbols. A row or label takes up to a
kilobyte of memory, and a symbol takes 50 B."""


def read_examples(
    source: Any,
    *,
    separator: str = "",
    string: str | None = None,
    label: str | None = None,
    supervision: Supervision = "last",
    min_classes: int = 2,
) -> Examples:
    """Return labeled strings from a file, a data frame, or pairs (string, label).

    Files are CSV, TSV, JSONL, Parquet, the formats of Abbadingo and StaMInA (`.dat`) or data of MLRegTest (`.txt`),
    recognized by their suffix. A folder is read as a split of the benchmark FLaRe.

    Symbols are the characters of a text or, with a separator, its words. If a string or its labels are given as a list,
    each item is a symbol or label. `string` and `label` name the columns to read. By default, these are the columns
    with a standard name for strings and for labels (`given.columns`). A table of two columns needs no header.
    `counts.unused_columns` lists the columns that are not used.

    Raises:
        ValueError: the file is missing, of another kind, or not UTF-8; a column is missing; the table has a column of
            weights, probabilities or splits; a column or separator is given for a format that allows neither; a row
            lacks its label, or with `supervision="prefix"` a label for each symbol; there are fewer classes than
            `min_classes`; a line or a string is longer than `MAX_LINE` or `MAX_STRING`; or the examples have more rows,
            symbols or labels than `MAX_ROWS`, `MAX_SYMBOLS` or `MAX_LABELS`.

    Example:
        >>> read_examples([("ab", "in"), ("ba", "out")]).symbols
        ('a', 'b')
    """
    check_known("supervision", supervision, get_args(Supervision))
    check_kind("separator", separator, str, "a text")
    check_kind("min_classes", min_classes, Integral, "a whole number")
    for argument, column in (("string", string), ("label", label)):
        check_kind(argument, column, (str, type(None)), "the name of a column")
    split = partial(_split, separator=separator)
    columns = Columns(string, label)
    if isinstance(source, str | Path):
        rows = _rows_of_file(Path(source), columns, separator, checks_first=supervision == "last")
    elif hasattr(source, "columns"):
        rows = _rows_of_frame(source, columns)
    elif isinstance(source, Iterable):
        _reject_arguments("pairs", string=string, label=label)
        # An array becomes a list, because its items are of NumPy's types and not Python's.
        rows = enumerate(source.tolist() if isinstance(source, np.ndarray) else source, 1)
    else:
        raise ValueError(
            f"examples: expected a file, a data frame or pairs, got {type(source).__name__}; give for example "
            "[('ab', 'yes'), ('a', 'no')]"
        )
    examples = examples_from(_split_rows(rows, split, supervision), supervision, min_classes=min_classes)
    return replace(examples, counts=examples.counts._replace(unused_columns=tuple(columns.unused)))


def _reject_arguments(source: object, **arguments: str | None) -> None:
    """Raise a ValueError if one of these arguments is given, because the source's format does not use them."""
    for argument, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{argument}: expected no value for {source}, whose format needs no such argument, got {value!r}; "
                f"leave {argument} out"
            )


Pairs = Iterable[tuple[int, Any]]
"""Rows of a table: the number of each row, with the row's string and label."""


def _split_rows(rows: Pairs, split: Callable[[Any], Sequence[str]], supervision: Supervision) -> Iterator[Row]:
    num_rows = num_symbols = num_labels = 0
    for number, row in rows:
        try:
            parts = _row_of(row, split, supervision, number)
        except ValueError as problem:
            raise ValueError(f"examples: row {number:,}: {problem}") from None
        num_rows = num_rows + 1
        num_symbols = num_symbols + len(parts.symbols)
        num_labels = num_labels + len(parts.labels)
        for count, bound, what in (
            (num_rows, MAX_ROWS, "rows"),
            (num_symbols, MAX_SYMBOLS, "symbols"),
            (num_labels, MAX_LABELS, "labels"),
        ):
            if count > bound:
                raise ValueError(
                    f"examples: expected at most {bound:,} {what} in all, got more (counted up to row {number:,}); "
                    "give fewer rows"
                )
        yield parts


def _row_of(row: Any, split: Callable[[Any], Sequence[str]], supervision: Supervision, number: int) -> Row:
    # A text of two characters is also a sequence of length 2, but is not a pair.
    if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != 2:
        raise ValueError(
            f"expected a string and its label, got {str(row)[:80]!r}; write the row as a pair of string and label"
        )
    string, label = row
    if _is_missing(string):
        raise ValueError('expected a string, got a missing value; write "" for the empty string, or leave the row out')
    if supervision == "last" and _is_list(label):
        raise ValueError(
            f"expected one label, got a list of {len(label)}; if each symbol has a label, choose supervision 'prefix'"
        )
    parts = Row(split(string), split(label) if supervision == "prefix" else [_name(label)], number)
    if len(parts.symbols) > MAX_STRING:
        raise ValueError(
            f"expected a string of at most {MAX_STRING:,} symbols, got {len(parts.symbols):,}; cut it into shorter "
            "strings"
        )
    return parts


def has_columns(path: Path) -> bool:
    """Return whether a file's format has columns; only then can the user name columns and a separator of symbols."""
    return not path.is_dir() and path.suffix.lower() not in UNNAMED


def _split(value: Any, separator: str) -> Sequence[str]:
    if _is_list(value):
        if others := [item for item in value if isinstance(item, Mapping) or _is_list(item)]:
            raise ValueError(
                f"expected texts as symbols of a list, got {str(others[0])[:60]}; write each symbol as a text"
            )
        names = [_name(item) for item in value]
        if "" in names:
            raise ValueError(
                f"expected non-empty symbols in a list, got {value[names.index('')]!r}; write a symbol "
                "instead, or remove this item"
            )
        return names
    if isinstance(value, Mapping):
        raise ValueError(
            "expected a string, or a list of symbols, got an object with keys; write the string's symbols as a list"
        )
    text = value if isinstance(value, str) else _name(value)
    return [part for part in text.split(separator) if part] if separator else list(text)


def _is_list(value: object) -> bool:
    """Return whether a value is a list of items; arrays and tensors of one dimension count as lists."""
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1


def _is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or a data frame's mark of a missing value."""
    is_nan = isinstance(value, Number) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _name(value: Any) -> str:
    """Return a label or symbol as text; a missing value becomes an empty text."""
    if hasattr(value, "item"):  # a number of NumPy or torch, whose text would show its type
        value = value.item()
    if _is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip("\r\n")


def _rows_of_file(path: Path, columns: Columns, separator: str, *, checks_first: bool) -> Pairs:
    """Yield the rows of any kind of file; `checks_first` rejects a first row that seems to be a header."""
    if not exists(path):
        raise ValueError(
            f"{path}: expected a file of examples, found no such file; give the file's path relative to the current "
            "folder"
        )
    kind = path.suffix.lower()
    if not has_columns(path):
        _reject_arguments(path, separator=separator or None, string=columns.string, label=columns.label)
    if path.is_dir():
        yield from rows_of_flare(path)
        return
    if kind not in KINDS:
        way_out = (
            "write one object on each line of a .jsonl file"
            if kind == ".json"
            else "save its rows in a file of one of these kinds"
        )
        raise ValueError(f"{path}: expected a file of examples ({', '.join(KINDS)}), got suffix {kind!r}; {way_out}")
    try:
        checked = {"checks_first": checks_first} if kind in TABLES else {}
        yield from KINDS[kind](path, columns, **checked)
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path}: expected text in UTF-8, got other bytes at offset {problem.start:,}; convert the file to UTF-8"
        ) from None
    except csv.Error as problem:
        raise ValueError(
            f"{path}: cannot be read: {problem}; check the quotes and the longest cells of the file"
        ) from None
    except OSError as problem:
        raise ValueError(f"{path}: cannot be read: {problem}; write the file again, or name another file") from None


def _rows_of_table(path: Path, columns: Columns, *, delimiter: str, checks_first: bool) -> Pairs:
    # The reader's default limit of 131,072 characters for a cell is below the length of strings that are allowed.
    csv.field_size_limit(MAX_LINE)
    with open_text(path) as file:
        # In strict mode, a quote that is never closed is an error instead of one long cell.
        rows = csv.reader(lines_of(file), delimiter=delimiter, strict=True)
        first = next(rows, None)
        if first is None:
            return
        names = [name.strip() for name in first]
        is_header = columns.has_header(names)
        at = columns.find(names) if is_header else (0, 1)
        first_label = None
        if not is_header:
            cells = _cells(first, at, len(names), 1)
            first_label = cells[1]
            yield 1, cells
        for row in rows:
            if row:
                cells = _cells(row, at, len(names), rows.line_num)
                # If the first row is a header with unusual names, its label occurs in no other row.
                first_label = None if cells[1] == first_label else first_label
                yield rows.line_num, cells
    if checks_first and first_label is not None and rows.line_num > 1:
        raise ValueError(
            f"label: expected the label {first_label!r} of the first row also in another row, got it only in the first "
            f"row; if that row is a header, set string to {names[0]!r} and label to {names[1]!r}, and otherwise "
            "move this row below another row"
        )


def _cells(row: Sequence[str], at: tuple[int, int], width: int, number: int) -> tuple[str, str]:
    if len(row) <= max(at) or any(row[width:]):  # spreadsheets leave out, or add, empty cells at the end
        raise ValueError(
            f"examples: row {number:,}: expected {width} columns, got {len(row)}; check separators and quotes"
        )
    return row[at[0]], row[at[1]].strip()


def _rows_of_lines(path: Path, columns: Columns) -> Pairs:
    """Yield the JSON object, or the list of a string and its label, on each line."""
    keys = None
    with open_text(path) as file:
        for number, line in enumerate(lines_of(file), 1):
            if not line.strip():
                continue
            try:
                content = strict_json_loads(line)
            except ValueError as problem:
                raise ValueError(f"examples: row {number:,}: {problem}") from None
            if isinstance(content, Mapping):
                keys = _keys(list(content), columns, number, before=keys)
                content = [content[key] for key in keys]
            yield number, content


def _keys(names: Sequence[str], columns: Columns, number: int, *, before: tuple[str, str] | None) -> tuple[str, str]:
    """Return the keys of a JSON object's string and label; `before` are the keys in earlier rows."""
    try:
        string, label = columns.find(names)
    except ValueError as problem:
        for key, what in zip(before or (), ("string", "label"), strict=False):
            if key not in names:
                raise ValueError(
                    f"examples: row {number:,}: expected a {what} under {key!r}, as in earlier rows, got only "
                    f"{', '.join(map(repr, names)) or 'an empty object'}; add this {what}, or leave the row out"
                ) from None
        raise ValueError(f"examples: row {number:,}: {str(problem).removeprefix('examples: ')}") from None
    return names[string], names[label]


def _rows_of_parquet(path: Path, columns: Columns) -> Pairs:
    open_file(path).close()  # pyarrow would call an unreadable file missing, or wait for a pipe
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise ValueError(f"{path}: expected the package pyarrow for Parquet, got none; pip install pyarrow") from None
    schema = parquet.read_schema(path)
    indices = columns.find(schema.names) if columns.has_header(schema.names) else (0, 1)
    chosen = [schema.names[index] for index in indices]
    # The file stores each repeated text once. With `read_dictionary`, memory also holds each text only once, and Python
    # strings are made only for the current row.
    texts = [name for name in chosen if types.is_string(schema.field(name).type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            parts = [group.column(index) for index in range(group.num_columns)]
            # A row group is decompressed as a whole, which takes `size` bytes of memory.
            size = sum(part.total_uncompressed_size for part in parts if part.path_in_schema.split(".")[0] in chosen)
            if size > MAX_ROW_GROUP:
                raise ValueError(
                    f"{path}: expected row groups of at most {MAX_ROW_GROUP:,} bytes, got {size:,}; write smaller row "
                    "groups"
                )
        number = 0
        for batch in file.iter_batches(batch_size=1_000, columns=chosen):
            for row in zip(*(batch.column(name) for name in chosen), strict=True):
                number += 1
                yield number, tuple(value.as_py() for value in row)


def _rows_of_frame(frame: Any, columns: Columns) -> Pairs:
    import narwhals.stable.v2 as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"examples: expected a file, pairs or a data frame, got {type(frame).__name__}; if it is a lazy "
            "frame, call its method collect, and otherwise give pairs"
        ) from None
    names = list(table.columns)
    indices = columns.find(names) if columns.has_header(names) else (0, 1)
    return enumerate(table.select([names[index] for index in indices]).iter_rows(), 1)


TABLES = (".csv", ".tsv")
"""Suffixes of files whose first row may be a header."""

UNNAMED = (".dat", ".txt")
"""Suffixes of files without column names and with a fixed separator."""

KINDS: Mapping[str, Callable[..., Pairs]] = {
    ".csv": partial(_rows_of_table, delimiter=","),
    ".tsv": partial(_rows_of_table, delimiter="\t"),
    ".jsonl": _rows_of_lines,
    ".dat": lambda path, columns: rows_of_competition(path),
    ".parquet": _rows_of_parquet,
    ".txt": lambda path, columns: rows_of_mlregtest(path),
}
