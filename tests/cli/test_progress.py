"""Pages that are written while runs run."""

from pathlib import Path

import pytest
from command import exit_code

from lengthwise.cli import progress
from lengthwise.cli.experimenting import Page
from lengthwise.runs.pools.outcome import Outcome, finished
from lengthwise.runs.progress import Progress

ENDED = Progress("run", "done", 10, 10)


def test_a_page_is_written_when_a_run_has_ended_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, times = [0.0], list[float]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    listener = progress.page_updates(lambda: times.append(clock[0]))
    for clock[0], event in (
        (progress.PAGE_EVERY - 1, ENDED),
        (progress.PAGE_EVERY + 1, ENDED._replace(phase="training")),
        (progress.PAGE_EVERY + 2, ENDED),
        (progress.PAGE_EVERY + 3, ENDED),
        (2 * progress.PAGE_EVERY + 2, ENDED),
    ):
        listener(event)
    assert times == [progress.PAGE_EVERY + 2, 2 * progress.PAGE_EVERY + 2]


def test_pages_are_written_of_what_is_finished_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PAGE_EVERY", 0.0)
    counts = list[int]()

    def counted(self: Page, outcomes: list[Outcome] | None = None) -> list[Path]:
        outcomes = outcomes or finished(self.experiment.specs, self.runs, self.experiment.plans)
        counts.append(sum(outcome.result is not None for outcome in outcomes))
        return []

    monkeypatch.setattr(Page, "write", counted)
    folders = ("--runs", str(tmp_path / "runs"), "--pages", str(tmp_path))
    assert exit_code("reproduce", "linear-rnn/ours", "--scale", "smoke", "--workers", "1", *folders) == 0
    assert counts == [1, 2, 3, 3]
