"""What every registered experiment promises, whatever its name."""

import re
from functools import cache
from pathlib import Path

import pytest
from checked_types import begin

from lengthwise.experiment import EXPERIMENTS, Experiment, Scale
from lengthwise.report.pages.results import write_page
from lengthwise.report.pages.study import STUDY_PAGES
from lengthwise.runs.execute import execute
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.spec import RunSpec


@pytest.fixture(params=list(EXPERIMENTS))
def name(request) -> str:
    return request.param


@cache
def made(name: str, scale: Scale) -> Experiment:
    """An experiment made once: those of whole papers take seconds."""
    return EXPERIMENTS[name](scale)


def check_complete(name: str, experiment: Experiment) -> None:
    assert experiment.title
    assert experiment.about
    entries = [(cell.row, cell.column, cell.part) for cell in experiment.cells]
    assert len(set(entries)) == len(entries)
    assert entries or experiment.study
    assert (experiment.study is not None) == (name in STUDY_PAGES)
    for cell in experiment.cells:
        assert len({spec.id for spec in cell.specs}) == len(cell.specs) > 0


@pytest.mark.parametrize("scale", ["smoke", "small"])
def test_makes_complete_and_different_runs(name: str, scale: Scale) -> None:
    check_complete(name, made(name, scale))


def test_an_unknown_scale_is_rejected(name: str) -> None:
    begin(is_checked=False)  # the annotations reject the wrong type before the function can
    with pytest.raises(ValueError, match=r"^scale: expected 'smoke' or 'small' or 'paper', got 'smal'; choose one"):
        EXPERIMENTS[name]("smal")  # type: ignore[arg-type]  # the scale is wrong on purpose


def test_scale_paper_trains_longer_or_is_refused_where_the_experiment_is_our_own(name: str) -> None:
    refusal = ""
    try:
        experiment = made(name, "paper")
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert re.match(
            "scale: expected 'small' or 'smoke', got 'paper', but .*; use 'small', or 'smoke' for a trial", refusal
        )
        return
    check_complete(name, experiment)
    small, paper = (sum(spec.recipe.steps for spec in made(name, scale).specs) for scale in ("small", "paper"))
    assert small < paper


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """Where runs are kept: those of two experiments that are the same are run once."""
    return tmp_path_factory.mktemp("runs")


def of_four_steps(spec: RunSpec) -> RunSpec:
    return spec if spec.goal else spec._replace(recipe=spec.recipe.model_copy(update={"steps": 4}))


# Each case trains nets and draws a page; experiments of one study share that code, and slow tests run all of them.
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", EXPERIMENTS, indirect=True)
@pytest.mark.usefixtures("fewer_strings", "fewer_steps")
def test_runs_at_smoke_scale_and_writes_its_page(name: str, runs: Path, tmp_path: Path) -> None:
    """Of two cells, the first and the last, a run each, in this process; all specifications are made above.

    Of four steps, unless something else is done with the nets afterwards.
    """
    experiment = made(name, "smoke")
    cells = list(dict.fromkeys([*experiment.cells[:1], *experiment.cells[-1:]]))
    shorten = of_four_steps if experiment.study is None else (lambda spec: spec)
    experiment = experiment._replace(cells=[cell._replace(specs=(shorten(cell.specs[0]),)) for cell in cells])
    outcomes = [
        Outcome(spec, execute(spec, runs, plan)) for spec, plan in zip(experiment.specs, experiment.plans, strict=True)
    ]
    *pictures, path = write_page(
        name, "smoke", f"lengthwise reproduce {name}", experiment, outcomes, runs, tmp_path / "page.md"
    )
    page = path.read_text().replace("\N{NO-BREAK SPACE}", " ")
    cells_at = [path, *(picture for picture in pictures if picture.suffix == ".csv")]
    text = "".join(file.read_text() for file in cells_at).replace("\N{NO-BREAK SPACE}", " ")
    assert all(part in text for cell in experiment.cells for part in (cell.row, cell.column, cell.published))
    for picture in pictures:
        assert picture.stat().st_size > 0
        assert f"]({picture.name})" in page
    # A study may do with tables; the results of runs have pictures only as a matrix.
    if experiment.study is None:
        assert bool(pictures) == experiment.is_matrix
    assert f"lengthwise reproduce {name}\n" in page
    assert "commit:" in page
    assert "## Without a result" not in page


def test_cells_are_selected_by_row_and_column(name: str) -> None:
    experiment = made(name, "smoke")
    assert experiment.select().specs == experiment.specs
    for cell in experiment.cells:
        assert cell in experiment.select(rows=cell.row).cells
        selected = experiment.select(cell.row, cell.column).cells
        assert cell in selected
        assert {(other.row, other.column) for other in selected} == {(cell.row, cell.column)}
    for axis in ("rows", "columns"):
        with pytest.raises(ValueError, match=rf"^{axis}: expected names of {axis}, got 'none of these'"):
            experiment.select(**{axis: "none of these"})
