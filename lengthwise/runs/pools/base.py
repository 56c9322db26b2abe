"""What a pool is: an executor on which the runs of a sweep are executed, opened by its name."""

import importlib.util
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Container
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from lengthwise.registry import Registry
from lengthwise.runs.execute import Listener

DEFAULT_WORKERS = 2
REACH_SECONDS = 10.0
"""How long a scheduler is given to answer."""


class ReportingExecutor(Executor, ABC):
    """An executor whose workers report their progress; with others, progress is read from the folders of the runs."""

    @abstractmethod
    def report_to(self, listener: Listener) -> None:
        """Tell `listener`, which must raise nothing, of the progress of all jobs submitted from now on."""


class Pool(NamedTuple):
    """An executor, and what a sweep on it does with a run that another process holds.

    `wait`: look at it again until it is finished, or let go, as that of a lost machine is after a while.
    """

    executor: Executor
    held: Literal["wait", "fail"] = "wait"


class PoolOptions(NamedTuple):
    """How a pool is opened: how many workers of its own it has, or the address of a scheduler that has them."""

    num_workers: int | None = None
    scheduler: str | None = None

    @property
    def workers_or_default(self) -> int:
        """Their number; a ValueError for one below 1, with which nothing would ever be run."""
        if self.num_workers is not None and self.num_workers < 1:
            raise ValueError(f"workers: expected a number of at least 1, got {self.num_workers}")
        return DEFAULT_WORKERS if self.num_workers is None else self.num_workers

    def reject_scheduler(self, pool: str) -> None:
        """Check that a pool without a scheduler was given none."""
        if self.scheduler is not None:
            raise ValueError(f"scheduler: expected none with pool {pool}, got {self.scheduler}; take pool dask or ray")

    def address(self, from_environment: str | None, unchecked: Container[str] = ()) -> str | None:
        """The scheduler's address, if there is one, after it has answered, unless it is a word of its own for one.

        Raises:
            ValueError: a number of workers is given too, which such a cluster has already; or the address is none.
            OSError: it does not answer in `REACH_SECONDS`.
        """
        address = self.scheduler or from_environment or None
        if address is not None:
            if self.num_workers is not None:
                raise ValueError(
                    f"num_workers: expected none with the scheduler {address}, whose cluster has its workers, got "
                    f"{self.num_workers}; leave it out"
                )
            if address not in unchecked:
                check_reachable(address)
        return address


def check_reachable(address: str) -> None:
    """Check that something answers at an address such as ``tcp://node1:8786`` or ``node1:6379``.

    Raises:
        ValueError: it is no such address.
        OSError: nothing answers in `REACH_SECONDS`.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not (host and colon and port.isdecimal() and len(port) <= 5):
        raise ValueError(f"scheduler: expected an address such as tcp://node1:8786, got {address}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise OSError(f"scheduler: no answer from {address} ({error}); start it, or leave it out") from None


class MissingPackage(ValueError):
    """A pool's package that is not installed; the sentence has the command that installs it."""


def require(pool: str, package: str) -> None:
    """Check that the package that a pool needs is installed.

    Raises:
        MissingPackage: it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise MissingPackage(
            f"pool: expected the package {package} for pool {pool}, got none; pip install 'lengthwise[{pool}]'"
        )


PoolOpener = Callable[[PoolOptions], AbstractContextManager[Pool]]
POOLS: Registry[PoolOpener] = Registry("pool", "lengthwise.runs.pools")
