"""A sweep on a Dask cluster of this machine, one of whose nodes is lost while it works."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from lost_sweep import PLAN, SETTINGS, check_lost_node_costs_nothing

from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools.base import POOLS, PoolOptions
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.spec import make_spec


@contextmanager
def cluster(folder: Path, num_workers: int) -> Iterator[str]:
    """The file by which a scheduler of these workers is found; each has a nanny, and can be lost with it."""
    found_by = folder / "scheduler.json"
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    environment = os.environ | {"LOST_NODE": str(folder / "lost"), "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    common = ["--scheduler-file", str(found_by)]
    worker = ["worker", *common, "--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--preload", "lost_node"]
    commands = [["scheduler", *common, "--host", "127.0.0.1", "--port", "0", "--no-dashboard"], *[worker] * num_workers]
    with ExitStack() as stack:
        for command in commands:
            with (folder / "log").open("a") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "dask", *command], cwd=folder, env=environment, stdout=log, stderr=log
                )
            stack.callback(process.wait)
            stack.callback(process.terminate)
        yield str(found_by)


def address_in(found_by: str) -> str:
    from distributed import Client

    with Client(scheduler_file=found_by, timeout=60) as client:
        return str(client.scheduler.address)


def test_runs_are_done_by_a_worker_that_the_scheduler_knows(tmp_path: Path) -> None:
    """A thread of this process is the worker."""
    from distributed import LocalCluster

    specs = [make_spec("parity", "rnn", SETTINGS, seed=seed) for seed in range(2)]
    with (
        LocalCluster(n_workers=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None) as cluster,
        POOLS["dask"](PoolOptions(scheduler=cluster.scheduler_address)) as pool,
    ):
        outcomes = execute_all(specs, tmp_path, [PLAN] * 2, lambda _: None, pool=pool.executor, held=pool.held)
    assert all(outcome.result for outcome in outcomes), [outcome.reason for outcome in outcomes]
    assert [len(RunFolder(tmp_path / spec.id).read_beginnings()) for spec in specs] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(("num_runs", "num_workers"), [(2, 2), (12, 3)], ids=["small", "whole"])
def test_a_lost_node_costs_no_run_and_no_bit(num_runs: int, num_workers: int, tmp_path: Path) -> None:
    with (
        cluster(tmp_path, num_workers) as found_by,
        POOLS["dask"](PoolOptions(scheduler=address_in(found_by))) as pool,
    ):
        check_lost_node_costs_nothing(num_runs, pool, tmp_path)
