"""Progress of runs that are executed elsewhere, as their folders tell it."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from lengthwise.runs.execute import Listener, Progress
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.result import ENDINGS
from lengthwise.runs.spec import RunSpec

LOOK_EVERY = 2.0
"""Seconds between two looks into the folders."""
MAX_LINE = 4_000
"""Bytes read of the end of a journal: more than its last line."""


class Follower:
    """Tells a listener how far runs have come: the last whole line of their metrics, and when they are measured.

    Metrics reach the disk some kilobytes at a time, or with a checkpoint, so that this is a little late.
    """

    def __init__(self, root: Path, listener: Listener) -> None:
        self._root, self._listener = root, listener
        self._told: dict[str, Progress] = {}
        self._next = time.monotonic() + LOOK_EVERY

    def look(self, specs: Iterable[RunSpec]) -> None:
        """Look into the folders of the runs that are not finished, where it is time for that."""
        if time.monotonic() < self._next:
            return
        for spec in specs:
            progress = progress_of(spec, self._root)
            if progress is not None and self._told.get(spec.id) != progress:
                self._told[spec.id] = progress
                self._listener(progress)
        self._next = time.monotonic() + LOOK_EVERY

    def done(self, spec: RunSpec) -> None:
        """Tell that a run is finished."""
        self._listener(Progress(spec.id, "done", spec.recipe.steps, spec.recipe.steps))


def progress_of(spec: RunSpec, root: Path) -> Progress | None:
    """How far a run's folder says that it has come; None where it says nothing yet."""
    folder, total = RunFolder(root / spec.id), spec.recipe.steps
    try:
        with folder.metrics.path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_LINE))
            *_, line, _ = file.read().split(b"\n")
        step = folder.metrics.parse(line)
        status = folder.read_status().status
    except (OSError, ValueError, TypeError):  # not begun, or in the middle of being written
        return None
    if status in (ENDINGS if spec.goal else ("trained",)):
        return Progress(spec.id, "measuring", total, total)
    return Progress(spec.id, "training", min(step.step, total), total, f"loss {step.loss:.4f}")
