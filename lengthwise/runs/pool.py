"""Many runs on a pool of local processes."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted, Listener, Progress, StopRequested, execute
from lengthwise.runs.folder import RunFolder, RunResult
from lengthwise.runs.spec import RunSpec, Settings, spec_from_json


class Outcome(NamedTuple):
    """What became of a run: its result, or why there is none."""

    spec: RunSpec
    result: RunResult | None
    reason: str = ""


def execute_all(
    specs: Sequence[RunSpec],
    root: Path,
    plan: EvaluationPlan,
    listener: Listener,
    *,
    num_workers: int,
    stop_requested: StopRequested = lambda: False,
) -> list[Outcome]:
    """Run all runs, `num_workers` at a time; a run that fails is reported and stops no other.

    A worker that the system kills, for want of memory say, ends the others too: all unfinished runs are reported so.
    Raises `Interrupted` after `stop_requested` has said yes; runs under way are saved first, finished ones kept.
    """
    if num_workers < 1:
        raise ValueError(f"workers: expected at least 1, got {num_workers}")
    with _pool(min(num_workers, len(specs)), listener) as (pool, stop):
        with _interrupts_held_back():
            futures = [pool.submit(_execute_in_worker, spec.to_json(), root, plan) for spec in specs]
        while wait(futures, timeout=0.2).not_done and not stop_requested():
            pass
        if stop_requested():
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise Interrupted(f"stopped; finished work is kept in {root}, and the same command goes on with it")
        return [_outcome(spec, future) for spec, future in zip(specs, futures, strict=True)]


def finished(specs: Sequence[RunSpec], root: Path, plan: EvaluationPlan) -> list[Outcome]:
    """What is there already: the results that were measured by this plan."""
    results = [RunFolder(root / spec.id).read_result() for spec in specs]
    return [
        Outcome(spec, result) if result and result.plan == plan else Outcome(spec, None, "not run yet")
        for spec, result in zip(specs, results, strict=True)
    ]


def _outcome(spec: RunSpec, future: "Future[RunResult]") -> Outcome:
    try:
        return Outcome(spec, future.result())
    except Exception as error:  # a failed cell is shown with its reason, whatever it was
        return Outcome(spec, None, f"{type(error).__name__}: {error}")


@contextmanager
def _pool(num_workers: int, listener: Listener) -> Iterator[tuple[Executor, Event]]:
    """Processes forked from one that has imported torch already, an event that asks them to stop, and a thread that
    passes on their progress."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lengthwise.runs.execute"])
    messages, stop = context.SimpleQueue(), context.Event()

    def pass_on() -> None:
        while (progress := messages.get()) is not None:
            listener(Progress(*progress))

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        with ProcessPoolExecutor(num_workers, context, _start_worker, (messages, stop)) as pool:
            yield pool, stop
    finally:
        messages.put(None)
        thread.join()
        messages.close()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started meanwhile never see a Ctrl-C, which a terminal sends to all: this one alone decides, and asks
    the others by the event. What arrives meanwhile is seen to afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_messages: Any = None  # the worker's end of the progress queue
_stop: Any = None  # the event that asks the worker to stop


def _start_worker(messages: Any, stop: Event) -> None:
    global _messages, _stop
    _messages, _stop = messages, stop
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Without its first process, a pool's worker would wait for work indefinitely and hold on to its run."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _execute_in_worker(spec: Settings, root: Path, plan: EvaluationPlan) -> RunResult:
    return execute(spec_from_json(spec), root, plan, lambda progress: _messages.put(tuple(progress)), _stop.is_set)
