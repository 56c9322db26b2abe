"""The seconds of a run, with a clock that the tests set."""

from contextlib import suppress

import pytest

from lengthwise.runs import clock as clock_module
from lengthwise.runs.clock import Clock
from lengthwise.runs.result import RunStatus


class Seconds:
    """The wall and CPU seconds of a process, which pass as a test lets them."""

    def __init__(self) -> None:
        self.wall, self.cpu = 1_000.0, 500.0

    def pass_by(self, wall: float, cpu: float) -> None:
        self.wall += wall
        self.cpu += cpu

    def perf_counter(self) -> float:
        return self.wall

    def process_time(self) -> float:
        return self.cpu


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    passed = Seconds()
    monkeypatch.setattr(clock_module, "time", passed)
    return passed


def spent(clock: Clock) -> tuple[float, float]:
    status = clock.status("training", 7, "so far")
    assert (status.status, status.step, status.message) == ("training", 7, "so far")
    return status.wall_seconds, status.cpu_seconds


def test_seconds_continue_from_an_earlier_status(seconds: Seconds) -> None:
    clock = Clock(RunStatus(wall_seconds=20.0, cpu_seconds=10.0), "cpu")
    assert spent(clock) == (20.0, 10.0)
    seconds.pass_by(3.0, 2.0)
    assert spent(clock) == (23.0, 12.0)
    with clock.stopped():
        seconds.pass_by(100.0, 50.0)
    assert spent(clock) == (23.0, 12.0)
    with suppress(ZeroDivisionError), clock.stopped():
        seconds.pass_by(100.0, 50.0)
        raise ZeroDivisionError
    seconds.pass_by(1.0, 1.0)
    assert spent(clock) == (24.0, 13.0)
    clock.rewind()
    assert spent(clock) == (20.0, 10.0)


@pytest.mark.parametrize(
    ("earlier", "devices"),
    [("", "b"), ("a", "a, then b"), ("b", "b"), ("a, then b", "a, then b"), ("b, then a", "b, then a, then b")],
)
def test_devices_are_listed_in_order(earlier: str, devices: str) -> None:
    assert Clock(RunStatus(device=earlier), "b").status("training", 0).device == devices
