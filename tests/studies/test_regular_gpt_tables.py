"""The tables of RegularGPT's paper: where their runs are measured, and how one cell is run alone."""

from pathlib import Path

import pytest
from command import exit_code

from lengthwise.experiment import EXPERIMENTS
from lengthwise.registry import UnknownName


def test_a_misspelled_row_is_met_with_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"rows: expected names of rows, got 'Paritty'; did you mean 'Parity'\? \(known: 'Even"
    ):
        EXPERIMENTS["regular-gpt/ours"]("smoke").select(rows="Paritty")


def test_names_of_rows_and_columns_are_separated_by_commas() -> None:
    experiment = EXPERIMENTS["leaderboard"]("smoke")
    typed = experiment.select("parity, tomita-2", "gru,Transformer, rotary,mamba-1-1").cells
    assert {cell.row for cell in typed} == {"Parity", "Tomita 2"}
    assert {cell.column for cell in typed} == {"GRU", "Transformer, rotary", "Mamba [-1, 1]"}
    with pytest.raises(
        ValueError, match=r"^columns: expected names of columns, got 'rotary'; did you mean 'Transformer, rotary'\?"
    ):
        experiment.select(columns="GRU,rotary")


def test_notes_on_a_scale_name_it() -> None:
    small, smoke = (EXPERIMENTS["regular-gpt/table-1"](scale) for scale in ("small", "smoke"))
    assert any("Scale `small` has smaller nets and fewer steps" in note for note in small.scale_notes("small"))
    assert len(small.scale_notes("small")) < len(small.notes)
    (note,) = smoke.scale_notes("smoke")
    assert "Its numbers mean nothing" in note
    assert "below" not in note, "on the terminal, the note is the last line"


def reproduce(folder: Path, *words: str) -> int:
    arguments = ["regular-gpt/table-2", "--scale", "smoke", "--runs", str(folder / "runs"), "--pages", str(folder)]
    return exit_code("reproduce", *arguments, *words)


def test_runs_are_measured_where_their_cells_score() -> None:
    experiment = EXPERIMENTS["regular-gpt/table-1"]("small")
    ranges = dict(zip((s.task.name for s in experiment.specs), (p.dense for p in experiment.plans), strict=True))
    assert ranges["tomita"] == (51, 100)
    assert ranges["parity"] == (41, 500)
    both = EXPERIMENTS["regular-gpt/table-2"]("small")
    assert {plan.dense for plan in both.plans} == {(1, 500)}, "a run of two cells has the lengths of both"


def times(folder: Path) -> dict[Path, int]:
    """Return when each file of the runs was last changed."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/[!.]*")}


def test_one_cell_is_run_alone_and_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cell, *_) = EXPERIMENTS["regular-gpt/table-2"]("smoke").cells
    assert reproduce(tmp_path, "--rows", cell.row, "--columns", cell.column) == 0
    assert [path.name for path in tmp_path.glob("runs/*")] == [spec.id for spec in cell.specs]
    assert not list(tmp_path.glob("*.md"))
    printed = capsys.readouterr().out
    assert "  seeds: 0\n  lengths scored: 1-40\n  commits: " in printed
    assert "\n  dense range: In one pass, the net reads 4 random strings" in printed
    assert "\n  A trial at scale `smoke`: one seed" in printed
    before = times(tmp_path)
    assert reproduce(tmp_path, "--rows", cell.row, "--columns", cell.column) == 0
    assert times(tmp_path) == before


# It trains all nets of the table; the test above repeats the runs of a cell.
@pytest.mark.slow
def test_a_table_after_one_of_its_cells_is_made_once(tmp_path: Path) -> None:
    (cell, *_) = EXPERIMENTS["regular-gpt/table-2"]("smoke").cells
    assert reproduce(tmp_path, "--rows", cell.row, "--columns", cell.column) == 0
    assert reproduce(tmp_path) == 0
    page = (tmp_path / "regular-gpt-table-2-smoke.md").read_text()
    before = times(tmp_path)
    assert reproduce(tmp_path) == 0
    assert (tmp_path / "regular-gpt-table-2-smoke.md").read_text() == page
    assert times(tmp_path) == before


@pytest.mark.parametrize("name", ["regular-gpt/table-1", "regular-gpt/table-2"])
def test_tables_of_a_paper_have_its_scale(name: str) -> None:
    specs = EXPERIMENTS[name]("paper").specs
    assert {spec.recipe.steps for spec in specs} == {100_000}
    assert {spec.seed for spec in specs} == {0, 1, 2}


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'regular-gpt/ours'"):
        EXPERIMENTS["regular-gpt/our"]
