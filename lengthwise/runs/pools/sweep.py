"""Many runs on a pool: each is a job, and what becomes of it is read from its folder."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Listener, Progress
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.lock import RunHeld, check_locks
from lengthwise.runs.pools.base import ReportingExecutor
from lengthwise.runs.pools.folder_progress import Follower
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.pools.worker import execute_job, job, sweep_file
from lengthwise.runs.signals import Interrupted, StopRequested
from lengthwise.runs.spec import RunSpec

WAIT = 0.2
"""Seconds between two looks at what is done and whether to stop."""
HELD_AGAIN = 1.0
"""Seconds after which runs that other processes hold are tried again."""


def execute_all(
    specs: Sequence[RunSpec],
    root: Path,
    plans: Sequence[EvaluationPlan],
    listener: Listener,
    *,
    pool: Executor,
    held: Literal["wait", "fail"] = "wait",
    stop_requested: StopRequested = lambda: False,
) -> list[Outcome]:
    """Execute all runs on a pool, each measured by its plan; one that fails is reported and stops no other.

    Runs of the lowest seed are begun first: a sweep that is stopped has one seed of everything, if not all of it.

    Any executor will do whose workers have this package and see `root` under the same path: a job is a string of JSON,
    and its value is ignored. A pool that executes the job of a lost worker again goes on from the run's checkpoint.

    Args:
        held: what to do with a run that another process works on: fail, or try it again until it is finished or free.

    Raises:
        Exception: whatever the listener has raised; runs under way are saved first, finished ones kept.
        Interrupted: `stop_requested` has said yes; runs under way are saved first, finished ones kept.
        OSError: files below `root` cannot be locked.
    """
    if not specs:
        return []
    root.mkdir(parents=True, exist_ok=True)
    check_locks(root)
    sweep = _Sweep(specs, root.absolute(), plans, listener, pool, held)
    if not sweep.run(stop_requested):
        raise Interrupted(f"stopped; finished work is kept in {root}, and the same command goes on with it")
    return [sweep.outcome(index) for index in range(len(specs))]


class _Sweep:
    """Jobs that are submitted, those whose runs other processes hold, and what went wrong."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        root: Path,
        plans: Sequence[EvaluationPlan],
        listener: Listener,
        pool: Executor,
        held: Literal["wait", "fail"],
    ) -> None:
        self._specs = specs
        self._root = root
        self._plans = plans
        self._pool = pool
        self._waits, self._listener = held == "wait", listener
        self._follower = None if isinstance(pool, ReportingExecutor) else Follower(root, self._tell)
        if isinstance(pool, ReportingExecutor):
            pool.report_to(self._tell)
        self._submitted: dict[Future[None], int] = {}
        self._held: dict[int, float] = {}  # when to try again
        self._announced: set[int] = set()
        self._errors: dict[int, BaseException] = {}
        self._not_told: Exception | None = None

    def _tell(self, progress: Progress) -> None:
        """Pass progress on. What the listener raises, perhaps in a pool's thread, ends the sweep, which raises it."""
        if self._not_told is None:
            try:
                self._listener(progress)
            except Exception as error:  # whatever it is: workers wait for what nobody reads
                self._not_told = error

    def run(self, stop_requested: StopRequested) -> bool:
        """Run all jobs; whether they came to their ends, as they do not after a request to stop."""
        with sweep_file(self._root) as sweep:
            jobs = [job(spec, plan, sweep) for spec, plan in zip(self._specs, self._plans, strict=True)]
            for index in sorted(range(len(jobs)), key=lambda index: self._specs[index].seed):
                self._submit(index, jobs[index])
            while self._submitted or self._held:
                self._collect()
                if self._not_told or stop_requested():
                    break
                now = time.monotonic()
                for index in [index for index, when in self._held.items() if when <= now]:
                    del self._held[index]
                    self._submit(index, jobs[index])
                if self._follower:
                    self._follower.look(self._specs[index] for index in [*self._submitted.values(), *self._held])
            else:
                return True
        wait(self._submitted)  # without the sweep's file, workers save what they do, and begin nothing
        if self._not_told:
            raise self._not_told
        return False

    def _submit(self, index: int, text: str) -> None:
        try:
            future = self._pool.submit(execute_job, text)
        except BrokenExecutor as error:
            self._errors[index] = error
        else:
            self._submitted[future] = index

    def _collect(self) -> None:
        """Wait a moment for jobs to be done, and sort those that are."""
        if not self._submitted:
            time.sleep(WAIT)
        for future in wait(self._submitted, timeout=WAIT, return_when=FIRST_COMPLETED).done:
            index = self._submitted.pop(future)
            error = CancelledError("the pool gave it up") if future.cancelled() else future.exception()
            if isinstance(error, RunHeld) and self._waits:
                self._held[index] = time.monotonic() + HELD_AGAIN
                self._announce(index, error)
            elif error is not None:
                self._errors[index] = error
            elif self._follower:
                self._follower.done(self._specs[index])

    def _announce(self, index: int, error: RunHeld) -> None:
        """Say once that a run is waited for, and for whom."""
        if index not in self._announced:
            self._announced.add(index)
            spec = self._specs[index]
            self._tell(Progress(spec.id, "waiting", 0, spec.recipe.steps, str(error), is_decision=True))

    def outcome(self, index: int) -> Outcome:
        spec = self._specs[index]
        if index in self._errors:
            return Outcome(spec, None, _reason(self._errors[index]))
        folder = RunFolder(self._root / spec.id)
        try:
            result = folder.read_result()
        except ValueError as error:
            return Outcome(spec, None, str(error))
        return Outcome(spec, result, "" if result else f"its worker is done, but there is no result in {folder.path}")


def _reason(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "a worker process was killed, perhaps for want of memory, and the others with it; take fewer workers"
    return f"{type(error).__name__}: {error}"
