"""Runs sent to a tracker: from their folders afterwards, or during training."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lengthwise.evaluation.length_curve import best_known
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.journal import Probe
from lengthwise.runs.progress import Progress
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import RunSpec, flat
from lengthwise.runs.tracking.base import TRACKERS, About, Entry, Measured, Tracker
from lengthwise.training.loop import StepRecord
from lengthwise.validation import path_of

PROJECT = "lengthwise"
FOLDER = Path("tracked")

UPDATE_SECONDS = 2.0
"""The smallest number of seconds between two updates of a run in training."""


class Replay:
    """A sender of a run's results to a tracker: each entry of the journals once, and at the end the result.

    The sender only reads files, so it does not slow down training, which can run in another process.
    """

    def __init__(self, folder: RunFolder, tracker: Tracker) -> None:
        self._folder, self._tracker = folder, tracker
        self._offsets = [0, 0]
        self._later: list[Entry] = []
        self.num_steps = 0

    def catch_up(self) -> None:
        """Send the tracker the entries that the run's journals got since the last call, in order of their steps."""
        # Reading begins where the last call ended: a journal can have a million lines, and its last line may be
        # incomplete.
        steps, self._offsets[0] = self._folder.metrics.read_after(self._offsets[0])
        probes, self._offsets[1] = self._folder.probes.read_after(self._offsets[1])
        self.num_steps = steps[-1].step if steps else self.num_steps
        # A probe can reach the disk before the record of its step. Such a probe waits for this record, because trackers
        # reject earlier steps. Both journals are written separately, so one can be ahead of the other at any moment.
        waiting = [*self._later, *map(_probe_entry, probes)]
        due = [entry for entry in waiting if entry[0] <= self.num_steps]
        self._later = [entry for entry in waiting if entry[0] > self.num_steps]
        entries = _merged([*map(_step_entry, steps), *due])
        if entries:
            self._tracker.log(entries)

    def finish(self) -> None:
        """Send all remaining entries and, if the run is finished, the run's result; then close the tracker."""
        self.catch_up()
        result = self._folder.read_result()
        if result is not None:
            self._tracker.summarize(measured(result), max(self.num_steps, result.training.step))
        self._tracker.finish()


def track(run: str | Path, tracker: str, *, project: str = PROJECT, folder: Path = FOLDER) -> tuple[int, str]:
    """Send a run, finished or not, to a tracker; return the number of its steps, and the location of its curves.

    Raises:
        ValueError: the tracker is unknown, its package is not installed, the folder has no run or is damaged, or
            the run has no metrics.
        RuntimeError: the tracker failed, for instance because the user has no account.
    """
    run_folder, kind = RunFolder(path_of("run", run)), TRACKERS[tracker]
    spec, metrics = run_folder.read_spec(), run_folder.read_metrics()
    if not metrics:
        raise ValueError(
            f"{run}: expected a run with metrics, got a run without training steps; train this run, or track another"
        )
    try:
        opened = kind(describe_run(spec, project, folder))
        replay = Replay(run_folder, opened)
        replay.finish()
    except (ValueError, OSError):
        raise
    except Exception as error:  # each tracker has its own exceptions
        sentence = " ".join(str(error).split())
        raise RuntimeError(
            f"{run}: {tracker} did not accept the run ({type(error).__name__}: {sentence}); set up {tracker}"
        ) from error
    return replay.num_steps, opened.location


def describe_run(spec: RunSpec, project: str, folder: Path) -> About:
    """Return the facts about a run that a tracker gets before the numbers of the run."""
    return About(spec.id, _plain(spec.to_json()), project, folder)


class LiveTracking:
    """A `Listener` that sends runs to a tracker during training, each as one run of the tracker.

    A failing tracker never stops a run: a warning is given once, and the run is no longer tracked.
    """

    def __init__(self, tracker: str, root: Path, project: str, folder: Path) -> None:
        self._kind = TRACKERS[tracker]
        self._root = root
        self._project = project
        self._out = folder
        self._replays: dict[str, Replay | None] = {}
        self._looked_at: dict[str, float] = {}
        self.location = ""

    def __call__(self, progress: Progress) -> None:
        if progress.is_decision:  # the journals may still be cut back to a checkpoint after this report
            return
        is_done = progress.phase == "done"
        if not is_done and time.monotonic() < self._looked_at.get(progress.run_id, 0.0) + UPDATE_SECONDS:
            return
        self._looked_at[progress.run_id] = time.monotonic()
        self._send(progress.run_id, is_last=is_done)

    def close(self) -> None:
        """Send the remaining entries of interrupted and failed runs, and close these runs in the tracker."""
        for run_id in [run_id for run_id, replay in self._replays.items() if replay is not None]:
            self._send(run_id, is_last=True)

    def _send(self, run_id: str, *, is_last: bool) -> None:
        try:
            if run_id not in self._replays:
                self._replays[run_id] = None  # a run that cannot be opened is not tried again
                self._replays[run_id] = self._open(run_id)
            replay = self._replays[run_id]
            if replay is None:
                return
            replay.catch_up()
            if is_last:
                self._replays[run_id] = None
                replay.finish()
        except Exception as error:  # network, full disk, version of the tracker: no failure may stop the run
            self._replays[run_id] = None
            warnings.warn(
                f"tracker: {run_id} is no longer tracked ({type(error).__name__}: {error}); the run continues, and "
                "`lengthwise track` sends all of it afterwards",
                stacklevel=2,
            )

    def _open(self, run_id: str) -> Replay:
        folder = RunFolder(self._root / run_id)
        tracker = self._kind(describe_run(folder.read_spec(), self._project, self._out))
        self.location = tracker.location
        return Replay(folder, tracker)


