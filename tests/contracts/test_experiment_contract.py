"""What every registered experiment promises, whatever its name."""

from pathlib import Path
from typing import get_args

import pytest

from lengthwise.cli.app import main
from lengthwise.experiments import EXPERIMENTS, Scale
from lengthwise.registry import UnknownName


@pytest.fixture(params=list(EXPERIMENTS))
def name(request) -> str:
    return request.param


@pytest.mark.parametrize("scale", get_args(Scale))
def test_makes_complete_and_different_runs(name: str, scale: Scale) -> None:
    refusal = ""
    try:
        experiment = EXPERIMENTS[name](scale)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert scale == "paper"
        assert "use small, the real thing, or smoke" in refusal
        return
    assert experiment.title
    assert experiment.about
    entries = [(cell.row, cell.column) for cell in experiment.cells]
    assert len(set(entries)) == len(entries) > 0
    for cell in experiment.cells:
        assert len({spec.id for spec in cell.specs}) == len(cell.specs) > 0
    assert (EXPERIMENTS[name].__doc__ or "").strip()


def reproduce(name: str, folder: Path) -> str:
    """The page that the experiment makes at smoke scale."""
    arguments = ["reproduce", name, "--scale", "smoke", "--runs", str(folder / "runs"), "--pages", str(folder)]
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    page = (folder / f"{name.replace('/', '-')}-smoke.md").read_text(encoding="utf-8")
    return page.replace("\N{NO-BREAK SPACE}", " ")


def test_runs_at_smoke_scale_and_writes_its_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first and its last cell do: all of them would train 144 nets."""
    experiment = EXPERIMENTS[name]("smoke")
    experiment = experiment._replace(cells=[experiment.cells[0], experiment.cells[-1]])
    monkeypatch.setitem(EXPERIMENTS._members, name, lambda scale: experiment)
    page = reproduce(name, tmp_path)
    results = page.partition("## Protocol")[0]
    assert all(cell.row in results and cell.column in results for cell in experiment.cells)
    assert all(cell.published in page for cell in experiment.cells)
    assert f"lengthwise reproduce {name} --scale smoke" in page
    assert "commit:" in page
    assert "## Without a result" not in page


def test_a_second_time_everything_is_finished_already(tmp_path: Path) -> None:
    page = reproduce("regular-gpt/table-2", tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/[!.]*")}
    assert reproduce("regular-gpt/table-2", tmp_path) == page
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/[!.]*")} == written


@pytest.mark.parametrize("name", ["regular-gpt/table-1", "regular-gpt/table-2"])
def test_tables_of_a_paper_have_its_scale(name: str) -> None:
    specs = EXPERIMENTS[name]("paper").specs
    assert {spec.recipe.steps for spec in specs} == {100_000}
    assert {spec.seed for spec in specs} == {0, 1, 2}


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"did you mean 'regular-gpt/ours'"):
        EXPERIMENTS["regular-gpt/our"]
