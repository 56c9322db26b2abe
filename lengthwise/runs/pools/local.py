"""A pool of processes of this machine.

The system may kill any process, so processes share no lock: a process that dies while it holds a lock would stop the
parent and all other processes. Workers send their progress through a pipe: writing at most `select.PIPE_BUF` bytes into
a pipe is atomic. The request to end is written into a pipe that nobody reads from, so that all processes see its
content.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

from lengthwise.runs.pools.base import POOLS, Pool, PoolOptions, ReportingExecutor
from lengthwise.runs.pools.worker import WorkerSettings, configure_worker
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.signals import signals_blocked

P = ParamSpec("P")
T = TypeVar("T")

MAX_NOTE = 500
"""The largest number of characters of a note that is passed on. A whole message has to stay below `select.PIPE_BUF`
bytes, so that messages of several workers do not mix."""
PRELOADED = ["lengthwise.runs.pools.worker", "torch._dynamo"]
"""The modules that the parent of all workers imports. Optimizers need `torch._dynamo`, whose import takes a second."""
STOP_CHECK_SECONDS = 0.1
"""The number of seconds after which a worker checks again whether its sweep continues."""


class LocalPool(ReportingExecutor):
    """Processes forked from a process that has imported torch, and a thread that passes on their progress.

    If the system kills a worker, for instance for lack of memory, all workers end and the pool is broken. Workers end
    if this process ends, for whatever reason, and ignore the signals that stop this process.
    """

    def __init__(self, num_workers: int) -> None:
        if num_workers < 1:
            raise ValueError(f"num_workers: expected a number of at least 1, got {num_workers}; give for example 2")
        # A fork of this process would inherit its threads' locks, and a spawn would import torch in every worker.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        # A queue would have a lock, which a killed worker could hold indefinitely.
        self._messages, self._to_parent = context.Pipe(duplex=False)
        self._on_end, self._end = context.Pipe(duplex=False)
        self._is_ending = threading.Event()
        self._listener: Listener = lambda progress: None
        try:
            self._executor = ProcessPoolExecutor(num_workers, context, _start_worker, (self._to_parent, self._on_end))
        except OSError as error:  # the queues need semaphores in shared memory
            raise OSError(
                f"workers: processes cannot share memory here ({error.strerror or error}); make /dev/shm writable, "
                "or train one run at a time with `lengthwise train`"
            ) from None
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def report_to(self, listener: Listener) -> None:
        self._listener = listener

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        with signals_blocked():
            future = self._executor.submit(fn, *args, **kwargs)
        future.add_done_callback(self._end_if_broken)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers after their work is done; with `wait`, also close all pipes."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)
        if wait and not self._to_parent.closed:
            self._to_parent.send(None)
            self._thread.join()
            for pipe in (self._messages, self._to_parent, self._on_end, self._end):
                pipe.close()

    def _pass_on(self) -> None:
        while (progress := self._messages.recv()) is not None:
            self._listener(Progress(*progress))

    def _end_if_broken(self, future: "Future[T]") -> None:
        """End the workers of a broken pool; the executor only sends SIGTERM, which workers block."""
        is_broken = not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)
        if is_broken and not self._is_ending.is_set():
            self._is_ending.set()
            self._end.send(None)


@POOLS.register("local")
@contextmanager
def local_pool(options: PoolOptions) -> Iterator[Pool]:
    """Open a pool of processes on this computer. If another command works on a run, this run fails in the sweep."""
    options.reject_scheduler("local")
    with LocalPool(options.workers_or_default) as executor:
        yield Pool(executor, held="fail")


@POOLS.register("shared")
@contextmanager
def shared_pool(options: PoolOptions) -> Iterator[Pool]:
    """Open a pool of processes on this computer. Pools that work on the same folder divide its runs by lock files."""
    options.reject_scheduler("shared")
    with LocalPool(options.workers_or_default) as executor:
        yield Pool(executor)


def _start_worker(to_parent: "Connection[tuple[object, ...], None]", on_end: "Connection[None, None]") -> None:
    def report(progress: Progress) -> None:
        # A shortened note keeps the message below the size that a pipe writes in one piece.
        to_parent.send(tuple(progress._replace(note=progress.note[:MAX_NOTE])))

    configure_worker(WorkerSettings(report, STOP_CHECK_SECONDS))
    threading.Thread(target=_end_on_request, args=(on_end,), daemon=True).start()


def _end_on_request(on_end: "Connection[None, None]") -> None:
    """End this worker at once if its parent requests its end, or has ended; otherwise it would keep its run's lock."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    # The sentinel becomes ready when the parent dies in any way, so that no orphan holds a run.
    connection.wait([parent.sentinel, on_end])
    # `sys.exit` would end only this thread, and the run would keep its lock.
    os._exit(1)
