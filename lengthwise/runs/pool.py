"""Many runs on a pool of local processes."""

import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted, Listener, Progress, execute
from lengthwise.runs.folder import RunResult
from lengthwise.runs.spec import RunSpec, Settings, spec_from_json


class Outcome(NamedTuple):
    """What became of a run: its result, or why there is none."""

    spec: RunSpec
    result: RunResult | None
    reason: str = ""


def execute_all(
    specs: Sequence[RunSpec], root: Path, plan: EvaluationPlan, listener: Listener, *, num_workers: int
) -> list[Outcome]:
    """Carry out all runs, `num_workers` at a time; a run that fails is reported and stops no other.

    Raises `Interrupted` when Ctrl-C stopped the work; finished and interrupted runs are kept.
    """
    if num_workers < 1:
        raise ValueError(f"workers: wanted at least 1, got {num_workers}")
    with _pool(min(num_workers, len(specs)), listener) as pool:
        futures = [pool.submit(_execute_in_worker, spec.to_json(), root, plan) for spec in specs]
        try:
            return [_outcome(spec, future) for spec, future in zip(specs, futures, strict=True)]
        except (KeyboardInterrupt, Interrupted):
            for future in futures:
                future.cancel()
            raise Interrupted(f"stopped; finished work is kept in {root}") from None


def _outcome(spec: RunSpec, future: "Future[RunResult]") -> Outcome:
    try:
        return Outcome(spec, future.result())
    except Interrupted:
        raise
    except Exception as error:  # a failed cell is shown with its reason, whatever it was
        return Outcome(spec, None, f"{type(error).__name__}: {error}")


@contextmanager
def _pool(num_workers: int, listener: Listener) -> Iterator[Executor]:
    """Processes forked from one that has imported torch already, and a thread that passes on their progress."""
    context: BaseContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lengthwise.runs.execute"])
    messages = context.SimpleQueue()

    def pass_on() -> None:
        while (progress := messages.get()) is not None:
            listener(Progress(*progress))

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    try:
        with ProcessPoolExecutor(num_workers, context, initializer=_start_worker, initargs=(messages,)) as pool:
            yield pool
    finally:
        messages.put(None)
        thread.join()
        messages.close()


_messages: Any = None  # the worker's end of the progress queue


def _start_worker(messages: Any) -> None:
    global _messages
    _messages = messages


def _execute_in_worker(spec: Settings, root: Path, plan: EvaluationPlan) -> RunResult:
    return execute(spec_from_json(spec), root, plan, lambda progress: _messages.put(tuple(progress)))