@contextmanager
def live_tracking(tracker: str, root: Path, *, project: str = PROJECT, folder: Path = FOLDER) -> Iterator[LiveTracking]:
    """Yield a listener for `lengthwise.runs.execute.execute` that sends runs below `root` to a tracker during training.

    If an interrupted run continues, the tracker opens a new run, and gets all steps again from the first step.

    Raises:
        ValueError: the tracker is unknown, or its package is not installed.
    """
    TRACKERS[tracker].load()
    tracking = LiveTracking(tracker, root, project, folder)
    try:
        yield tracking
    finally:
        tracking.close()


def measured(result: RunResult) -> Measured:
    """Return the measurements of a result for trackers: numbers, words, and curves against length."""
    numbers: dict[str, float] = {
        "result/num_parameters": float(result.num_parameters),
        "result/cpu_seconds": result.training.cpu_seconds,
    }
    by_length: dict[str, Sequence[tuple[int, float]]] = {}
    if result.final_loss is not None:
        numbers["result/final_loss"] = result.final_loss
    if result.errors is not None:
        numbers["result/last_error"] = result.errors.last.error
        by_length["by_length/squared_error"] = [(point.num_examples, point.error) for point in result.errors.points]
    if result.perplexity is not None:
        points = result.perplexity.points
        numbers |= {f"result/perplexity_at_{point.length}": point.perplexity for point in points}
        by_length["by_length/perplexity"] = [(point.length, point.perplexity) for point in points]
    dense, long = result.dense.balanced(), result.long.balanced()
    if dense.points:
        numbers |= {"result/mean_accuracy": dense.mean(), "result/lowest_accuracy": dense.min()}
    numbers |= {f"result/accuracy_at_{point.length}": point.accuracy for point in long.points}
    if result.structured.points:
        numbers["result/lowest_structured_accuracy"] = result.structured.min()
    if curve := best_known([*dense.points, *long.points]):
        by_length["by_length/accuracy"] = list(curve.items())
    words = {"result/weights": result.weights}
    if result.certificate is not None:
        words["result/certificate"] = result.certificate.level
    return Measured(numbers, words, by_length)


def _step_entry(record: StepRecord) -> Entry:
    # Prefixes keep training, probes and results apart in trackers that group by the part before a slash.
    return record.step, {f"train/{name}": float(value) for name, value in record._asdict().items() if name != "step"}


def _probe_entry(probe: Probe) -> Entry:
    numbers = {"accuracy": probe.accuracy, "cpu_seconds": probe.cpu_seconds, "fresh_accuracy": probe.fresh}
    return probe.step, {f"probe/{name}": number for name, number in numbers.items() if number is not None}


def _merged(entries: Sequence[Entry]) -> list[Entry]:
    """Merge entries into one for each step, in order of their steps.

    Example:
        >>> _merged([(1, {"a": 0.5}), (2, {"a": 0.25}), (1, {"b": 1.0})])
        [(1, {'a': 0.5, 'b': 1.0}), (2, {'a': 0.25})]
    """
    by_step: dict[int, dict[str, float]] = {}
    for step, numbers in entries:
        by_step.setdefault(step, {}).update(numbers)
    return sorted(by_step.items())


def _plain(settings: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """Return nested settings under dotted keys; lists and missing values become text.

    Example:
        >>> _plain({"train": {"steps": 10, "optimizer": {"name": "adam", "betas": [0.9]}}})
        {'train.steps': 10, 'train.optimizer.name': 'adam', 'train.optimizer.betas': '[0.9]'}
    """
    return {
        key: value if isinstance(value, str | int | float | bool) else str(value)
        for key, value in flat(settings).items()
    }
