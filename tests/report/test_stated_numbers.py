"""Numbers in the README and on the front page are those of the experiments and of the recorded pages."""

import re
from pathlib import Path

import pytest

from lengthwise.evaluation.interval import wilson_interval
from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.leaderboard.experiments.leaderboard import ENTRANTS, ROWS
from lengthwise.studies.leaderboard.experiments.state_tracking import SOLVABLE, UNSOLVABLE

ROOT = Path(__file__).parents[2]


def numbers(file: str, pattern: str) -> set[str]:
    """Return the numbers that a pattern finds in a text, which must contain it."""
    text = " ".join((ROOT / file).read_text(encoding="utf-8").split())
    stated = set(re.findall(pattern, text))
    assert stated, f"{file} no longer says {pattern}"
    return stated


@pytest.mark.parametrize(
    ("file", "pattern", "number"),
    [
        ("README.md", r"compares (\d+) models on \d+ tasks", len(ENTRANTS)),
        ("README.md", r"models on (\d+) tasks", len(ROWS)),
        ("lengthwise/studies/leaderboard/NOTES.md", r"has \d+ tasks, (\d+) models", len(ENTRANTS)),
        ("lengthwise/studies/leaderboard/NOTES.md", r"has (\d+) tasks, \d+ models", len(ROWS)),
        ("docs/index.md", r"proved on all (\d+) tasks", len(ROWS)),
        ("README.md", r"word problems of (\d+) groups", len(SOLVABLE | UNSOLVABLE)),
    ],
)
def test_what_is_counted_in_the_text_is_there(file: str, pattern: str, number: int) -> None:
    assert numbers(file, pattern) == {f"{number}"}


@pytest.mark.parametrize(
    ("file", "pattern"),
    [("README.md", r"S_5 is\s+proved after (\d+) CPU seconds:"), ("docs/index.md", r"S_5 takes \[(\d+) CPU seconds\]")],
)
def test_seconds_of_a_word_problem_are_those_of_its_page(file: str, pattern: str) -> None:
    page = (ROOT / "docs/results/within-a-minute-tasks.md").read_text(encoding="utf-8")
    (median,) = re.findall(r"^\| S_5 \| 5 of 5 \| ([\d.]+) \|", page, re.MULTILINE)
    assert numbers(file, pattern) == {f"{float(median):.0f}"}


def test_the_range_of_medians_is_the_range_on_their_page() -> None:
    page = (ROOT / "docs/results/within-a-minute-tasks.md").read_text(encoding="utf-8")
    medians = [float(median) for median in re.findall(r"^\| [^|]+ \| \d+ of \d+ \| ([\d.]+) \|", page, re.MULTILINE)]
    assert len(medians) > len(ROWS) / 2
    stated = numbers("docs/command-line.md", r"\[median time of a task\]\([\w/.-]+\) is ([\d.]+ to [\d.]+) CPU seconds")
    assert stated == {f"{min(medians)} to {max(medians)}"}


def test_the_table_of_the_readme_has_the_nets_of_the_demo() -> None:
    """That all of them are proved at the first attempt, without an error, is in `test_what_the_demo_claims`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w -]+)((?: \| 100 %){5}) \| (?:50|20) % \| proved \| 1 \|$", readme, re.MULTILINE)
    cells = EXPERIMENTS["demo"]("small").cells
    assert {name.replace(" ", "-") for name, _ in rows} == {cell.row.replace(" ", "-") for cell in cells}


def test_the_confidence_of_32_right_answers_is_the_interval_of_wilson() -> None:
    low, _ = wilson_interval(32, 32)
    stated = numbers("README.md", r"If all 32 are answered correctly, the accuracy is at least (\d+) % with")
    assert stated == {f"{100 * low:.0f}"}
