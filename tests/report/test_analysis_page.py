"""The page about a run's inside, from a net that was hardly trained, and its charts from made-up data."""

import re
from pathlib import Path

import pytest
import torch

from lengthwise.analysis.clusters import LevelClusters, principal_components
from lengthwise.analysis.overview import analyze
from lengthwise.analysis.receptive_field import FlipPoint
from lengthwise.analysis.states import block_states
from lengthwise.models import make_model
from lengthwise.report.charts.analysis import (
    cluster_chart,
    element_chart,
    field_chart,
    flip_chart,
    level_chart,
)
from lengthwise.report.pages.analysis import write_analysis
from lengthwise.runs.folder import Run, RunFolder
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task


def values_in(chart: dict) -> list[dict]:
    return [value for values in chart["datasets"].values() for value in values]


def small_run(task: str = "parity", **settings) -> Run:
    spec = make_spec(task, "regular-gpt", {"model": {"d_model": 16, "num_heads": 2, **settings}})
    return Run(RunFolder(Path("runs") / spec.id), spec, spec.make_model().eval(), 0)


def test_the_page_says_what_was_found_and_loads_nothing(tmp_path: Path) -> None:
    run = small_run()
    page = write_analysis(run, tmp_path / "new" / "inside.html", length=33, seed=5)
    text = page.read_text(encoding="utf-8")
    analysis = analyze(run.model, run.spec.task, length=33, seed=5)
    assert [path.name for path in page.parent.iterdir()] == ["inside.html"]
    assert "<h1>Inside regular-gpt on parity, seed 0</h1>" in text
    assert f"The net answers {analysis.num_right:,} of 200 correctly" in text
    assert "seed 5." in text
    for level in analysis.levels:
        assert f"<td>{level.within:.3g}</td>" in text
    charts = set(re.findall(r"class='chart' id='(\w+)'", text))
    assert charts == {"elements", "levels", "clusters", "field", "flips"}
    before_scripts = text.partition("<script>")[0]
    assert "default-src 'none'" in before_scripts
    assert not re.search(r"\b(?:src|href)=|@import|url\(", before_scripts)


def test_settings_of_the_task_are_in_the_title_and_other_endings_are_refused(tmp_path: Path) -> None:
    spec = make_spec("tomita", "regular-gpt", {"task": {"index": 3}, "model": {"d_model": 8, "num_heads": 2}})
    run = Run(RunFolder(tmp_path), spec, spec.make_model().eval(), 0)
    page = write_analysis(run, tmp_path / "inside.html", length=20)
    assert "Inside regular-gpt on tomita index=3, seed 0" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "few"), [("cycle-navigation", True), ("modular-arithmetic", False)])
def test_every_state_is_drawn_under_the_name_of_its_element(name: str, few: bool) -> None:
    task = make_task(name)
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    blocks = block_states(model, task, task.sample(5, 19, torch.Generator().manual_seed(0)).inputs)
    components = principal_components(blocks.states)
    for chart in (element_chart(blocks, components), level_chart(blocks, components)):
        drawn = values_in(chart.to_dict())
        assert [value["level"] for value in drawn] == blocks.levels.tolist()
        for value, element in zip(drawn, blocks.elements.tolist(), strict=True):
            word = "" if value["element"] == "ε" else value["element"]
            assert blocks.monoid.element(task.encode(word).tolist() if word else []) == element
    x, y = (element_chart(blocks, components).to_dict()["encoding"][axis]["scale"]["domain"] for axis in "xy")
    assert x == y, "what has little variance looks like it"
    color = element_chart(blocks, components).to_dict()["encoding"]["color"]
    assert (color["legend"] is not None) == few


def test_states_of_every_level_stand_apart_from_those_of_others() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=8, num_heads=2)
    blocks = block_states(model, task, task.sample(5, 19, torch.Generator().manual_seed(0)).inputs)
    drawn = values_in(level_chart(blocks, principal_components(blocks.states)).to_dict())
    assert {round(value["spread"]) for value in drawn} == set(range(1, blocks.num_levels + 1))
    assert all(abs(value["spread"] - value["level"]) <= 0.25 for value in drawn)


def test_numbers_of_clusters_fall_with_distance() -> None:
    linkage = torch.tensor([0.1, 0.1, 5.0], dtype=torch.float64)
    chart = cluster_chart([LevelClusters(1, 4, 2, linkage, 0.1, 5.0)], distance=1.0, monoid_size=2).to_dict()
    drawn = [value for value in values_in(chart) if "level" in value]
    assert {value["clusters"] for value in drawn if value["distance"] < 0.1} == {4}
    assert {value["clusters"] for value in drawn if 0.1 < value["distance"] < 5} == {2}
    assert {value["clusters"] for value in drawn if value["distance"] > 5} == {1}


def test_the_field_is_drawn_from_the_oldest_symbol() -> None:
    cumulative = torch.tensor([[1.0, 0.5], [1.0, 0.7]])
    drawn = [value for value in values_in(field_chart(cumulative).to_dict()) if "low" in value]
    assert [(value["position"], value["share"]) for value in drawn] == [(1, 1.0), (2, 0.6)]
    assert 0.5 <= drawn[1]["low"] < drawn[1]["high"] <= 0.7
    long = torch.arange(2001, 0, -1, dtype=torch.float64).expand(3, -1) / 2001
    drawn = [value for value in values_in(field_chart(long).to_dict()) if "low" in value]
    assert len(drawn) <= 501
    assert (drawn[0]["position"], drawn[-1]["position"]) == (1, 2001)
    assert all(abs(value["share"] - (2002 - value["position"]) / 2001) < 1e-3 for value in drawn)


def test_replacements_are_drawn_at_their_position() -> None:
    drawn = values_in(flip_chart([FlipPoint(0, 10, 10, 5), FlipPoint(4, 10, 0, 5)], length=5).to_dict())
    model = {value["position"]: value["changed"] for value in drawn if value["answer"] == "model's answer"}
    right = {value["position"]: value["changed"] for value in drawn if value["answer"] == "right answer"}
    assert model == {5: 1.0, 1: 0.0}
    assert right == {5: 0.5, 1: 0.5}
