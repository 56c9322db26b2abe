"""A pool of Dask: the workers of a scheduler, or processes of this machine."""

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
    """Open a pool on a Dask scheduler or, without an address, on a cluster of this machine's processes.

    The local cluster ends with the sweep. If a worker is lost, Dask executes its job again on another worker, up to
    three times (`allowed-failures`).
    """
    require("dask", "distributed")
    from distributed import Client, LocalCluster

    address = options.address(os.environ.get(ADDRESS))
    way_out = "give the address of such a scheduler"
    with ExitStack() as stack:
        if address is None:
            way_out = "try again, or use pool local"
            # Ctrl-C goes to the whole process group; workers have to save their runs instead of ending.
            with signals_blocked():
                cluster = LocalCluster(
                    n_workers=options.workers_or_default,
                    threads_per_worker=1,
                    memory_limit=0,  # otherwise Dask ends a worker at 95 % of its share of the memory
                    dashboard_address=None,
                )
            address = stack.enter_context(cluster).scheduler_address
        try:
            client = stack.enter_context(Client(address, timeout=REACH_SECONDS))
        except OSError as error:
            raise OSError(f"scheduler: expected a Dask scheduler at {address}, got none ({error}); {way_out}") from None
        yield Pool(client.get_executor(pure=False))  # with pure=True, Dask would execute equal jobs once
