"""Examples that would take more memory than a reader allows are refused in a sentence."""

import json
import sys
from pathlib import Path

import pytest
from limited_memory import run_limited

from lengthwise.tasks.given.reading import read_examples

MODULE = "lengthwise.tasks.given.reading"
IMPORTS = "from lengthwise.tasks.given.reading import read_examples"


# It writes and reads 600 MB; the test below reaches the same bounds with small files.
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
def test_a_row_of_any_size_takes_bounded_memory(tmp_path: Path) -> None:
    size, names = 100_000_000, []
    for name, head, row in (
        ("one.csv", b"string,label\n", (b"a", b",x\n")),
        ("quoted.csv", b'string,label\n"', (b"ab\n", b'",x\n')),
        ("cells.tsv", b"string\tlabel\n", (b"a\t", b"\n")),
        ("object.jsonl", b"", (b'{"a":', b"\n")),
        ("words.dat", b"1 2\n", (b"1 ", b"\n")),
        ("signs.dat", b"+ ", (b"1 ", b"\n")),
    ):
        names.append(str(tmp_path / name))
        with Path(names[-1]).open("wb") as file:
            file.write(head + row[0] * (size // len(row[0])) + row[1])
    outcomes = run_limited(IMPORTS, [f"read_examples({name!r})" for name in names], 400)
    for name in names:
        Path(name).unlink()
    long = "expected a line of at most 8,000,000 characters, got more; cut its string into shorter strings"
    assert outcomes == [
        f"refused: examples: row 2: {long}",
        f"refused: {names[1]}: cannot be read: field larger than field limit (8000000); "
        "check the quotes and the longest cells of the file",
        f"refused: examples: row 2: {long}",
        f"refused: examples: row 1: {long}",
        f"refused: examples: row 2: {long}",
        f"refused: examples: row 1: {long}",
    ]


def test_strings_rows_symbols_and_labels_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [("ab" * 500_001, "x"), ("b", "y")]
    with pytest.raises(
        ValueError, match=r"^examples: row 1: expected a string of at most 1,000,000 symbols, got 1,000,0"
    ):
        read_examples(pairs)
    short = [("ab", "xy"), ("ba", "yx"), ("bb", "yy")]
    for name, bound, what in (("MAX_ROWS", 2, "rows"), ("MAX_SYMBOLS", 5, "symbols"), ("MAX_LABELS", 5, "labels")):
        with monkeypatch.context() as patch:
            patch.setattr(f"{MODULE}.{name}", bound)
            with pytest.raises(ValueError, match=f"^examples: expected at most {bound} {what} in all, got more"):
                read_examples(short, supervision="prefix")
            patch.setattr(f"{MODULE}.{name}", bound + 1)
            assert len(read_examples(short, supervision="prefix")) == 3


def test_numbers_of_many_digits_are_named(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text('{"string": "a", "label": 1}\n{"string": "b", "label": ' + "1" * 5_000 + "}\n")
    with pytest.raises(
        ValueError, match=r"^examples: row 2: expected numbers that Python can read, got a number with 5,000 digits"
    ):
        read_examples(path)


def test_parquet_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "file.parquet"
    rows = [("ab" * (index % 7 + 1), "xy"[index % 2], index) for index in range(200)]
    columns = dict(zip(("text", "label", "number"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pyarrow.table(columns), path)
    examples = read_examples(path)
    assert examples.digest == read_examples([row[:2] for row in rows]).digest
    assert examples.counts.unused_columns == ("number",)
    lists = pyarrow.table({"string": [["a", "b"], ["b"]], "label": ["x", "y"]})
    parquet.write_table(lists, path)
    assert read_examples(path).lengths.tolist() == [2, 1]
    monkeypatch.setattr(f"{MODULE}.MAX_ROW_GROUP", 50)
    with pytest.raises(
        ValueError, match=r"file\.parquet: expected row groups of at most 50 bytes, got \d+; write smaller"
    ):
        read_examples(path)


def test_a_line_that_repeats_a_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps({"string": "a", "label": "x"}) + '\n{"string": "b", "label": "y", "label": "x"}\n')
    with pytest.raises(ValueError, match=r"^examples: row 2: expected each key of an object once, got 'label' twice"):
        read_examples(path)
