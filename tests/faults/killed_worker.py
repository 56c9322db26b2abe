"""A script: `execute_all` whose worker is killed while it holds every lock that it shares with its parent."""

import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing.synchronize import SemLock
from pathlib import Path
from typing import Any

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted
from lengthwise.runs.pools import local, sweep, worker
from lengthwise.runs.pools.local import LocalPool
from lengthwise.runs.spec import make_spec


def locks_of(shared: Any, depth: int = 3) -> Iterator[SemLock]:
    """The locks that an object consists of, down to some depth."""
    if isinstance(shared, SemLock):
        yield shared
    elif depth and hasattr(shared, "__dict__"):
        for part in vars(shared).values():
            yield from locks_of(part, depth - 1)


def die(*_: Any) -> None:
    """Do this instead of a run."""
    for module in (local, worker):
        for shared in vars(module).values():
            for lock in locks_of(shared):
                lock.acquire(block=False)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ in ("__main__", "__mp_main__"):  # in this script and its workers, not where doctests are collected
    sweep.execute_job = die

if __name__ == "__main__":
    settings = {"model": {"d_model": 8, "num_heads": 2}, "train": {"steps": 20, "batch_size": 4, "max_length": 8}}
    specs = [make_spec("parity", "regular-gpt", settings, seed=seed) for seed in (0, 1)]
    for is_stopping in (False, True):
        try:
            with LocalPool(2) as pool:
                outcomes = sweep.execute_all(
                    specs,
                    Path(sys.argv[1]),
                    [EvaluationPlan()] * len(specs),
                    print,
                    pool=pool,
                    stop_requested=is_stopping.__bool__,
                )
            sys.stdout.writelines(f"{outcome.reason}\n" for outcome in outcomes)
        except Interrupted as error:
            sys.stdout.write(f"{error}\n")
