"""Folders that may not be entered, files that may not be read, and names that no file can have: a sentence for each."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import exit_code

from lengthwise import registry
from lengthwise.files import parse_json_text, write_json

LONG = "n" * 300
NOBODY = 65534

SMALL = ["--longest", "50", "--set", "train.steps=5"]

COMMANDS = {
    "--runs": ["train", "parity", "gru", *SMALL, "--runs", "{}"],
    "--pages": ["reproduce", "learning-rates", "--scale", "smoke", "--pages", "{}"],
    "bench --pages": ["bench", "leaderboard", "--model", "gru", "--pages", "{}"],
    "learn --out": ["learn", "labels.csv", "--out", "{}"],
    "compile --out": ["compile", "ab", "--to", "rnn", "--out", "{}"],
    "track --out": ["track", "run", "--to", "tensorboard", "--out", "{}"],
    "evaluate --out": ["evaluate", "net", "--lengths", "3", "--out", "{}/x.csv"],
    "convert": ["convert", "ab", "{}/x.dot"],
    "combine": ["combine", "ab", "--out", "{}/x.dot"],
    "export": ["export", "ab", "--to", "c", "--out", "{}/x.h"],
    "certify": ["certify", "{}"],
    "certify --out": ["certify", "net", "--out", "{}/x.json"],
    "certify --check": ["certify", "--check", "{}/x.json"],
    "describe": ["describe", "{}/x.dot"],
    "predict": ["predict", "{}", "ab"],
    "resume": ["resume", "{}"],
    "report": ["report", "{}"],
    "compare": ["compare", "{}", "{}"],
    "--config": ["train", "parity", "gru", *SMALL, "--config", "{}/x.toml"],
    "--text": ["train", "text", "gru", *SMALL, "--text", "{}/x.txt"],
    "learn": ["learn", "{}/x.csv", "--out", "new"],
    "play": ["play", "{}"],
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder that another user could use too, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        monkeypatch.chdir(name)
        Path("labels.csv").write_text("string,label\nab,1\n")
        yield Path(name)


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Be a user whom the system refuses something: root, who may do everything, becomes nobody."""
    is_root = os.geteuid() == 0
    if is_root:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def check_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str], *reasons: str) -> None:
    assert exit_code(*arguments) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith("lengthwise: ")
    assert any(reason in error for reason in reasons), f"{arguments}: {error}"
    assert not {"no such path", "no such file", "no such folder", "damaged"} & {error}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_that_may_not_be_entered_is_said_to_be_protected(command: str, folder: Path, capsys) -> None:
    Path("closed").mkdir(mode=0)
    arguments = [word.format("closed/inner") for word in COMMANDS[command]]
    if "net" in arguments:
        assert exit_code("compile", "ab", "--to", "rnn", "--out", "net") == 0
    capsys.readouterr()
    with unprivileged(folder):
        check_sentence(capsys, arguments, "Permission denied", "protected")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "describe"])
@pytest.mark.usefixtures("folder")
def test_a_name_that_no_file_can_have_is_said_to_be_so(command: str, capsys) -> None:
    if "net" in COMMANDS[command]:
        assert exit_code("compile", "ab", "--to", "rnn", "--out", "net") == 0
    capsys.readouterr()
    check_sentence(capsys, [word.format(LONG) for word in COMMANDS[command]], "File name too long")


def test_files_that_may_not_be_read_are_neither_missing_nor_damaged(folder: Path, monkeypatch, capsys) -> None:
    # Extensions that earlier tests of the process loaded are in folders of root, and their digests would be recorded.
    monkeypatch.setattr(registry, "_loaded", set())
    train = ["train", "parity", "gru", *SMALL, "--runs", "."]
    assert exit_code(*train) == 0
    (run,) = Path().glob("parity-*")
    commands = (train, ["resume", str(run)], ["certify", str(run), "--min-level", "refuted"], ["report", str(run)])
    for arguments in commands:
        assert exit_code(*arguments) == 0
    capsys.readouterr()
    content = {name: (run / name).read_bytes() for name in ("run.json", "result.json", "checkpoint.safetensors")}
    for name in content:
        (run / name).chmod(0)
        for arguments in commands:
            with unprivileged(folder):
                exit_code(*arguments)
            if "Permission denied" in (error := capsys.readouterr().err):
                assert f"{run / name}: cannot be read: Permission denied" in error
                assert "damaged" not in error
            else:
                error = "".join(line for line in error.splitlines() if not line.endswith("already finished"))
                assert not error or (name, arguments[0]) == ("result.json", "certify"), error
        (run / name).chmod(0o600)
        assert {name: (run / name).read_bytes() for name in content} == content


@pytest.mark.parametrize(
    ("key", "value"), [("versions", None), ("versions", []), ("versions", {"a": []}), ("plan", 5), ("plan", None)]
)
def test_entries_of_another_kind_in_a_runs_file_are_named(key: str, value: object, tmp_path: Path, capsys) -> None:
    train = ["train", "parity", "gru", *SMALL, "--runs", str(tmp_path)]
    assert exit_code(*train) == 0
    (run,) = tmp_path.glob("parity-*")
    content = parse_json_text((run / "run.json").read_text())
    write_json(run / "run.json", {**content, key: value})
    capsys.readouterr()
    assert exit_code("resume", str(run)) == 2
    assert f"{run / 'run.json'}.{key}" in capsys.readouterr().err
    assert exit_code(*train) == 0, "what it says is written again"
    assert json.loads((run / "run.json").read_text())["plan"] == content["plan"]
