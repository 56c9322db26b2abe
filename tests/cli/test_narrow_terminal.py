"""Sentences in a terminal of 50 columns: wrapped between words; JSON, files and other programs get whole lines."""

import json
import sys
from pathlib import Path

import pytest
from command import exit_code

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
