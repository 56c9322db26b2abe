"""Tables as files: every cell of every table, under its title."""

import csv
from pathlib import Path

import pytest

from lengthwise.report.tables.files import SUFFIXES, write_tables
from lengthwise.report.tables.table import Table

TABLES = {
    "First & foremost": Table(("model", "mean"), (("rnn", "50 %"), ("gru", "75 %")), shared=(("runs", "2"),)),
    "Second": Table(("setting", "rnn"), (("d_model", "8"),)),
}


def test_csv_has_a_row_for_each_line_with_its_title_and_shared_columns(tmp_path: Path) -> None:
    write_tables(TABLES, tmp_path / "new" / "t.csv")
    with (tmp_path / "new" / "t.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["table"] for row in rows] == ["First & foremost", "First & foremost", "Second"]
    assert [(row["model"], row["mean"], row["runs"]) for row in rows[:2]] == [
        ("rnn", "50 %", "2"),
        ("gru", "75 %", "2"),
    ]
    assert rows[2] == {"table": "Second", "setting": "d_model", "rnn": "8", "model": "", "mean": "", "runs": ""}


@pytest.mark.parametrize(("suffix", "titles"), [("md", "## "), ("tex", "\\caption{")])
def test_each_table_has_its_title(tmp_path: Path, suffix: str, titles: str) -> None:
    write_tables(TABLES, tmp_path / f"t.{suffix}")
    text = (tmp_path / f"t.{suffix}").read_text(encoding="utf-8")
    assert text.count(titles) == 2
    assert text.index("gru") < text.index("runs") < text.index("Second") < text.index("setting")


def test_other_names_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"out: expected a name that ends in {', '.join(SUFFIXES)}, got 't.docx'"):
        write_tables(TABLES, tmp_path / "t.docx")
    assert not list(tmp_path.iterdir())
