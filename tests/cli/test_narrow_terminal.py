"""Sentences in a terminal of 50 columns: wrapped between words; JSON, files and other programs get whole lines."""

import json
import multiprocessing
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import exit_code

from lengthwise.cli.app import main
from lengthwise.printing import write_lines
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.pools.local import PRELOADED

pytestmark = [pytest.mark.usefixtures("fewer_strings"), pytest.mark.unchecked]


def test_sentences_are_wrapped_between_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples.csv").write_text("string,label\n" + "".join(f"{'a' * n},{n % 2}\n" for n in range(1, 30)))
    assert exit_code("compile", "(a|b)*abb", "--to", "rnn", "--out", "ends") == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "50")
    for command in (
        ("certify", "ends"),
        ("attack", "ends", "(a|b)*bb"),
        ("learn", "examples.csv", "--out", "learned", "--budget", "0"),
        ("diff", "ends", "learned"),
        ("diff", "ends", "(a|b)*bb", "--min-level", "proved"),
    ):
        exit_code(*command)
        whole = capsys.readouterr()
        with monkeypatch.context() as terminal:
            for stream in (sys.stdout, sys.stderr):
                terminal.setattr(stream, "isatty", lambda: True)
            terminal.setattr("lengthwise.report.pages.terminal.waiting_display", lambda *_: nullcontext())
            exit_code(*command)
        wrapped = capsys.readouterr()
        assert max(map(len, "".join(whole).splitlines())) > 50, "in a pipe, lines are whole, whatever COLUMNS says"
        for long, short in ((whole.out, wrapped.out), (whole.err, wrapped.err)):
            lines = short.splitlines()
            assert all(len(line) <= 50 or " " not in line.strip() for line in lines)
            # A number of seconds may differ, so only words are compared.
            words = [[word for word in text.split() if word.isalpha()] for text in (long, short)]
            assert words[0] == words[1] or command[0] == "learn", "no word is split"
            assert bool(lines) == bool(long)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    exit_code("certify", "ends", "--json")
    assert json.loads(capsys.readouterr().out)["level"] == "proved"


def test_streams_of_unknown_width_get_whole_lines(monkeypatch, capsys) -> None:
    """With COLUMNS=0, a terminal's width is unknown, and a replaced stream may only have `write`."""
    line = "word " * 40 + "end"
    monkeypatch.setenv("COLUMNS", "0")
    with monkeypatch.context() as terminal:
        terminal.setattr(sys.stdout, "isatty", lambda: True)
        write_lines([line])
    assert capsys.readouterr().out == line + "\n"
    output: list[str] = []
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=output.append, flush=lambda: None))
    write_lines([line])
    assert output == [line + "\n"]


def without_standard_error(arguments: list[str]) -> None:
    """Run a command as Python starts it if its standard error is closed."""
    os.close(2)
    sys.stderr = None  # type: ignore[assignment]  # as Python sets it then
    main(arguments)


def test_a_run_needs_no_standard_error(tmp_path: Path) -> None:
    """Progress is for spectators, so a closed stream does not stop a run."""
    arguments = ["train", "parity", "lstm", "--set", "train.steps=20", "--set", "model.d_model=2", "--longest", "41"]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)  # there is one server
    process = context.Process(target=without_standard_error, args=([*arguments, "--runs", str(tmp_path)],))
    process.start()
    process.join(timeout=300)
    assert process.exitcode == 0
    (run,) = tmp_path.glob("parity-lstm-*")
    assert RunFolder(run).read_status().step == 20
