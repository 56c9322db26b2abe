"""What tests cost in CPU seconds, including their child processes, and which cases run by default."""

import os
import resource
import time
import zlib
from collections.abc import Mapping
from multiprocessing.forkserver import _forkserver
from pathlib import Path

NOT_QUICK = ("tests/faults/", "tests/test_examples.py", "tests/contracts/test_experiment_contract.py")
"""Tests that `make quick` leaves out: they start processes, or train nets of every kind."""


def name_of(nodeid: str) -> str:
    """The test's name without its case: ``tests/ops/test_scan.py::test_forms[3-float32]`` without the brackets."""
    return nodeid.partition("[")[0]


def sampled(cases: Mapping[str, Mapping[str, object]], every: int | None = None) -> set[str]:
    """The names of the cases of a test that are run by default: every n-th, or enough that each value is in one.

    A case has a value of each parameter. Which values are in one case is arbitrary, and always the same.
    """
    if every is not None:
        return set(list(cases)[::every])
    chosen, seen = set(), set()
    for name in sorted(cases, key=lambda name: zlib.crc32(name.encode())):
        values = set(cases[name].items())
        if values - seen:
            chosen.add(name)
            seen |= values
    return chosen


def by_file(seconds: Mapping[str, float]) -> dict[str, float]:
    """What each file's tests took together, fixtures included."""
    sums: dict[str, float] = {}
    for nodeid, value in seconds.items():
        file = nodeid.partition("::")[0]
        sums[file] = sums.get(file, 0.0) + value
    return sums


def largest(seconds: Mapping[str, float], count: int) -> list[str]:
    """Lines for the largest of them, all with `count` 0."""
    names = sorted(seconds, key=seconds.__getitem__, reverse=True)
    return [f"{seconds[name]:7.1f} CPU s  {name}" for name in names[: count or None]]


def cpu_seconds() -> float:
    """Of this process, of its children that have ended, and of the fork server with all that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _fork_server_seconds()


def _fork_server_seconds() -> float:
    """From Linux's ``/proc``; elsewhere these seconds are counted when the tests end, and not test by test."""
    status = Path(f"/proc/{_forkserver._forkserver_pid}/stat")
    if not status.exists():
        return 0.0
    ticks = status.read_text(encoding="utf-8").rpartition(")")[2].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def stop_fork_server() -> None:
    """So that its CPU seconds are among those of the children that have ended."""
    _forkserver._stop()
