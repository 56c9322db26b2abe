"""Files that others name: links are not written through, pipes and devices are refused before they are opened."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import exit_code

from lengthwise import load_run
from lengthwise.files import UnreadableFile, exists, open_file, read_file, write_by_rename
from lengthwise.formats.files import read_machine
from lengthwise.formats.mlregtest import read_mlregtest
from lengthwise.models.machine import load_machine_model
from lengthwise.runs.compiled import load_compiled
from lengthwise.runs.hub import load_hub
from lengthwise.runs.journal import Journal, Probe
from lengthwise.runs.lock import held
from lengthwise.runs.machine_sources import given_machines
from lengthwise.runs.records import read_records
from lengthwise.runs.spec import read_settings
from lengthwise.runs.stored import load_stored
from lengthwise.tasks.given.reading import read_examples
from lengthwise.training.checkpoint import read_notes


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working folder, and an alarm: a test that opens a pipe would wait for its writer for ever."""
    monkeypatch.chdir(tmp_path)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(120)
    yield
    signal.alarm(0)


def test_nothing_is_written_through_a_lock_that_is_a_link() -> None:
    Path("run").mkdir()
    Path("of_others").write_text("theirs\n")
    for target in ("of_others", "not_there"):
        Path("run/.lock").symlink_to(Path(target).absolute())
        with pytest.raises(OSError, match=r"run/\.lock: cannot be locked: expected a file, got a link"):
            held(Path("run/.lock")).__enter__()
        Path("run/.lock").unlink()
    assert Path("of_others").read_text() == "theirs\n"
    assert not Path("not_there").exists()


@pytest.mark.parametrize("reader", [False, True])
def test_a_lock_that_is_a_pipe_is_refused(reader: bool) -> None:
    os.mkfifo(".lock")
    descriptor = os.open(".lock", os.O_RDONLY | os.O_NONBLOCK) if reader else None
    with pytest.raises(OSError, match=r"\.lock: cannot be locked: expected a file, got a"):
        held(Path(".lock")).__enter__()
    if descriptor is not None:
        os.close(descriptor)


def test_training_rejects_a_folder_whose_lock_is_a_link(capsys) -> None:
    arguments = ["train", "parity", "gru", "--longest", "50", "--set", "train.steps=10", "--runs", "."]
    assert exit_code(*arguments) == 0
    (run,) = Path().glob("parity-*")
    Path("of_others").write_text("theirs\n")
    (run / ".lock").unlink()
    (run / ".lock").symlink_to("../of_others")
    (run / "result.json").unlink()
    assert exit_code(*arguments) == 1
    assert f"{run}/.lock: cannot be locked: expected a file, got a link" in capsys.readouterr().err
    assert Path("of_others").read_text() == "theirs\n"


def test_the_draft_of_a_file_is_written_through_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lengthwise.files.HOST", "host")
    Path("of_others").write_text("theirs\n")
    Path(f".new.host.{os.getpid()}").symlink_to("of_others")
    write_by_rename(Path("new"), b"ours\n")
    assert (Path("new").read_text(), Path("of_others").read_text()) == ("ours\n", "theirs\n")
    assert not Path("new").is_symlink()


def described(path: Path) -> object:
    Path("net.toml").write_text(f"weights = {json.dumps(str(path))}\ntask = 'parity'\n")
    return load_stored(Path("net.toml"))


def in_folder_of(name: str, read: Callable[[Path], object], **others: str) -> Callable[[Path], object]:
    """Read a folder in which one file is the path."""

    def reader(path: Path) -> object:
        folder = Path("folder")
        folder.mkdir()
        for other, content in others.items():
            (folder / other.replace("_", ".")).write_text(content)
        path.rename(folder / name)
        return read(folder)

    return reader


READERS: dict[str, Callable[[Path], object]] = {
    "weights": described,
    "weights.safetensors": load_stored,
    "net.toml": load_stored,
    "settings.toml": read_settings,
    "machine.json": read_machine,
    "machine.dot": lambda path: given_machines([str(path)]),
    "given.json": lambda path: given_machines([str(path)]),
    "given.regex": lambda path: given_machines([str(path)]),
    "language.att": read_mlregtest,
    "machine_model.json": load_machine_model,
    "labels.csv": read_examples,
    "labels.jsonl": read_examples,
    "labels.dat": read_examples,
    "labels.parquet": read_examples,
    "results.jsonl.gz": read_records,
    "probes.jsonl": lambda path: Journal(path, Probe).read(),
    "metrics.jsonl": lambda path: Journal(path, Probe).read_after(0),
    "checkpoint.safetensors": lambda path: read_notes(path, ""),
    "run.json": in_folder_of("run.json", load_run),
    "compiled.json": in_folder_of("compiled.json", load_compiled),
    "config.json": in_folder_of("config.json", load_hub),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_or_a_device_is_refused_before_it_is_opened(name: str) -> None:
    path = Path(name)
    os.mkfifo(path)
    with pytest.raises(ValueError, match="expected a file, got a pipe or a device; name a file"):
        READERS[name](path)


def test_a_device_named_as_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="/dev/zero: expected a file, got a pipe or a device"):
        described(Path("/dev/zero"))


def test_a_text_that_is_a_pipe_is_refused(capsys) -> None:
    os.mkfifo("text.txt")
    assert exit_code("train", "text", "gru", "--text", "text.txt", "--runs", "runs") == 2
    assert "text.txt: expected a file, got a pipe or a device" in capsys.readouterr().err


def test_a_file_that_is_missing_is_no_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("text")
    for missing in ("none", "file/below"):
        assert not exists(Path(missing))
        with pytest.raises(FileNotFoundError):
            read_file(Path(missing))
    Path("loop").symlink_to("loop")
    long = "n" * 300
    unreadable = {"loop": "Too many levels", "loop/below": "Too many levels", long: "File name too long"}
    for name, reason in unreadable.items():
        for use in (exists, open_file):
            with pytest.raises(UnreadableFile, match=f"{name}: cannot be read: {reason}"):
                use(Path(name))
    with pytest.raises(UnreadableFile, match="cannot be read: Is a directory"):
        read_file(Path())
    assert exists(Path("file"))
    assert not exists(Path("a\0b"))
