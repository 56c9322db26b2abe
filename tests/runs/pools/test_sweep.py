"""What a sweep promises on any executor: it is followed and stopped through files, and checks its workers."""

import errno
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from cut_off import killed_at

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import Interrupted
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools import folder_progress, sweep, worker
from lengthwise.runs.pools.base import ReportingExecutor
from lengthwise.runs.pools.outcome import finished
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.pools.worker import SweepFile, execute_job, job, sweep_file
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.result import RunStatus
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense_strings=2).limit_lengths(41)


def small_spec(seed: int = 0, steps: int = 8) -> RunSpec:
    sizes = {"batch_size": 4, "min_length": 1, "max_length": 6, "checkpoint_every": 10}
    return make_spec("parity", "rnn", {"train": {"steps": steps} | sizes}, seed=seed)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everybody looks far more often."""
    monkeypatch.setattr(folder_progress, "INSPECTION_SECONDS", 0.02)
    monkeypatch.setattr(sweep, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(sweep, "RETRY_HELD_SECONDS", 0.05)
    worker.configure_worker(worker.WorkerSettings(check_every=0.02))
    yield
    worker.configure_worker(worker.WorkerSettings())


@pytest.mark.usefixtures("impatient")
def test_a_sweep_is_watched_and_stopped_through_files_and_stops_no_later_one(tmp_path: Path) -> None:
    specs, told = [small_spec(0, steps=100_000), small_spec(1)], list[Progress]()
    with ThreadPoolExecutor(1) as pool, pytest.raises(Interrupted, match="run the same command again"):
        execute_all(specs, tmp_path, [PLAN] * 2, told.append, pool=pool, stop_requested=lambda: len(told) > 1)
    assert {progress.phase for progress in told} == {"training"}
    assert 0 < told[0].done < told[-1].done
    status = RunFolder(tmp_path / specs[0].id).read_status()
    assert (status.status, status.step >= told[-1].done) == ("interrupted", True)
    assert not (tmp_path / specs[1].id).exists(), "what had not begun does not begin"
    with ThreadPoolExecutor(1) as pool:
        (outcome,) = execute_all(specs[1:], tmp_path, [PLAN], told.append, pool=pool)
    assert outcome.result is not None
    assert told[-1].phase == "done"


@pytest.mark.usefixtures("impatient")
def test_a_run_that_is_held_is_waited_for_until_it_is_free(tmp_path: Path) -> None:
    spec, told = small_spec(), list[Progress]()
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec)
    lock = folder.locked()
    lock.__enter__()

    def free(progress: Progress) -> None:
        told.append(progress)
        if progress.phase == "waiting":
            lock.__exit__(None, None, None)

    with ThreadPoolExecutor(1) as pool:
        (outcome,) = execute_all([spec], tmp_path, [PLAN], free, pool=pool)
    assert outcome.result is not None
    assert [progress.phase for progress in told][:1] == ["waiting"]
    assert "another process is working on this run" in told[0].note


def test_a_run_that_is_held_fails_where_nobody_waits(tmp_path: Path) -> None:
    spec = small_spec()
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec)
    with folder.locked(), ThreadPoolExecutor(1) as pool:
        (outcome,) = execute_all([spec], tmp_path, [PLAN], lambda progress: None, pool=pool, held="fail")
    assert outcome.result is None
    assert "another process is working on this run" in outcome.reason


class Lossy(Executor):
    """Gives up its first job, and says of the others that they are done."""

    def __init__(self) -> None:
        self.jobs = 0

    def submit(self, fn, /, *args, **kwargs) -> "Future[None]":
        self.jobs += 1
        future: Future[None] = Future()
        if self.jobs == 1:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(None)
        return future


def test_what_a_pool_says_is_no_result(tmp_path: Path) -> None:
    specs = [small_spec(0), small_spec(1)]
    given_up, empty = execute_all(specs, tmp_path, [PLAN] * 2, lambda progress: None, pool=Lossy())
    assert (given_up.result, given_up.reason) == (None, f"{CancelledError.__name__}: the pool cancelled the run")
    assert empty.result is None
    assert empty.reason.startswith("the worker is done, but there is no result in")


def test_a_worker_of_another_kind_or_folder_says_so(tmp_path: Path) -> None:
    with sweep_file(tmp_path) as sweep:
        content = json.loads(job(small_spec(), PLAN, sweep))
    other = content | {"software": content["software"] | {"lengthwise": "0.0.1", "Python": "3.99"}}
    with pytest.raises(
        ValueError, match=r"expected lengthwise 0\.0\.1, Python 3\.99 as in the process that started the sweep, got"
    ):
        execute_job(json.dumps(other))
    with pytest.raises(ValueError, match=r"expected the sweep's folder .*, got none; share this folder"):
        execute_job(json.dumps(content | {"sweep": str(tmp_path / "elsewhere" / ".sweep-1")}))
    with pytest.raises(Interrupted, match="does not exist: the sweep is over, or its folder is not shared"):
        execute_job(json.dumps(content))
    assert not list(tmp_path.iterdir())


def test_a_file_system_that_fails_for_once_ends_no_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sweep_file(tmp_path) as sweep:
        assert sweep.exists()
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise OSError(errno.EIO, "Input/output error")

            patch.setattr(Path, "open", fail)
            assert sweep.exists()
    assert not SweepFile(sweep.path).exists()


def test_what_diverged_is_not_called_not_run(tmp_path: Path) -> None:
    """A page that is made again without running anything says what the one before said."""
    specs = [make_spec("parity", "rnn", {}, seed=seed) for seed in range(2)]
    folder = RunFolder(tmp_path / specs[0].id)
    folder.create(specs[0])
    folder.write_status(RunStatus(status="diverged", step=7, message="training diverged at step 8: loss nan"))
    outcomes = finished(specs, tmp_path, [EvaluationPlan()] * 2)
    assert [o.reason for o in outcomes] == ["Diverged: training diverged at step 8: loss nan", "not run yet"]


def test_the_runs_of_the_lowest_seed_are_begun_first(tmp_path: Path) -> None:
    specs, told = [small_spec(seed) for seed in (1, 0, 2, 0)], list[str]()
    specs[3] = small_spec(0, steps=9)
    with ThreadPoolExecutor(1) as pool:
        outcomes = execute_all(specs, tmp_path, [PLAN] * 4, lambda progress: told.append(progress.run_id), pool=pool)
    assert [outcome.spec for outcome in outcomes] == specs
    assert list(dict.fromkeys(told)) == [specs[index].id for index in (1, 3, 0, 2)]


class Telling(ThreadPoolExecutor, ReportingExecutor):
    """Tells of its jobs from its own thread, as the pool of this machine does."""

    def report_to(self, listener: Listener) -> None:
        self.listener = listener

    def submit(self, fn, /, *args, **kwargs) -> "Future[None]":
        def job() -> None:
            self.listener(Progress("run", "training", 1, 2))
            fn(*args, **kwargs)

        return super().submit(job)


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, Telling])
def test_what_a_listener_raises_ends_the_sweep(pool: type[ThreadPoolExecutor], tmp_path: Path) -> None:
    """As printing does where the disk is full: runs are saved, and no worker waits for one who does not read."""
    calls = list[str]()

    def fail(progress: Progress) -> None:
        calls.append(progress.phase)
        raise OSError(errno.ENOSPC, "No space left on device")

    specs = [small_spec(0), small_spec(1)]
    with pool(1) as executor, pytest.raises(OSError, match="No space left"):
        execute_all(specs, tmp_path, [PLAN] * 2, fail, pool=executor)
    assert len(calls) == 1
    with ThreadPoolExecutor(1) as executor:
        outcomes = execute_all(specs, tmp_path, [PLAN] * 2, lambda progress: None, pool=executor)
    assert all(outcome.result is not None for outcome in outcomes)


def test_the_file_of_a_killed_sweep_is_removed_by_the_next(tmp_path: Path) -> None:
    def die() -> None:
        with sweep_file(tmp_path):
            os.kill(os.getpid(), signal.SIGKILL)

    assert killed_at(0, die)
    (left,) = tmp_path.iterdir()
    elsewhere = tmp_path / ".sweep-elsewhere-01234567"
    elsewhere.touch()
    with sweep_file(tmp_path) as first, sweep_file(tmp_path) as second:
        assert not left.exists()
        assert first.exists()
        assert second.exists()
        assert {*tmp_path.iterdir()} == {first.path, second.path, elsewhere}
    assert [*tmp_path.iterdir()] == [elsewhere]
