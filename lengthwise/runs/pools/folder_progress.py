"""Progress of runs that are executed elsewhere, read from their folders."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from lengthwise.runs.folder import RunFolder
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.result import ENDINGS
from lengthwise.runs.spec import RunSpec

INSPECTION_SECONDS = 2.0
"""Seconds between two inspections of the folders."""
MAX_LINE = 4_000
"""The number of bytes that are read at the end of a journal. The last line is always shorter."""


class Follower:
    """A reporter of the progress of runs to a listener.

    It reports the last whole line of a run's metrics, or that the run is being measured. Metrics reach the disk some
    kilobytes at a time, or with a checkpoint, so the report is a little late. The metrics contain the loss of each
    step, whereas a run in this process reports its running loss.
    """

    def __init__(self, root: Path, listener: Listener) -> None:
        self._root, self._listener = root, listener
        self._reported: dict[str, Progress] = {}
        self._next = time.monotonic() + INSPECTION_SECONDS

    def update(self, specs: Iterable[RunSpec]) -> None:
        """Inspect the folders of these runs and report new progress, unless the last inspection is too recent."""
        if time.monotonic() < self._next:
            return
        for spec in specs:
            progress = progress_of(spec, self._root)
            if progress is not None and self._reported.get(spec.id) != progress:
                self._reported[spec.id] = progress
                self._listener(progress)
        self._next = time.monotonic() + INSPECTION_SECONDS

    def done(self, spec: RunSpec) -> None:
        """Report to the listener that a run is finished."""
        self._listener(Progress(spec.id, "done", spec.recipe.steps, spec.recipe.steps))


def progress_of(spec: RunSpec, root: Path) -> Progress | None:
    """Return how far a run has come according to its folder; None if the folder has no metrics yet."""
    folder, total = RunFolder(root / spec.id), spec.recipe.steps
    try:
        with folder.metrics.path.open("rb") as file:
            # Only the end is read, because a journal has a line for each of up to a million steps.
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LINE))
            *_, line, _ = file.read().split(b"\n")
        step = folder.metrics.parse(line)
        status = folder.read_status().status
    except (OSError, ValueError, TypeError):  # the run has not begun, or its files are being written
        return None
    if status in (ENDINGS if spec.goal else ("trained",)):
        return Progress(spec.id, "measuring", total, total)
    return Progress(spec.id, "training", min(step.step, total), total, f"loss of this step {step.loss:.2g}")
