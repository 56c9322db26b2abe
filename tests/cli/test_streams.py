"""Standard streams that are closed, full, ASCII only, or read by a process that hangs up."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command import exit_code

from lengthwise.runs.folder import RunFolder

TRAIN = [
    *("train", "parity", "gru", "--longest", "50", "--set", "train.steps=30", "--set", "train.batch_size=4"),
    *("--set", "train.max_length=40", "--set", "model.d_model=8"),
]


@pytest.fixture
def hang_up(monkeypatch) -> Iterator[Callable[..., None]]:
    """Call it in a test, after pytest's own capturing began: then a stream is a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with suppress(BrokenPipeError), os.fdopen(writer, "w") as pipe:
        yield lambda stream="stdout": monkeypatch.setattr(sys, stream, pipe)


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"], ["list"]])
def test_a_reader_that_hangs_up_has_seen_enough(arguments: list[str], hang_up, capsys) -> None:
    hang_up()
    assert exit_code(*arguments) == 0
    assert capsys.readouterr() == ("", "")


def test_a_reader_of_progress_that_hangs_up_stops_training_with_a_checkpoint(tmp_path: Path, hang_up) -> None:
    hang_up("stderr")
    assert exit_code(*TRAIN, "--runs", str(tmp_path)) == 1
    (folder,) = tmp_path.iterdir()
    assert RunFolder(folder).read_status().step == 10
    assert (folder / "checkpoint.safetensors").exists()


def test_progress_is_no_part_of_the_output(tmp_path: Path, capsys) -> None:
    assert exit_code(*TRAIN, "--runs", str(tmp_path)) == 0
    results, progress = capsys.readouterr()
    (folder,) = tmp_path.iterdir()
    assert results.startswith("parity, gru, seed 0\n")
    assert [line.split()[:2] for line in progress.splitlines() if "training" in line] == 3 * [
        [f"{folder.name}:", "training"]
    ]
    assert ": training" not in results


def test_measurements_are_written_before_they_are_printed(tmp_path: Path, hang_up) -> None:
    assert exit_code(*TRAIN, "--runs", str(tmp_path)) == 0
    (folder,) = tmp_path.glob("parity-*")
    hang_up()
    points = tmp_path / "points.csv"
    assert exit_code("evaluate", str(folder), "--lengths", "3-5", "--strings", "4", "--out", str(points)) == 0
    assert len(points.read_text().splitlines()) == 4


def test_output_that_is_lost_is_a_failure(monkeypatch, capsys) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert exit_code("certify", "--help") == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", ">&- 2>&-"])
def test_a_closed_output_is_refused_at_once(closed: str, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m lengthwise memorize ab {closed}"
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())
    sentence = (
        "lengthwise: standard output: expected an open stream, got a closed one; "
        "redirect it, for example to /dev/null\n"
    )
    assert done.stderr == ("" if "2>&-" in closed else sentence)


def test_a_closed_input_is_refused(tmp_path: Path, monkeypatch, capsys) -> None:
    assert exit_code(*TRAIN, "--runs", str(tmp_path)) == 0
    (folder,) = tmp_path.glob("parity-*")
    monkeypatch.setattr(sys, "stdin", None)
    assert exit_code("predict", str(folder), "-") == 2
    assert "standard input: expected an open stream, got a closed one" in capsys.readouterr().err


def test_blank_lines_of_the_input_are_left_out(tmp_path: Path, monkeypatch, capsys) -> None:
    assert exit_code(*TRAIN, "--runs", str(tmp_path)) == 0
    (folder,) = tmp_path.glob("parity-*")
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO("ab\n\nba\r\n \nx\n"))
    assert exit_code("predict", str(folder), "-") == 2
    output, error = capsys.readouterr()
    assert [line.split("\t")[0] for line in output.splitlines()] == ["ab", "ba"]
    assert "string 5: text: 'x' at position 1" in error, "lines are counted as an editor counts them"


def test_symbols_that_an_encoding_lacks_are_escaped(tmp_path: Path, monkeypatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    assert exit_code("memorize", "\u00e9a", "--out", str(tmp_path / "orbit.svg")) == 0
    assert output.buffer.getvalue().startswith(b"word: \\xe9a, period 2, symbols a \\xe9\n")
