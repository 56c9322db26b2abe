"""A sweep on a Dask cluster of this machine, one of whose nodes is lost while it works."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.pools.base import POOLS, PoolOptions
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense_strings=2).up_to(41)


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


@pytest.mark.parametrize(
    ("num_runs", "num_workers"), [(2, 2), pytest.param(12, 3, marks=pytest.mark.slow)], ids=["small", "whole"]
)
def test_a_lost_node_costs_no_run_and_no_bit(num_runs: int, num_workers: int, tmp_path: Path) -> None:
    settings = {"train": {"steps": 40, "batch_size": 4, "min_length": 1, "max_length": 6, "checkpoint_every": 15}}
    specs: list[RunSpec] = [make_spec("parity", "rnn", settings, seed=seed) for seed in range(num_runs)]
    told = []
    with cluster(tmp_path, num_workers) as found_by:
        options = PoolOptions(scheduler=address_in(found_by))
        with POOLS["dask"](options) as (executor, held):
            outcomes = execute_all(specs, tmp_path / "runs", [PLAN] * num_runs, told.append, pool=executor, held=held)
    assert all(outcome.result for outcome in outcomes), [outcome.reason for outcome in outcomes]
    assert (tmp_path / "lost").exists()
    begun = [len(RunFolder(tmp_path / "runs" / spec.id).read_beginnings()) for spec in specs]
    assert sorted(begun) == [1] * (num_runs - 1) + [2]
    assert {progress.run_id for progress in told if progress.phase == "done"} == {spec.id for spec in specs}
    lost = specs[begun.index(2)]
    for spec in {lost.id: lost, specs[0].id: specs[0]}.values():
        execute(spec, tmp_path / "undisturbed", PLAN)
        ours, theirs = (load_run(tmp_path / root / spec.id).model.state_dict() for root in ("runs", "undisturbed"))
        assert ours.keys() == theirs.keys()
        assert all(ours[name].equal(theirs[name]) for name in ours)
