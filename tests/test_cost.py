"""Tests are dealt longest first, and those known to take long exist."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import cost
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 9))
def test_every_worker_begins_with_its_part_of_the_long_tests(is_long: list[bool], num_workers: int) -> None:
    nodeids = [f"{'long' if long else 'short'}[{index}]" for index, long in enumerate(is_long)]  # each a file
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "LONG", {"long": "trains"})
        order = cost.deal(nodeids, num_workers)
    assert sorted(order) == list(range(len(nodeids)))
    ends = [len(nodeids) * worker // num_workers for worker in range(num_workers + 1)]
    shares = [[is_long[index] for index in order[start:stop]] for start, stop in itertools.pairwise(ends)]
    num_long = [sum(share) for share in shares]
    if sum(is_long) * 2 * num_workers <= len(is_long):
        assert max(num_long) - min(num_long) <= 1
        assert all(share == sorted(share, reverse=True) for share in shares)


@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_long_tests_of_a_file_are_of_one_worker(num_workers: int) -> None:
    nodeids = [
        f"{file}.py::{kind}[{index}]" for index in range(40) for file in "abc" for kind in ("long", "short", "x")
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "LONG", {f"{file}.py::long": "trains" for file in "abc"})
        order = cost.deal(nodeids, num_workers)
    assert sorted(order) == list(range(len(nodeids)))
    ends = [len(nodeids) * worker // num_workers for worker in range(num_workers + 1)]
    files = [
        {nodeids[i][0] for i in order[start:stop] if "long" in nodeids[i]} for start, stop in itertools.pairwise(ends)
    ]
    assert sum(map(len, files)) == 3


@pytest.mark.parametrize("name", cost.LONG)
def test_long_tests_exist(name: str) -> None:
    file, _, function = name.partition("::")
    assert re.search(rf"^def {function}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_seconds_of_children_count() -> None:
    code = "import time; sum(range(10**6)); print(time.process_time())"
    before = cost.cpu_seconds()
    child = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert cost.cpu_seconds() - before >= child - 0.01  # a tick of the kernel's clock


def test_files_are_summed_and_the_largest_come_first() -> None:
    seconds = {"a.py::one[x::y]": 1.0, "b.py::two": 2.5, "a.py::three": 2.0}
    assert cost.by_file(seconds) == {"a.py": 3.0, "b.py": 2.5}
    assert [line.split()[-1] for line in cost.largest(seconds, 2)] == ["b.py::two", "a.py::three"]
    assert len(cost.largest(seconds, 0)) == 3


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_each_value_is_in_a_case_that_is_run(sizes: list[int]) -> None:
    cases = {str(case): dict(zip("abc", case, strict=False)) for case in itertools.product(*map(range, sizes))}
    chosen = cost.sampled(cases)
    values = {value for case in cases.values() for value in case.items()}
    assert {value for name in chosen for value in cases[name].items()} == values
    assert max(sizes) <= len(chosen) <= 1 + sum(size - 1 for size in sizes)
    assert cost.sampled(cases, 3) == set(list(cases)[::3])
