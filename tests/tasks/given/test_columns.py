"""Columns that are not used are named, and refused if they say how much a row counts."""

import json
from pathlib import Path

import pytest

from lengthwise.tasks.given.reading import read_examples

PAIRS = [("ab", "x"), ("ba", "y")]


def file_of(folder: Path, kind: str, column: str) -> Path:
    path = folder / f"file.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"string": s, "label": y, column: 3}) + "\n" for s, y in PAIRS))
    else:
        between = "," if kind == "csv" else "\t"
        rows = [("string", "label", column), *((s, y, "3") for s, y in PAIRS)]
        path.write_text("".join(between.join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
def test_columns_that_are_not_used_are_named(kind: str, tmp_path: Path) -> None:
    counts = read_examples(file_of(tmp_path, kind, "device")).counts
    assert counts.unused_columns == ("device",)
    assert counts.describe_unused_columns() == "columns that are not used: 'device'"
    assert read_examples(PAIRS).counts.describe_unused_columns() == ""


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl"])
@pytest.mark.parametrize(
    ("column", "way_out"),
    [
        ("weight", "every row counts once, so repeat rows instead, or remove the column"),
        (" Count", "every row counts once, so repeat rows instead, or remove the column"),
        ("probability", "labels are taken as certain, so remove the column"),
        ("split", "all rows are read, so write one file for each split"),
    ],
)
def test_columns_that_carry_meaning_are_refused(kind: str, column: str, way_out: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, kind, column)
    for names in ({}, {"string": "string", "label": "label"}):
        with pytest.raises(ValueError, match=rf"expected no column of weights, .* or splits, got '.*'; {way_out}$"):
            read_examples(path, **names)


def test_a_column_that_carries_meaning_may_be_the_label(tmp_path: Path) -> None:
    examples = read_examples(file_of(tmp_path, "csv", "count"), label="count", min_classes=1)
    assert examples.classes == ("3",)
    assert examples.counts.unused_columns == ("label",)


def test_many_columns_are_not_all_named(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    names = ["string", "label", *(f"c{index}" for index in range(12))]
    path.write_text(",".join(names) + "\n" + ",".join(["ab", "x"] + ["0"] * 12) + "\nb,y" + ",0" * 12 + "\n")
    assert read_examples(path).counts.describe_unused_columns().endswith("'c8', 'c9' and 2 more")
    path.write_text(",".join(names + [f"d{index}" for index in range(99)]) + "\n")
    with pytest.raises(ValueError, match=r"^label: expected one of the columns .*, \.\.\., got 'lable'"):
        read_examples(path, label="lable")
