"""Sweeps that several processes, or several shares of an array, do together on one folder."""

import errno
import fcntl
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import exit_code, free_port

from lengthwise.cli import progress
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import EXPERIMENTS
from lengthwise.files import HOST, write_by_rename
from lengthwise.runs import execute as execution
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.lock import RunHeld, check_locks
from lengthwise.runs.pools import base
from lengthwise.runs.pools.local import PRELOADED
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.spec import RunSpec, make_spec

PLAN = EvaluationPlan(dense_strings=2).limit_lengths(41)


def small_specs(count: int) -> list[RunSpec]:
    settings = {"train": {"steps": 8, "batch_size": 4, "min_length": 1, "max_length": 6}}
    return [make_spec("parity", "rnn", settings, seed=seed) for seed in range(count)]


def sweep(root: Path, count: int) -> None:
    """What each of several machines does; a thread is pool enough for one of them."""
    specs = small_specs(count)
    with ThreadPoolExecutor(1) as pool:
        outcomes = execute_all(specs, root, [PLAN] * count, lambda progress: None, pool=pool)
    assert all(outcome.result for outcome in outcomes), [outcome.reason for outcome in outcomes]


def test_processes_that_share_a_folder_do_each_run_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # there is one server
    processes = [context.Process(target=sweep, args=(tmp_path, 6)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    begun = {spec.id: RunFolder(tmp_path / spec.id).read_beginnings() for spec in small_specs(6)}
    assert all(len(lines) == 1 for lines in begun.values()), begun
    assert not [*tmp_path.glob(".sweep-*"), *tmp_path.glob(".lock-*")]


def test_a_run_that_another_process_finishes_before_its_lock_is_taken_is_not_begun(tmp_path: Path, monkeypatch) -> None:
    (spec,) = small_specs(1)
    result = execution.execute(spec, tmp_path, PLAN)
    looks = [lambda *_: None, execution.finished_result]
    monkeypatch.setattr(execution, "finished_result", lambda *given: looks.pop(0)(*given))
    assert execution.execute(spec, tmp_path, PLAN) == result
    assert len(RunFolder(tmp_path / spec.id).read_beginnings()) == 1


def test_who_is_refused_a_run_changes_nothing_of_it(tmp_path: Path) -> None:
    (spec,) = small_specs(1)
    folder = RunFolder(tmp_path / spec.id)
    folder.create(spec, plan=PLAN)
    before = (folder.path / "run.json").read_bytes()
    with folder.locked(), pytest.raises(RunHeld):
        execution.execute(spec, tmp_path, PLAN.model_copy(update={"long": ((50, 1),)}))
    assert (folder.path / "run.json").read_bytes() == before


def test_shares_of_an_array_do_each_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    done: list[str] = []

    def execute_here(specs, root, plans, listener, **_) -> list[Outcome]:
        done.extend(spec.id for spec in specs)
        return [Outcome(spec, None, "left out here") for spec in specs]

    monkeypatch.setattr(progress, "execute_all", execute_here)
    folders = ("--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    for number in (1, 2, 3):
        exit_code("reproduce", "recurrent/bounded", "--scale", "smoke", *folders, "--shard", f"{number}/3")
    assert sorted(done) == sorted(spec.id for spec in EXPERIMENTS["recurrent/bounded"]("smoke").specs)
    assert not (tmp_path / "pages").exists()
    assert "of shard 3/3 are finished; after all shards" in capsys.readouterr().out


def test_a_run_that_is_held_is_told_from_a_disk_without_locks(tmp_path: Path, monkeypatch) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked() as begin:
        begin()
        with pytest.raises(RunHeld, match=rf"working on this run \(process {os.getpid()} on {HOST}\); wait"):
            folder.locked().__enter__()

    def reject(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", reject)
    for lock in (folder.locked().__enter__, lambda: check_locks(tmp_path)):
        with pytest.raises(OSError, match="cannot be locked: No locks available; keep runs on a local disk, or on"):
            lock()


def test_locks_that_are_given_twice_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    with pytest.raises(OSError, match="a held lock was granted a second time"):
        check_locks(tmp_path)


def test_drafts_of_two_machines_have_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts: list[str] = []
    replace = Path.replace

    def watch(self: Path, target: Path) -> Path:
        drafts.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    write_by_rename(tmp_path / "a.json", b"1")
    with pytest.raises(OSError, match=r"^/.*/x{250}: cannot be written: File name too long$"):
        write_by_rename(tmp_path / ("x" * 250), b"1")
    assert drafts == [f".a.json.{HOST}.{os.getpid()}"]
    assert (tmp_path / "a.json").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--shard", "3/2"],
            "--shard: expected I/N with I from 1 to N, got '3/2'; for the second of three shards, give 2/3",
        ),
        (["--shard", "0/2"], "--shard: expected I/N"),
        (["--shard", "1/2", "--page-only"], "--shard: not allowed with --page-only"),
        (["--pool", "slurm"], "slurm"),
        (["--scheduler", "tcp://here:1"], "--scheduler: expected no scheduler with pool local"),
        (["--pool", "dask", "--scheduler", "here"], "--scheduler: expected an address such as tcp://node1:8786"),
    ],
)
def test_options_that_do_not_fit_get_one_sentence(options: list[str], sentence: str, tmp_path: Path, capsys) -> None:
    folders = ("--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    assert exit_code("reproduce", "recurrent/bounded", "--scale", "smoke", *folders, *options) == 2
    assert sentence in capsys.readouterr().err


def test_a_package_that_is_missing_and_a_scheduler_that_does_not_answer_are_said() -> None:
    with pytest.raises(ValueError, match=r"expected the package no_such for pool ray, got none; pip install 'lengthw"):
        base.require("ray", "no_such")
    with pytest.raises(OSError, match=r"scheduler: no answer from tcp://127\.0\.0\.1:"):
        base.check_reachable(f"tcp://127.0.0.1:{free_port()}")
