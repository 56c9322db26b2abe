"""The contract of a pool: an executor for the runs of a sweep, opened by its name."""

import importlib.util
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from lengthwise.registry import Registry
from lengthwise.runs.progress import Listener

DEFAULT_WORKERS = 2
REACH_SECONDS = 10.0
"""The number of seconds within which a scheduler has to answer."""


class ReportingExecutor(Executor, ABC):
    """An executor whose workers report progress; for other executors, progress is read from the folders of the runs."""

    @abstractmethod
    def report_to(self, listener: Listener) -> None:
        """Report the progress of all jobs submitted from now on to `listener`, which must not raise exceptions."""


class Pool(NamedTuple):
    """An executor, and what a sweep does with a run that another process holds.

    If `held` is "wait", the run is tried again until it is finished or released. The runs of a lost machine are also
    released after some time. If `held` is "fail", the run counts as failed.
    """

    executor: Executor
    held: Literal["wait", "fail"] = "wait"


class PoolOptions(NamedTuple):
    """The options of a pool: the number of its own workers, or the address of a scheduler that has workers."""

    num_workers: int | None = None
    scheduler: str | None = None

    @property
    def workers_or_default(self) -> int:
        """The given number of workers, or the default; below 1, a ValueError is raised, because no run would begin."""
        if self.num_workers is not None and self.num_workers < 1:
            raise ValueError(f"workers: expected a number of at least 1, got {self.num_workers}; give for example 2")
        return DEFAULT_WORKERS if self.num_workers is None else self.num_workers

    def reject_scheduler(self, pool: str) -> None:
        """Raise a ValueError if a scheduler is given to a pool that cannot use it."""
        if self.scheduler is not None:
            raise ValueError(
                f"scheduler: expected no scheduler with pool {pool}, got {self.scheduler}; use pool dask or ray"
            )

    def address(self, from_environment: str | None, unchecked: Container[str] = ()) -> str | None:
        """Return the scheduler's address, if there is one, after a test connection.

        The addresses in `unchecked` are returned without this test.

        Raises:
            ValueError: a number of workers is also given, although the cluster has its own workers; or the address is
                invalid.
            OSError: the scheduler does not answer within `REACH_SECONDS`.
        """
        address = self.scheduler or from_environment or None
        if address is not None:
            if self.num_workers is not None:
                raise ValueError(
                    f"num_workers: expected no number with the scheduler {address}, whose cluster has its own workers, "
                    f"got {self.num_workers}; leave num_workers out"
                )
            # The address is tried first, because Ray's connection has no time limit.
            if address not in unchecked:
                check_reachable(address)
        return address


def check_reachable(address: str) -> None:
    """Check that an address such as ``tcp://node1:8786`` or ``node1:6379`` answers.

    Raises:
        ValueError: the text is not such an address.
        OSError: nothing answers within `REACH_SECONDS`.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (host and colon and port.isdecimal() and len(port) <= 5):
        raise ValueError(
            f"scheduler: expected an address such as tcp://node1:8786, got {address}; give the host and the port"
        )
    try:
        # No message is sent, so a scheduler of any version ignores the connection.
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise OSError(
            f"scheduler: no answer from {address} ({error}); start the scheduler, or leave its address out"
        ) from None


class MissingPackage(ValueError):
    """An error: the package of a pool is not installed. The message contains the command that installs the package."""


def require(pool: str, package: str) -> None:
    """Check that the package of a pool is installed.

    Raises:
        MissingPackage: the package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackage(
            f"pool: expected the package {package} for pool {pool}, got none; pip install 'lengthwise[{pool}]'"
        )


PoolOpener = Callable[[PoolOptions], AbstractContextManager[Pool]]
POOLS: Registry[PoolOpener] = Registry("pool", "lengthwise.runs.pools")
