"""Many runs on a pool of local processes.

Processes that the system may kill share no lock: one that dies while it holds a lock would stop all others, and the
parent with them. Progress goes through a pipe, into which writing at most `select.PIPE_BUF` bytes is atomic; requests
to stop are pipes that nobody reads: whatever is in them can be seen by all.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import STOP_SIGNALS, Interrupted, Listener, Progress, StopRequested, execute
from lengthwise.runs.folder import RunFolder, RunResult
from lengthwise.runs.spec import RunSpec, Settings, spec_from_json

MAX_NOTE = 500
"""Characters of a note that are passed on, so that a message with all its names stays below `select.PIPE_BUF`."""
PRELOADED = ["lengthwise.runs.execute", "torch._dynamo"]
"""What the process imports that all workers are forked from; an optimizer imports the second, in a second of time."""


class Outcome(NamedTuple):
    """What became of a run: its result, or why there is none."""

    spec: RunSpec
    result: RunResult | None
    reason: str = ""


def execute_all(
    specs: Sequence[RunSpec],
    root: Path,
    plans: Sequence[EvaluationPlan],
    listener: Listener,
    *,
    num_workers: int,
    stop_requested: StopRequested = lambda: False,
) -> list[Outcome]:
    """Run all runs, `num_workers` at a time, each measured by its plan; one that fails is reported and stops no other.

    A worker that the system kills, for want of memory say, ends the others too: all unfinished runs are reported so.
    Raises `Interrupted` after `stop_requested` has said yes; runs under way are saved first, finished ones kept.
    """
    if num_workers < 1:
        raise ValueError(f"num_workers: expected at least 1, got {num_workers}")
    if not specs:
        return []
    with _pool(min(num_workers, len(specs)), listener) as pool:
        with _signals_blocked():
            futures = [
                pool.executor.submit(_execute_in_worker, spec.to_json(), root, plan)
                for spec, plan in zip(specs, plans, strict=True)
            ]
        while wait(futures, timeout=0.2).not_done and not stop_requested():
            pass
        if stopping := stop_requested():
            pool.stop.send(None)
            wait([future for future in futures if not future.cancel()])
        if any(_is_broken(future) for future in futures):
            pool.end.send(None)
        if stopping:
            raise Interrupted(f"stopped; finished work is kept in {root}, and the same command goes on with it")
        return [_outcome(spec, future) for spec, future in zip(specs, futures, strict=True)]


def finished(specs: Sequence[RunSpec], root: Path, plans: Sequence[EvaluationPlan]) -> list[Outcome]:
    """What is there already: the results that were measured by their run's plan, or one that has all of it."""
    results = [RunFolder(root / spec.id).read_result() for spec in specs]
    return [
        Outcome(spec, result) if result and result.plan.covers(plan) else Outcome(spec, None, "not run yet")
        for spec, result, plan in zip(specs, results, plans, strict=True)
    ]


def _is_broken(future: "Future[RunResult]") -> bool:
    return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


def _outcome(spec: RunSpec, future: "Future[RunResult]") -> Outcome:
    try:
        return Outcome(spec, future.result())
    except BrokenProcessPool:
        reason = "a worker process was killed, perhaps for want of memory, and the others with it; take fewer workers"
        return Outcome(spec, None, reason)
    except Exception as error:  # a failed cell is shown with its reason, whatever it was
        return Outcome(spec, None, f"{type(error).__name__}: {error}")


class _Pool(NamedTuple):
    """Worker processes, and the pipes that tell all of them to stop after a step, or to end at once."""

    executor: ProcessPoolExecutor
    stop: "Connection[None, None]"
    end: "Connection[None, None]"


@contextmanager
def _pool(num_workers: int, listener: Listener) -> Iterator[_Pool]:
    """Processes forked from one that has imported torch already, and a thread that passes on their progress."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    (messages, to_parent), (on_stop, stop), (on_end, end) = (context.Pipe(duplex=False) for _ in range(3))

    def pass_on() -> None:
        while (progress := messages.recv()) is not None:
            listener(Progress(*progress))

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        with ProcessPoolExecutor(num_workers, context, _start_worker, (to_parent, on_stop, on_end)) as executor:
            yield _Pool(executor, stop, end)
    finally:
        to_parent.send(None)
        thread.join()
        for pipe in (messages, to_parent, on_stop, stop, on_end, end):
            pipe.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that never see the signals that stop a run, which often go to a whole process group.

    This process alone decides, and stops the others through a pipe. Signals that arrive meanwhile are handled after it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_to_parent: "Connection[tuple[object, ...], None] | None" = None  # the worker's end of the pipe for progress
_on_stop: "Connection[None, None] | None" = None  # holds something when the worker is to stop after a step


def _start_worker(
    to_parent: "Connection[tuple[object, ...], None]",
    on_stop: "Connection[None, None]",
    on_end: "Connection[None, None]",
) -> None:
    global _to_parent, _on_stop
    _to_parent, _on_stop = to_parent, on_stop
    threading.Thread(target=_end_when_told, args=(on_end,), daemon=True).start()


def _end_when_told(on_end: "Connection[None, None]") -> None:
    """End this worker at once when its parent says so, or has ended: otherwise it would hold on to its run.

    The executor ends the workers of a broken pool by SIGTERM, which they do not see.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel, on_end])
    os._exit(1)


def _execute_in_worker(spec: Settings, root: Path, plan: EvaluationPlan) -> RunResult:
    to_parent, on_stop = _to_parent, _on_stop
    assert to_parent is not None
    assert on_stop is not None

    def report(progress: Progress) -> None:
        to_parent.send(tuple(progress._replace(note=progress.note[:MAX_NOTE])))

    return execute(spec_from_json(spec), root, plan, report, on_stop.poll)
