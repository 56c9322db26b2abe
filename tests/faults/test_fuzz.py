"""Requests of `fuzz.py`, in a process of its own: it forks, which processes with threads should not."""

import multiprocessing
from contextlib import chdir
from pathlib import Path

import pytest
from fuzz import finding, fuzz

from lengthwise.runs.pools.local import PRELOADED

pytestmark = pytest.mark.unchecked


def run(folder: Path, count: int) -> None:
    with chdir(folder), (folder / "printed").open("w", encoding="utf-8") as file:
        fuzz(count, seed=0, say=lambda line: file.write(f"{line}\n"))


@pytest.mark.parametrize("count", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_requests_made_up_at_random_end_with_a_sentence(count: int, tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # there is one server
    process = context.Process(target=run, args=(tmp_path, count))
    process.start()
    process.join()
    printed = (tmp_path / "printed").read_text(encoding="utf-8")
    assert process.exitcode == 0
    assert printed.startswith("kind"), printed
    assert printed.splitlines()[-1].split()[:2] == ["all", str(count)]


@pytest.mark.parametrize(
    ("code", "errors", "what"),
    [
        (0, "", ""),
        (2, "lengthwise: x: expected y, got z\n", ""),
        (1, "a warning\nlengthwise: no space left\n", ""),
        (1, "", "no sentence"),
        (2, "expected y\n", "no sentence"),
        (0, "Traceback (most recent call last):\n", "a traceback"),
        (1, "lengthwise: out of memory\n", "out of memory"),
        (3, "lengthwise: x\n", "exit code 3"),
        (-9, "", "ended by SIGKILL"),
        (2, "lengthwise: " + "x" * 5_000 + "\n", "an endless sentence"),
    ],
)
def test_what_is_a_finding(code: int, errors: str, what: str) -> None:
    assert finding(code, errors).partition(":")[0] == what
