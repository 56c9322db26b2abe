"""What tests cost in CPU seconds, including their child processes, and which cases run by default."""

import os
import resource
import time
import zlib
from collections.abc import Mapping
from itertools import combinations
from multiprocessing.forkserver import _forkserver
from pathlib import Path

NOT_QUICK = (
    *("tests/certification/", "tests/cli/", "tests/constructions/memorization/", "tests/export/", "tests/faults/"),
    *("tests/learning/", "tests/playground/", "tests/report/", "tests/runs/", "tests/studies/", "tests/training/"),
    *("tests/contracts/test_experiment_contract.py", "tests/contracts/test_export_contract.py"),
    *("tests/test_examples.py", "tests/test_notebooks.py", "tests/test_wheel.py"),
)
"""Tests that `make quick` leaves out: they start processes, train or certify nets, or make whole pages."""


def name_of(nodeid: str) -> str:
    """The test's name without its case: ``tests/ops/test_scan.py::test_forms[3-float32]`` without the brackets."""
    return nodeid.partition("[")[0]


def sampled(cases: Mapping[str, Mapping[str, object]], every: int | None = None, strength: int = 1) -> set[str]:
    """Return the names of the cases of a test that run by default.

    These are every n-th case, or enough cases that each value of a parameter occurs in one of them. With `strength` 2
    any two values of two parameters occur together. Which values share a case is arbitrary, and always the same.
    """
    if every is not None:
        return set(list(cases)[::every])
    order = sorted(cases, key=lambda name: zlib.crc32(name.encode()))
    together = {name: set(combinations(sorted(case.items()), min(strength, len(case)))) for name, case in cases.items()}
    chosen, left = set(), set().union(*together.values())
    while left:
        name = max(order, key=lambda name: len(together[name] & left))
        chosen.add(name)
        left -= together[name]
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
