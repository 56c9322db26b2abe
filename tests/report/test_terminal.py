"""What a terminal shows, at any width."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from synthetic_runs import synthetic_run

from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.printing import print_grid
from lengthwise.report.pages.terminal import print_curve, print_results
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import make_spec


def console(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=False)


def quoted(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


words = st.lists(st.text("abc%.0123456789", min_size=1, max_size=12), min_size=1, max_size=3).map(" ".join)


@given(st.lists(st.lists(words, min_size=3, max_size=3), min_size=1, max_size=4), st.integers(15, 120))
def test_no_word_of_a_table_is_lost(rows: list[list[str]], width: int) -> None:
    screen = console(width)
    print_grid(screen, "Title", ("one", "two", "three"), rows)
    text = quoted(screen)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    for row in rows:
        for word in " ".join(row).split():
            assert word in text


@pytest.mark.parametrize("width", [50, 80, 120])
def test_bad_results_are_printed_whole(width: int) -> None:
    screen = console(width)
    print_results(screen, [synthetic_run(num_correct=lambda length, n: n // 3).result], "Title")
    text = " ".join(quoted(screen).split())
    assert text.count("33.20 %") >= 3
    assert "50.00 %" in text


def test_brackets_are_printed_as_they_are() -> None:
    for pattern in ("[ab]*abb", "b*[/a]b"):
        screen = console(120)
        print_results(
            screen, [synthetic_run("regex", {"task": {"pattern": pattern, "alphabet": "ab/"}}).result], "Title"
        )
        assert f"best shallow baseline: regex pattern={pattern}" in quoted(screen)


@pytest.mark.parametrize(("width", "bars"), [(60, False), (80, True)])
def test_a_curve_fits_its_terminal_and_has_bars_where_they_fit(width: int, bars: bool) -> None:
    points = tuple(
        LengthPoint(length=41 + n, num_strings=256, num_correct=256 - 64 * n, baseline=0.5) for n in range(3)
    )
    screen = console(width)
    print_curve(screen, LengthCurve(protocol="independent", points=points), trained_to=40)
    lines = quoted(screen).splitlines()
    assert all(len(line.rstrip()) <= width for line in lines[:6])
    rows = [line.split() for line in lines if "/256" in line]
    assert [row[1] for row in rows] == ["256/256", "192/256", "128/256"]
    assert [row[-1] for row in rows] == (["#" * 20, "#" * 15, "#" * 10] if bars else ["%"] * 3)
    assert "  family: random" in lines
    assert "  chance: 50.00 %" in lines


def test_a_table_for_a_narrow_terminal_breaks_between_its_items() -> None:
    screen = console(40)
    results = [synthetic_run(seed=seed, num_correct=lambda length, n: n // 3).result for seed in (0, 1)]
    print_results(screen, results, "Title")
    assert quoted(screen).splitlines()[1:5] == [
        "- task parity; seed 0; mean 33.20 %",
        "  lowest 33.20 % at 41; 1,000 33.20 %",
        "  100,000 31.25 %",
        "  structured 31.25 % at 500, constant",
    ]


def test_a_long_curve_shows_last_lowest_and_every_family() -> None:
    families = ("constant", "alternating", "periodic", "few-runs", "sparse")
    points = tuple(
        LengthPoint(length=n, num_strings=4, num_correct=4 - (n == 77), baseline=0.5, family=family)
        for n in range(41, 141)
        for family in families
    )
    screen = console(100)
    print_curve(screen, LengthCurve(protocol="structured", points=points), trained_to=40)
    text = quoted(screen)
    assert all(family in text for family in families)
    assert "\n77 " in text
    assert "\n140 " in text
    assert "of 500 points are shown" in text


@pytest.mark.parametrize("is_terminal", [False, True])
def test_decisions_stay_on_the_screen(is_terminal: bool) -> None:
    from lengthwise.report.pages.terminal import progress_display

    screen = Console(file=io.StringIO(), width=100, force_terminal=is_terminal)
    spec = make_spec("parity", "regular-gpt", {}, goal="proved")
    with progress_display(screen, [spec]) as listener:
        listener(Progress("run-1", "training", 0, 1000, "attempt 1: seed 0", is_decision=True))
        listener(Progress("run-1", "training", 10, 1000, "loss 0.5"))
        listener(Progress("run-1", "training", 10, 1000, "attempt 2: seed 1", is_decision=True))
    text = quoted(screen)
    assert "run-1: attempt 1: seed 0\n" in text
    assert "run-1: attempt 2: seed 1\n" in text
    assert "After step" not in text, "the loss decides when training changes"


def test_progress_is_plain_lines_without_a_terminal() -> None:
    from lengthwise.report.pages.terminal import progress_display

    screen = console(80)
    spec = make_spec("parity", "regular-gpt", {"train": {"steps": 1000}})
    with progress_display(screen, [spec, spec]) as listener:
        for step in range(10, 101, 10):
            listener(Progress("run", "training", step, 1000, "loss 0.5"))
        listener(Progress("run", "done", 1000, 1000))
    about, *lines = quoted(screen).splitlines()
    assert about.startswith("After step 500 training adds state noise of 0.3 (before: 0.1) and consistency loss x 1")
    assert lines == [
        "run: training 10/1000 loss 0.5",
        "run: training 100/1000 loss 0.5",
        "run: done 1000/1000 (1 of 2 runs)",
    ]


@pytest.mark.parametrize(("num_runs", "stays"), [(1, True), (20, True), (21, False)])
def test_of_many_runs_those_that_are_done_are_counted_and_leave_the_screen(num_runs: int, stays: bool) -> None:
    from lengthwise.report.pages.terminal import progress_display

    screen = Console(file=io.StringIO(), width=100, force_terminal=True)
    specs = [make_spec("parity", "regular-gpt", {}, seed=seed) for seed in range(num_runs)]
    with progress_display(screen, specs) as listener:
        listener(Progress("first-0", "done", 1000, 1000))
        listener(Progress("other-0", "training", 10, 1000))
    last = quoted(screen).rpartition("runs ")[2] if num_runs > 1 else quoted(screen)
    assert ("first" in last) == stays
    assert "other" in last
    assert (f"1/{num_runs}" in last) == (num_runs > 1)
