"""A sweep on a Ray cluster of this machine, one of whose nodes is lost while it works."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import exit_code
from lost_node import execute_job_and_lose_node
from lost_sweep import check_lost_node_costs_nothing

from lengthwise.experiment import EXPERIMENTS
from lengthwise.runs.pools.base import POOLS, PoolOptions

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("ray")

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nodes and workers import what this process does, and see the same file about the lost one."""
    folders = [str(Path(__file__).parent), *filter(None, sys.path)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))
    monkeypatch.setenv("LOST_NODE", str(tmp_path / "lost"))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")


@contextmanager
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes with a core each; the head has none."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args=NODE | {"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(2):
            cluster.add_node(**NODE)
        yield cluster.address
    finally:
        cluster.shutdown()


class LosingExecutor(Executor):
    """Submits to another executor what loses a node."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def submit(self, fn: Callable[..., None], /, *args: str, **_: object) -> "Future[None]":
        assert fn.__name__ == "execute_job"
        return self._executor.submit(execute_job_and_lose_node, *args)


@pytest.mark.usefixtures("paths")
def test_a_lost_node_costs_no_run_and_no_bit(tmp_path: Path) -> None:
    with two_nodes() as address, POOLS["ray"](PoolOptions(scheduler=address)) as pool:
        check_lost_node_costs_nothing(12, pool, tmp_path, LosingExecutor(pool.executor))


@pytest.mark.usefixtures("paths")
def test_the_command_starts_a_cluster_of_its_own(tmp_path: Path) -> None:
    arguments = ("--scale", "smoke", "--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    assert exit_code("reproduce", "recurrent/bounded", *arguments, "--pool", "ray", "--workers", "2") == 0
    specs = EXPERIMENTS["recurrent/bounded"]("smoke").specs
    assert {path.parent.name for path in tmp_path.rglob("result.json")} == {spec.id for spec in specs}
