"""Promises of every registered pool, whatever its name, as far as its package is installed."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import Executor, as_completed
from functools import partial
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools.base import POOLS, MissingPackage, Pool, PoolOptions
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.progress import Progress
from lengthwise.runs.signals import Interrupted
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense_strings=2).limit_lengths(41)


def pool_of(name: str, options: PoolOptions) -> Iterator[Pool]:
    """Open a pool; without its package the test is skipped."""
    try:
        with POOLS[name](options) as pool:
            yield pool
    except MissingPackage as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=list(POOLS))
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module", params=list(POOLS))
def pool(request) -> Iterator[Pool]:
    """A pool of one worker, which all tests use."""
    yield from pool_of(request.param, PoolOptions(num_workers=1))


def spec_of(seed: int, steps: int = 8) -> RunSpec:
    sizes = {"batch_size": 4, "min_length": 1, "max_length": 6, "checkpoint_every": 10}
    return make_spec("parity", "rnn", {"train": {"steps": steps} | sizes}, seed=seed)


def test_it_is_an_executor_that_says_what_to_do_with_a_run_that_is_held(pool: Pool) -> None:
    assert isinstance(pool.executor, Executor)
    assert pool.held in get_args(get_type_hints(Pool)["held"])


def test_every_job_has_its_result_and_an_error_is_of_one_job_alone(pool: Pool) -> None:
    jobs = {pool.executor.submit(int, text): text for text in ("1", "20", "one", "300", "20")}
    results = {}
    for future in as_completed(jobs, timeout=120):
        error = future.exception()
        results[future] = str(error) if type(error) is ValueError else future.result()
    assert sorted(map(str, results.values())) == [
        "1", "20", "20", "300", "invalid literal for int() with base 10: 'one'",
    ]  # fmt: skip
    assert all(str(results[future]) == text for future, text in jobs.items() if text.isdecimal())


def ended(told: list[Progress]) -> set[str]:
    return {progress.run_id for progress in told if progress.phase == "done"}


def test_a_sweep_does_each_run_once_and_names_the_one_that_fails(pool: Pool, tmp_path: Path) -> None:
    specs, told = [spec_of(seed) for seed in range(3)], list[Progress]()
    (tmp_path / specs[1].id).write_text("not a folder")
    sweep = partial(execute_all, specs, tmp_path, [PLAN] * 3, told.append, pool=pool.executor, held=pool.held)
    outcomes = sweep()
    assert [outcome.spec for outcome in outcomes] == specs
    assert [outcome.result is not None for outcome in outcomes] == [True, False, True]
    assert re.match(rf"\w+Error: .*{re.escape(specs[1].id)}", outcomes[1].reason), "as the job raised it"
    done = [specs[index].id for index in (0, 2)]
    deadline = time.monotonic() + 60
    while not ended(told) >= set(done) and time.monotonic() < deadline:  # workers may report after their job is over
        time.sleep(0.02)
    assert ended(told) == set(done)
    sweep()
    assert [len(RunFolder(tmp_path / run).read_beginnings()) for run in done] == [1, 1]


def test_a_sweep_that_is_stopped_keeps_what_is_done(pool: Pool, tmp_path: Path) -> None:
    specs, told = [spec_of(0), spec_of(1, steps=20_000)], list[Progress]()

    def stop_requested() -> bool:
        return any(progress.run_id == specs[1].id and progress.done for progress in told)

    with pytest.raises(Interrupted, match="run the same command again"):
        execute_all(
            specs, tmp_path, [PLAN] * 2, told.append, pool=pool.executor, held=pool.held, stop_requested=stop_requested
        )
    first, second = (RunFolder(tmp_path / spec.id) for spec in specs)
    assert first.read_result() is not None
    assert second.read_status().status == "interrupted"
    assert second.read_status().step > 0
    assert pool.executor.submit(abs, -3).result(timeout=120) == 3, "the pool itself goes on"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        (PoolOptions(num_workers=0), "workers"),
        (PoolOptions(scheduler="nowhere"), "scheduler"),
        (PoolOptions(num_workers=2, scheduler="tcp://127.0.0.1:1"), "(num_workers|scheduler)"),
    ],
)
def test_options_that_no_pool_takes_are_one_sentence(name: str, options: PoolOptions, argument: str) -> None:
    with pytest.raises(ValueError, match=f"^{argument}: expected .*, got .*"):
        next(pool_of(name, options))
