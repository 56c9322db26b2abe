"""What the system refuses while a command runs, in sentences: full disks, deleted folders, no shared memory."""

import errno
import os
import shutil
from hashlib import blake2b
from pathlib import Path

import pytest
from command import Command, exit_code

from lengthwise import execute, make_spec
from lengthwise.automata.labeled import labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import naming, reason
from lengthwise.formats.files import write_machine
from lengthwise.runs.journal import JournalWriter, Probe
from lengthwise.runs.pools import local
from lengthwise.runs.progress import Progress
from lengthwise.runs.spec import parse_assignments, read_settings
from lengthwise.tasks.given.reading import read_examples

PLAN = EvaluationPlan(dense=(41, 42), dense_strings=2, long=(), structured=())


def small_spec(**train: object) -> object:
    return make_spec("parity", "gru", {"model": {"d_model": 4}, "train": {"batch_size": 2, "max_length": 40, **train}})


def test_a_full_disk_names_the_journal() -> None:
    with open("/dev/full", "ab") as file:
        writer = JournalWriter(Path("probes.jsonl"), file, blake2b())
        writer.write(Probe(1, 0.5, 0.1))
        with pytest.raises(OSError, match=r"^probes\.jsonl: cannot be written: No space left on device$"):
            writer.sync()
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # or closing it would fail again


def test_training_on_a_full_disk_says_which_file_and_what_is_kept(tmp_path: Path) -> None:
    settings = {"train.steps": 2_000, "train.batch_size": 2, "train.checkpoint_every": 2_000, "model.d_model": 4}
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    code, printed = Command(["train", "parity", "gru", "--runs", ".", *words], tmp_path, max_file_size=20_000).wait()
    (run,) = tmp_path.glob("parity-*")
    assert code == 1
    problem = printed.splitlines()[-1]
    assert problem.startswith(f"lengthwise: {run.name}/metrics.jsonl: cannot be written: File too large; ")
    assert problem.endswith(f"; {run.name} has no checkpoint yet; the same command begins again")


def test_a_folder_that_is_deleted_during_training_is_not_said_to_be_kept(tmp_path: Path) -> None:
    spec = small_spec(steps=40, checkpoint_every=10)

    def delete(progress: Progress) -> None:
        if progress.done == 20:
            shutil.rmtree(tmp_path / spec.id)

    with pytest.raises(OSError, match=f"{spec.id} and its checkpoint were deleted; the same command") as error:
        execute(spec, tmp_path, PLAN, delete)
    assert "is kept" not in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / spec.id}/")


def test_a_failure_after_a_checkpoint_says_which_step_is_kept(tmp_path: Path, monkeypatch) -> None:
    spec = small_spec(steps=40, checkpoint_every=10)

    def fail(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "some/file")

    def break_after_20(progress: Progress) -> None:
        if progress.done == 20:
            monkeypatch.setattr("lengthwise.runs.execute.save_checkpoint", fail)

    expected = f"^some/file: Permission denied; step 20 is saved in {tmp_path / spec.id}; "
    with pytest.raises(OSError, match=expected):
        execute(spec, tmp_path, PLAN, break_after_20)


def test_without_shared_memory_the_way_out_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    def no_semaphores(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(local, "ProcessPoolExecutor", no_semaphores)
    arguments = ["train", "parity", "gru", "--seeds", "0-1", "--set", "train.steps=5", "--runs", str(tmp_path)]
    assert exit_code(*arguments, "--workers", "2") == 1
    assert "processes cannot share memory here (No such file or directory); make /dev/shm" in capsys.readouterr().err


def test_a_deleted_working_folder_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for arguments in (["describe", "ab"], ["learn", "x.csv", "--out", "y"], ["train", "parity", "gru"]):
        assert exit_code(*arguments) == 2
        expected = "lengthwise: working folder: expected an existing folder, got a deleted one; change to another"
        assert capsys.readouterr().err.startswith(expected)


def test_numbers_with_more_digits_than_python_converts(tmp_path: Path) -> None:
    digits = "1" * 5_000
    (tmp_path / "labels.jsonl").write_text(f'{{"string": "ab", "label": "x"}}\n{{"string": "b", "label": {digits}}}\n')
    with pytest.raises(
        ValueError, match=r"^examples: row 2: expected numbers that Python can read, got a number with 5,000 digits"
    ):
        read_examples(tmp_path / "labels.jsonl")
    (tmp_path / "strings.dat").write_text(f"1 2\n1 {digits} a\n")
    with pytest.raises(ValueError, match=r"^examples: row 2: expected label, length and symbols, got '1 1111"):
        read_examples(tmp_path / "strings.dat")
    (tmp_path / "settings.toml").write_text(f"[train]\nsteps = {digits}\n")
    with pytest.raises(ValueError, match=r"settings\.toml: cannot be read as TOML: "):
        read_settings(tmp_path / "settings.toml")
    assert parse_assignments([f"train.steps={digits}"]) == {"train": {"steps": digits}}


def test_errors_of_the_system_without_a_file_are_told_without_their_number() -> None:
    assert reason(OSError(errno.ENOSPC, "No space left on device")) == "No space left on device"
    assert reason(OSError(errno.EACCES, "Permission denied", "x")) == "x: Permission denied"
    assert reason(OSError("a sentence")) == "a sentence"
    with pytest.raises(OSError, match=r"^x: cannot be written: No space left on device$"), naming(Path("x")):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_machine_for_a_missing_folder_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "none" / "m.dot"
    with pytest.raises(OSError, match=f"^{file}: cannot be written: No such file or directory; create its folder"):
        write_machine(labeled_dfa(dfa_from_regex("a*")), file)
