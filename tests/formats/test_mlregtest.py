"""Automata of MLRegTest's text, in small files written here."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from command import exit_code

from lengthwise.automata.labeled import difference, labeled_dfa
from lengthwise.formats.mlregtest import parse_mlregtest, read_mlregtest
from lengthwise.tasks import make_task

NO_AA = "1\t0\tb\tb\n1\t2\ta\ta\n0\t2\ta\ta\n0\t0\tb\tb\n2\t0\tb\tb\n0\n1\n2\n"
"""No aa over a and b, with states numbered and edges ordered as a tool leaves them: 1 is the start."""


def test_a_file_is_a_task(tmp_path: Path) -> None:
    path = tmp_path / "04.04.SL.2.1.0.att"
    path.write_text(NO_AA)
    language = read_mlregtest(path, "abc")
    assert language.symbols == ("a", "b", "c")
    for length in range(6):
        strings = list(product("abc", repeat=length))
        ids = np.array([["abc".index(symbol) for symbol in string] for string in strings], dtype=np.int64)
        expected = [re.fullmatch("a?(b+a?)*", "".join(string)) is not None for string in strings]
        assert language.accepts(ids.reshape(len(strings), length)).tolist() == expected
    task = make_task("dfa", **language.to_json())
    assert task.is_balanced_length(40)
    assert read_mlregtest(path).symbols == ("a", "b"), "sorted, though the file has b first"


def test_weights_of_zero_are_read() -> None:
    assert parse_mlregtest("0 0 a a 0\n0 1 b b 0.0\n1 1 a a\n1 0\n").equivalent(
        parse_mlregtest("0 0 a a\n0 1 b b\n1 1 a a\n1\n")
    )


def test_three_columns_are_read_as_an_acceptor() -> None:
    three, four = "0 1 a\n1 0 b\n1\n", "0 1 a a\n1 0 b b\n1\n"
    assert parse_mlregtest(three).equivalent(parse_mlregtest(four))


@pytest.mark.parametrize(
    ("text", "alphabet", "message"),
    [
        ("0 1 a b\n1\n", "", r"^line 1: expected an edge that writes the symbol it reads, got 'a' and 'b'; for"),
        ("0 1 a a 0.5\n1\n", "", r"^line 1: expected no weight but 0, got 0\.5; leave weights out$"),
        (NO_AA, "a", r"^alphabet: expected every symbol of the edges, got an alphabet without 'b'; add this symbol$"),
        ("", "", r"^expected edges that all have 3 words"),
    ],
)
def test_other_texts_are_rejected(text: str, alphabet: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_mlregtest(text, alphabet)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.att: expected a file of MLRegTest, found no such file; ch"):
        read_mlregtest(tmp_path / "none.att")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "language.att"
    for content, message in (
        (b"0 1 \xff \xff\n1\n", f"^{path}: expected text in UTF-8, got other bytes; convert the file to UTF-8$"),
        (b"0 1 a b\n1\n", f"^{path}: line 1: expected an edge that writes the symbol it reads"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_mlregtest(path)
    with pytest.raises(ValueError, match=f"^{tmp_path}: cannot be read: Is a directory"):
        read_mlregtest(tmp_path)


def test_a_symbol_is_no_part_of_the_alphabet_as_a_text() -> None:
    with pytest.raises(
        ValueError, match="alphabet: expected every symbol of the edges, got an alphabet without 'ab'; add this symbol"
    ):
        parse_mlregtest("0 1 ab ab\n1 0 c c\n1\n", "cab")


def test_commands_and_tasks_read_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also a language whose states are all final, which is no transducer that repeats what it reads."""
    path = tmp_path / "04.04.SL.2.1.0.att"
    path.write_text(NO_AA)
    assert exit_code("diff", str(path), "a?(b+a?)*") == 0
    assert capsys.readouterr().out == "equal\n"
    assert exit_code("convert", str(path), str(tmp_path / "over.json"), "--alphabet", "abc") == 0
    for file, alphabet in ((tmp_path / "over.json", "abc"), (path, "ab")):
        task = make_task("dfa", file=str(file))
        assert difference(labeled_dfa(task.language), labeled_dfa(read_mlregtest(path, alphabet))) is None
