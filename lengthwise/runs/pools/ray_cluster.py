"""A pool of Ray: the nodes of a cluster, or processes of this machine, with one core for each task."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from lengthwise.runs.pools.base import POOLS, Pool, PoolOptions, require
from lengthwise.runs.signals import STOP_SIGNALS

P = ParamSpec("P")
T = TypeVar("T")

ADDRESS = "RAY_ADDRESS"
"""The environment variable that names a cluster."""
MAX_RETRIES = 3
"""The number of times that a job is repeated if its worker or node is lost."""


class RayExecutor(Executor):
    """An executor that runs tasks on the Ray cluster of this process; tasks cannot be cancelled."""

    def __init__(self) -> None:
        import ray

        self._task: Any = ray.remote(_call).options(num_cpus=1, max_retries=MAX_RETRIES)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        reference = self._task.remote(fn, *args, **kwargs)
        # Ray's own future would raise Ray's error, which hides the type of the task's exception.
        reference.future().add_done_callback(lambda done: _pass_on(done, future))
        return future


def _call(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function. All jobs use this function as their Ray task, so Ray sends it to each worker only once."""
    return fn(*args, **kwargs)


def _pass_on(done: "Future[Any]", future: "Future[Any]") -> None:
    """Pass on a result, or the task's own exception instead of Ray's text about it."""
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(getattr(error, "cause", None) or error)


@POOLS.register("ray")
@contextmanager
def ray_pool(options: PoolOptions) -> Iterator[Pool]:
    """Open a pool on the nodes of a Ray cluster or, without an address, on a cluster of this machine's processes.

    The local cluster ends with the sweep.
    """
    require("ray", "ray")
    # Ray reports usage over the network by default.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    address = options.address(os.environ.get(ADDRESS), unchecked=("auto",))
    num_cpus, dashboard = (None, None) if address else (options.workers_or_default, False)  # only for a local cluster
    with _handlers_kept():
        try:
            ray.init(
                address=address or "local",
                num_cpus=num_cpus,
                include_dashboard=dashboard,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (OSError, RuntimeError, ValueError) as error:
            way_out = "give the address of a running Ray" if address else "use pool local"
            raise OSError(
                f"scheduler: expected Ray at {address or 'this machine'}, got none ({error}); {way_out}"
            ) from None
    try:
        yield Pool(RayExecutor())
    finally:
        ray.shutdown()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore the signal handlers that Ray replaces, because signals have to stop runs with a checkpoint."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
