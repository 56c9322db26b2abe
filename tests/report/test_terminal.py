"""What a terminal shows, at any width."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from synthetic_runs import synthetic_run

from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.report.pages.terminal import print_curve, print_grid, print_results
from lengthwise.runs.execute import Progress


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
def test_bad_results_are_shown_whole(width: int) -> None:
    screen = console(width)
    print_results(screen, [synthetic_run(num_correct=lambda length, n: n // 3).result], "Title")
    text = " ".join(quoted(screen).split())
    assert text.count("33.20 %") >= 3
    assert "50.00 %" in text


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
    assert "of 500 points; --csv FILE writes all" in text


def test_progress_is_plain_lines_without_a_terminal() -> None:
    from lengthwise.report.pages.terminal import progress_display

    screen = console(80)
    with progress_display(screen) as listener:
        for step in range(10, 101, 10):
            listener(Progress("run", "training", step, 1000, "loss 0.5"))
        listener(Progress("run", "done", 1000, 1000))
    lines = quoted(screen).splitlines()
    assert lines == ["run: training 10/1000 loss 0.5", "run: training 100/1000 loss 0.5", "run: done 1000/1000"]
