"""Flipped bytes, files cut short, disks that are full: one sentence, exit code 1 or 2, and nothing finished is lost."""

import random
import shutil
from pathlib import Path

import pytest
from command import Command

from lengthwise.cli.app import main
from lengthwise.runs.folder import RunFolder

pytestmark = pytest.mark.unchecked

SETTINGS = [
    *("--set", "train.steps=12", "--set", "train.batch_size=4", "--set", "train.max_length=6"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2", "--longest", "50"),
]
FILES = ("run.json", "state.json", "metrics.jsonl", "probes.jsonl", "result.json", "checkpoint.safetensors")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("finished")
    with pytest.raises(SystemExit) as stopped:
        main(["train", "parity", "regular-gpt", *SETTINGS, "--runs", str(root)])
    assert stopped.value.code == 0
    return next(root.glob("parity-*"))


def commands(run: Path, out: Path) -> dict[str, list[str]]:
    return {
        "predict": ["predict", str(run), "abba"],
        "evaluate": ["evaluate", str(run), "--lengths", "3-5", "--strings", "4"],
        "report": ["report", str(run), "--out", str(out / "report.html")],
        "resume": ["resume", str(run), "--longest", "50"],
        "train": ["train", "parity", "regular-gpt", *SETTINGS, "--runs", str(run.parent)],
    }


def run(arguments: list[str], capsys) -> tuple[int, str]:
    """Exit code and what is on the error stream; any exception but SystemExit fails the test."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return int(stopped.value.code or 0), capsys.readouterr().err


def check(arguments: list[str], capsys) -> int:
    code, errors = run(arguments, capsys)
    assert code in (0, 1, 2)
    if code:
        # A run that began has written progress to the same stream before the message.
        lines = errors.splitlines()
        assert [line for line in lines if line.startswith("lengthwise: ")] == lines[-1:], errors
    return code


@pytest.mark.parametrize("name", FILES)
def test_flipped_bytes_never_pass_unseen_into_a_number(name: str, finished: Path, tmp_path: Path, capsys) -> None:
    chance = random.Random(name)
    whole = (finished / name).read_bytes()
    for trial in range(2):
        run = tmp_path / str(trial) / finished.name
        shutil.copytree(finished, run)
        content = bytearray(whole)
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        (run / name).write_bytes(content)
        requests = commands(run, run.parent)
        if trial:
            del requests["report"]  # its charts take a second
        codes = {command: check(words, capsys) for command, words in requests.items()}
        if name == "checkpoint.safetensors":
            assert codes["predict"] == codes["evaluate"] == 2
        else:
            assert codes["train"] == 0
            assert list(RunFolder(run).read_result().curves) == list(RunFolder(finished).read_result().curves)


@pytest.mark.sampled
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_files_cut_short_are_repaired_or_named(name: str, kept: float, finished: Path, tmp_path: Path, capsys) -> None:
    run = tmp_path / finished.name
    shutil.copytree(finished, run)
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[: int(kept * len(whole))])
    requests = commands(run, tmp_path)
    if kept:
        del requests["report"]  # its charts take a second
    for words in requests.values():
        check(words, capsys)


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_missing_or_folders_are_named(name: str, finished: Path, tmp_path: Path, capsys) -> None:
    for trial in ("missing", "folder"):
        run = tmp_path / trial / finished.name
        shutil.copytree(finished, run)
        (run / name).unlink()
        if trial == "folder":
            (run / name).mkdir()
        requests = commands(run, tmp_path)
        del requests["report"]  # its charts take a second, and files of no bytes are shown to it above
        for words in requests.values():
            check(words, capsys)


@pytest.mark.parametrize("limit", [1_000, *(pytest.param(size, marks=pytest.mark.slow) for size in (4_000, 8_000))])
def test_a_full_disk_is_said_and_nothing_is_lost(limit: int, tmp_path: Path) -> None:
    """Files may not grow beyond `limit` bytes: writing fails as on a full disk, in the middle of a file."""
    arguments = ["train", "parity", "regular-gpt", *SETTINGS, "--runs", str(tmp_path)]
    code, output = Command(arguments, tmp_path, max_file_size=limit).wait()
    assert code == 1, output
    assert "Traceback" not in output
    (problem,) = (line for line in output.splitlines() if line.startswith("lengthwise: "))
    assert "cannot be written: File too large" in problem
    says_what_is_left = "is saved in" in problem or "has no checkpoint yet" in problem
    assert "run.json: " in problem or "result.json: " in problem or says_what_is_left
    code, output = Command(arguments, tmp_path).wait()
    assert code == 0, output


def test_a_finished_run_with_damaged_weights_is_not_called_finished(finished: Path, tmp_path: Path, capsys) -> None:
    folder = tmp_path / finished.name
    shutil.copytree(finished, folder)
    content = bytearray((finished / "checkpoint.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "checkpoint.safetensors").write_bytes(content)
    code, errors = run(["resume", str(folder), "--longest", "50"], capsys)
    assert code == 2
    assert f"{folder / 'checkpoint.safetensors'}: damaged checkpoint" in errors
    assert f"move {folder} away to train again" in errors
