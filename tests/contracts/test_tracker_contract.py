"""Promises of every registered tracker, whatever its name, with stand-ins for the packages that it declares."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from lengthwise.registry import is_of_package
from lengthwise.runs.tracking.base import TRACKERS, About, Entry, Measured
from lengthwise.runs.tracking.replay import live_tracking

ENTRIES: list[Entry] = [(8_761, {"train/loss": 0.34567, "train/rate": 0.00125}), (8_762, {"train/loss": 0.23456})]
MEASURED = Measured(
    {"result/accuracy": 0.98765}, {"result/level": "proved-up-to-here"}, {"by_length": [(4_321, 0.87654)]}
)
NUMBERS = ("train/loss", "train/rate", "8761", "8762", "0.34567", "0.00125", "0.23456")
RESULTS = ("result/accuracy", "0.98765", "result/level", "proved-up-to-here", "by_length", "4321", "0.87654", "8763")


@pytest.fixture(params=list(TRACKERS))
def name(request) -> str:
    return request.param


@pytest.fixture
def about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> About:
    """A run to track, from another current folder than the tracker's own."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return About("some-run", {"train.steps": 7_654, "task.name": "some-task"}, "some-project", tmp_path / "tracked")


@pytest.fixture
def modules(name: str, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, MagicMock]:
    """Stand-ins for the modules of the tracker, which record all calls."""
    stand_ins = {module: MagicMock(name=module) for module in TRACKERS[name].modules}
    for module, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, module, stand_in)
    return stand_ins


def calls(modules: Mapping[str, MagicMock]) -> str:
    return "\n".join(str(call) for module in modules.values() for call in module.mock_calls)


def test_its_packages_are_an_extra_of_its_name(name: str) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    if is_of_package(TRACKERS[name]) and TRACKERS[name].modules:
        assert project["project"]["optional-dependencies"][name]


def test_a_package_that_is_not_installed_is_one_sentence(name: str, about: About, monkeypatch) -> None:
    for module in TRACKERS[name].modules:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            for begin in (
                TRACKERS[name].load,
                lambda: TRACKERS[name](about),
                live_tracking(name, about.folder).__enter__,
            ):
                with pytest.raises(ValueError, match=rf"^tracker: .*; pip install 'lengthwise\[{name}\]'$"):
                    begin()
    assert not about.folder.exists()


def test_settings_numbers_and_results_are_sent(name: str, about: About, modules: Mapping[str, MagicMock]) -> None:
    tracker = TRACKERS[name](about)
    opened = calls(modules)
    assert tracker.location
    assert "\n" not in tracker.location
    tracker.log([])
    tracker.log(ENTRIES)
    logged = calls(modules).removeprefix(opened)
    tracker.summarize(MEASURED, 8_763)
    summarized = calls(modules).removeprefix(opened + logged)
    num_calls = len(calls(modules))
    tracker.finish()
    if modules:
        assert not [text for text in ("some-run", "train.steps", "7654", "some-task") if text not in opened]
        assert not [text for text in NUMBERS if text not in logged]
        assert not [text for text in RESULTS if text not in summarized]
        assert len(calls(modules)) > num_calls, "it is closed"
    assert not list(Path().iterdir()), "files belong in the folder that it was given"


def test_a_run_that_measured_nothing_is_closed(name: str, about: About, modules: Mapping[str, MagicMock]) -> None:
    tracker = TRACKERS[name](about)
    tracker.summarize(Measured({}, {}, {}), 0)
    tracker.finish()
    assert not modules or calls(modules)


def test_two_runs_are_two_of_the_tracker(name: str, about: About, modules: Mapping[str, MagicMock]) -> None:
    first = TRACKERS[name](about)
    opened = calls(modules)
    second = TRACKERS[name](about._replace(run_id="another-run"))
    assert not modules or "another-run" in calls(modules).removeprefix(opened)
    first.finish()
    second.log(ENTRIES)
    second.finish()
