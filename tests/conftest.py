"""Shared set-up of the tests: one torch thread, no deadlines (a busy machine is not a failure), CPU seconds.

Hooks and fixtures import the package and torch themselves: the process that hands out the tests to others runs none of
them, and starts these others seconds sooner.
"""

import gc
import os
import signal
import subprocess
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING

import pytest
from cost import NOT_QUICK, by_file, cpu_seconds, largest, name_of, sampled, stop_fork_server
from hypothesis import settings

if TYPE_CHECKING:
    from one_renderer import OneRenderer

    from lengthwise.experiment import Experiment, Scale
    from lengthwise.runs.pools.base import Pool, PoolOptions

collect_ignore = ["new_kind.py"]
"""Modules that are not collected for doctests, because importing them registers members for all other tests."""

settings.register_profile("lengthwise", deadline=None, derandomize=True, max_examples=15)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=200)  # of `make test-slow`
settings.load_profile("lengthwise")  # pytest loads the profile of `--hypothesis-profile` after this
gc.disable()  # until all is collected: what is imported stays


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Check shapes and types, where they are checked at all, in the first case of each test only.

    The first slow case is checked as well. First cases that are not slow are `quick`, except in `NOT_QUICK`.
    """
    leave_to_slow_tests(items)
    seen = set()
    for item in items:
        name, is_slow = name_of(item.nodeid), "slow" in item.keywords
        if (name, is_slow) in seen:
            item.add_marker("unchecked")
        elif not name.startswith(NOT_QUICK) and not is_slow:
            item.add_marker("quick")
        seen.add((name, is_slow))


def leave_to_slow_tests(items: list[pytest.Item]) -> None:
    """Mark the cases of tests marked `sampled` that do not run by default as slow."""
    cases: dict[tuple[str, str], tuple[pytest.Mark, dict[str, dict[str, str]]]] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark and isinstance(item, pytest.Function) and "slow" not in item.keywords:
            parameters = {name: repr(value) for name, value in item.callspec.params.items()}
            cases.setdefault((name_of(item.nodeid), str(mark)), (mark, {}))[1][item.nodeid] = parameters
    left = {
        name
        for mark, of_test in cases.values()
        for name in of_test.keys() - sampled(of_test, *mark.args, **mark.kwargs)
    }
    for item in items:
        if item.nodeid in left:
            item.add_marker("slow")


def made_once(make: "Callable[..., Experiment]") -> "Callable[..., Experiment]":
    """The same experiment whenever it is made at a scale, with the same text in the environment."""
    from lengthwise.studies.text import FOLDER

    @cache
    def made(scale: "Scale", text: str | None) -> "Experiment":
        return make(scale)

    return wraps(make)(lambda scale="small": made(scale, os.environ.get(FOLDER)))


def pytest_collection_finish() -> None:
    """Experiments are made once in a worker: those of whole papers take seconds.

    And what was imported stays: every collection of garbage would look through it again.
    """
    import torch
    from altair.utils.schemapi import disable_debug_mode

    from lengthwise.experiment import EXPERIMENTS

    torch.set_num_threads(1)
    disable_debug_mode()  # a chart is checked when it becomes a specification, and not each of its parts before, too
    EXPERIMENTS._members.update({name: made_once(make) for name, make in EXPERIMENTS.items()})
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Shapes and types of arguments are checked in a test's first calls, except in tests marked `unchecked`."""
    from checked_types import begin

    begin(is_checked=item.get_closest_marker("unchecked") is None)
    try:
        return (yield)
    finally:
        begin(is_checked=True)


class Docstrings:
    """Examples in docstrings have fewer strings and steps: hooks and fixtures of this file are for the tests here."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        from fewer_steps import train_for_fewer_steps
        from fewer_strings import draw_fewer_strings

        with pytest.MonkeyPatch.context() as patch:
            if isinstance(item, pytest.DoctestItem):
                draw_fewer_strings(patch.setattr)
                train_for_fewer_steps(patch.setattr)
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Docstrings())


STARTED = pytest.StashKey[float]()


def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[STARTED] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown" and STARTED in item.stash:
        report.user_properties.append(("cpu_seconds", cpu_seconds() - item.stash[STARTED]))
    return report


def pytest_sessionfinish() -> None:
    stop_fork_server()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the CPU seconds of all processes; with `--durations=N` also of the N costliest files and tests (0: all)."""
    seconds: dict[str, float] = {}
    for report in terminalreporter.stats.get("", []):
        for name, value in report.user_properties:
            if name == "cpu_seconds":
                seconds[report.nodeid] = value
    most = terminalreporter.config.getoption("durations")
    for line in [] if most is None else largest(by_file(seconds), most) + largest(seconds, most):
        terminalreporter.write_line(line)
    terminalreporter.write_line(
        f"tests took {cpu_seconds():.0f} CPU s, {sum(seconds.values()):.0f} without imports and collection"
    )


@pytest.fixture(scope="session")
def renderer() -> "Generator[OneRenderer]":
    from one_renderer import OneRenderer

    renderer = OneRenderer()
    yield renderer
    renderer.close()


@pytest.fixture(autouse=True)
def one_renderer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module whose tests start processes for pictures as users do replaces this fixture by its own."""
    import lengthwise.pictures as pictures_module

    def render(requests: str) -> subprocess.CompletedProcess[str]:
        return request.getfixturevalue("renderer")(requests)

    monkeypatch.setattr(pictures_module, "_run_renderer", render)


@pytest.fixture
def handled_signals() -> Generator[None]:
    """For tests of signals, which are ignored where the tests run in the background."""
    from command import handle_signals

    before = handle_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def fewer_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    from fewer_strings import draw_fewer_strings

    draw_fewer_strings(monkeypatch.setattr)


@pytest.fixture
def fewer_long_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of 10,000 symbols, for nets that err there alone."""
    from fewer_strings import draw_fewer_strings

    draw_fewer_strings(monkeypatch.setattr, lengths=(40, 500, 10_000))


@pytest.fixture
def fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from fewer_steps import train_for_fewer_steps

    train_for_fewer_steps(monkeypatch.setattr)


@pytest.fixture
def small_plan(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Runs are measured on few and short strings, unless they say otherwise."""
    from lengthwise.evaluation.plan import EvaluationPlan

    small = {"dense": (7, 9), "dense_strings": 4, "long": ((20, 4),), "structured": ((12, 2),)}
    for name, value in small.items():
        monkeypatch.setattr(EvaluationPlan.model_fields[name], "default", value)
    EvaluationPlan.model_rebuild(force=True)
    yield
    monkeypatch.undo()
    EvaluationPlan.model_rebuild(force=True)


@pytest.fixture
def runs_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of experiments are trained here, one by one: other fixtures, such as `fewer_strings`, hold in no worker."""
    from lengthwise.runs.pools.base import POOLS, Pool

    @contextmanager
    def open_pool(options: "PoolOptions") -> "Generator[Pool]":
        with ThreadPoolExecutor(1) as executor:
            yield Pool(executor, held="fail")

    monkeypatch.setitem(POOLS._members, "local", open_pool)
