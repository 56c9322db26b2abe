"""CPU seconds of tests are summed and ranked, and of many cases enough are run."""

import itertools
import subprocess
import sys

import cost
from hypothesis import given
from hypothesis import strategies as st


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


@given(st.lists(st.integers(1, 4), min_size=2, max_size=4))
def test_each_pair_of_values_is_in_a_case_that_is_run(sizes: list[int]) -> None:
    cases = {str(case): dict(zip("abcd", case, strict=False)) for case in itertools.product(*map(range, sizes))}
    chosen = cost.sampled(cases, strength=2)
    pairs = {pair for case in cases.values() for pair in itertools.combinations(case.items(), 2)}
    assert {pair for name in chosen for pair in itertools.combinations(cases[name].items(), 2)} == pairs
    first, second, *_ = sorted(sizes, reverse=True)
    assert first * second <= len(chosen) <= len(pairs)
