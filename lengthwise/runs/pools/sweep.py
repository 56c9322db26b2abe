"""Sweeps of many runs on a pool: each run is a job, and its outcome is read from its folder."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import check_no_file
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.lock import RunHeld, check_locks
from lengthwise.runs.pools.base import ReportingExecutor
from lengthwise.runs.pools.folder_progress import Follower
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.pools.worker import execute_job, job, sweep_file
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.signals import Interrupted, StopRequested
from lengthwise.runs.spec import RunSpec

WAIT_SECONDS = 0.2
"""Seconds between two checks for finished jobs and a request to stop."""
RETRY_HELD_SECONDS = 1.0
"""Seconds after which a run that another process holds is tried again."""


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
    """Execute all runs on a pool, each measured by its plan; a failed run is reported, and the other runs continue.

    Runs with the lowest seed begin first, so a stopped sweep has one seed of many settings instead of all seeds of a
    few settings.

    Any executor works if its workers have this package and see `root` under the same path. A job is a string of JSON,
    and its return value is ignored. A pool that repeats the job of a lost worker continues from the run's checkpoint.

    Args:
        held: what to do with a run that another process works on: count the run as failed, or try it again until it is
            finished or free.

    Raises:
        Exception: the exception of the listener; runs in progress are saved first, and finished runs are kept.
        Interrupted: `stop_requested` returned True; runs in progress are saved first, and finished runs are kept.
        OSError: files below `root` cannot be locked.
    """
    if not specs:
        return []
    check_no_file("root", root)
    root.mkdir(parents=True, exist_ok=True)
    # Without locks, two workers could train one run at the same time, and overwrite each other's files.
    check_locks(root)
    sweep = _Sweep(specs, root.absolute(), plans, listener, pool, held)
    if not sweep.run(stop_requested):
        raise Interrupted(f"stopped; to continue with the finished work in {root}, run the same command again")
    return [sweep.outcome(index) for index in range(len(specs))]


class _Sweep:
    """The submitted jobs, the runs that other processes hold, and the errors so far."""

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
        self._follower = None if isinstance(pool, ReportingExecutor) else Follower(root, self._report)
        if isinstance(pool, ReportingExecutor):
            pool.report_to(self._report)
        self._submitted: dict[Future[None], int] = {}
        self._held: dict[int, float] = {}  # when to try again
        self._announced: set[int] = set()
        self._errors: dict[int, BaseException] = {}
        self._listener_error: Exception | None = None

    def _report(self, progress: Progress) -> None:
        """Call the listener. An exception of the listener, maybe in a pool's thread, is stored and ends the sweep."""
        if self._listener_error is None:
            try:
                self._listener(progress)
            except Exception as error:  # of any kind, because unread progress would block the workers
                self._listener_error = error

    def run(self, stop_requested: StopRequested) -> bool:
        """Run all jobs; return False if a request to stop or an error of the listener ended the sweep early."""
        with sweep_file(self._root) as sweep:
            jobs = [job(spec, plan, sweep) for spec, plan in zip(self._specs, self._plans, strict=True)]
            # The lowest seeds come first. An unfinished table then has one seed in every cell, instead of all seeds in
            # its first cells.
            for index in sorted(range(len(jobs)), key=lambda index: self._specs[index].seed):
                self._submit(index, jobs[index])
            while self._submitted or self._held:
                # This check comes before the first wait, during which short runs could all end.
                if stop_requested():
                    break
                self._collect()
                if self._listener_error:
                    break
                now = time.monotonic()
                for index in [index for index, when in self._held.items() if when <= now]:
                    del self._held[index]
                    self._submit(index, jobs[index])
                if self._follower:
                    self._follower.update(self._specs[index] for index in [*self._submitted.values(), *self._held])
            else:
                # The loop has ended without a break: all jobs are done.
                return True
        wait(self._submitted)  # the sweep's file is gone, so workers save the run in progress and begin no other
        if self._listener_error:
            raise self._listener_error
        return False

    def _submit(self, index: int, text: str) -> None:
        try:
            future = self._pool.submit(execute_job, text)
        except BrokenExecutor as error:
            self._errors[index] = error
        else:
            self._submitted[future] = index

    def _collect(self) -> None:
        """Wait a moment for jobs to finish, and note which finished jobs failed or have to be tried again."""
        if not self._submitted:
            time.sleep(WAIT_SECONDS)
        for future in wait(self._submitted, timeout=WAIT_SECONDS, return_when=FIRST_COMPLETED).done:
            index = self._submitted.pop(future)
            error = CancelledError("the pool cancelled the run") if future.cancelled() else future.exception()
            if isinstance(error, RunHeld) and self._waits:
                # The holder may finish the run or die; in both cases trying again gives the result.
                self._held[index] = time.monotonic() + RETRY_HELD_SECONDS
                self._announce(index, error)
            elif error is not None:
                self._errors[index] = error
            elif self._follower:
                self._follower.done(self._specs[index])

    def _announce(self, index: int, error: RunHeld) -> None:
        """Report once that the sweep waits for a run, and which process holds it."""
        if index not in self._announced:
            self._announced.add(index)
            spec = self._specs[index]
            self._report(Progress(spec.id, "waiting", 0, spec.recipe.steps, str(error), is_decision=True))

    def outcome(self, index: int) -> Outcome:
        spec = self._specs[index]
        if index in self._errors:
            return Outcome(spec, None, _reason(self._errors[index]))
        folder = RunFolder(self._root / spec.id)
        try:
            # The job's return value is ignored, because only a result on disk survives the loss of a worker.
            result = folder.read_result()
        except ValueError as error:
            return Outcome(spec, None, str(error))
        missing = f"the worker is done, but there is no result in {folder.path}; the same command executes it again"
        return Outcome(spec, result, "" if result else missing)


def _reason(error: BaseException) -> str:
    if isinstance(error, BrokenProcessPool):
        return "a worker process was killed, perhaps for lack of memory, so all workers ended; use fewer workers"
    return f"{type(error).__name__}: {error}"
