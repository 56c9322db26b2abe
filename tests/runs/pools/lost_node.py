"""What the workers of a cluster do to lose a node: the first one that comes to a run's middle ends, and its parent.

That is a worker's nanny with Dask, and with Ray the process that is the node. The environment says at which file is
seen whether that has happened, so that it happens once.
"""

import os
import signal
from pathlib import Path

from lengthwise.runs.pools.worker import WorkerSettings, configure_worker, execute_job
from lengthwise.runs.progress import Progress

LOST_AT = 20


def lose_node(progress: Progress) -> None:
    if progress.phase == "training" and progress.done == LOST_AT:
        try:
            Path(os.environ["LOST_NODE"]).touch(exist_ok=False)
        except FileExistsError:
            return
        for number in (os.getppid(), os.getpid()):
            os.kill(number, signal.SIGKILL)


def dask_setup(worker: object) -> None:
    """Called by Dask's workers, which preload this file."""
    configure_worker(WorkerSettings(lose_node))


def execute_job_and_lose_node(text: str) -> None:
    """Submitted instead of a job itself, where workers preload nothing."""
    configure_worker(WorkerSettings(lose_node))
    execute_job(text)
