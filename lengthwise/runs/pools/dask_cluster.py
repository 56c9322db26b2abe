"""A pool of Dask's: the workers of a scheduler, or processes of this machine."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lengthwise.runs.pools.base import POOLS, REACH_SECONDS, Pool, PoolOptions, require
from lengthwise.runs.signals import signals_blocked

ADDRESS = "DASK_SCHEDULER_ADDRESS"
"""The environment variable that names a scheduler."""


@POOLS.register("dask")
@contextmanager
def dask_pool(options: PoolOptions) -> Iterator[Pool]:
    """Workers of a Dask scheduler, or a cluster of this machine's processes for as long as the sweep takes.

    Dask executes the job of a lost worker again on another one, up to three times (`allowed-failures`).
    """
    require("dask", "distributed")
    from distributed import Client, LocalCluster

    address = options.address(os.environ.get(ADDRESS))
    with ExitStack() as stack:
        if address is None:
            with signals_blocked():
                cluster = LocalCluster(
                    n_workers=options.workers_or_default,
                    threads_per_worker=1,
                    memory_limit=0,  # else a worker is ended at 95 % of its share
                    dashboard_address=None,
                )
            address = stack.enter_context(cluster).scheduler_address
        try:
            client = stack.enter_context(Client(address, timeout=REACH_SECONDS))
        except OSError as error:
            raise OSError(f"scheduler: expected one of Dask at {address}, got none ({error})") from None
        yield Pool(client.get_executor(pure=False))  # pure: equal jobs would be one
