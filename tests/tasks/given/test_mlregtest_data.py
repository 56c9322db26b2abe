"""Data files of MLRegTest: what is read, and what is rejected with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.tasks.given.reading import read_examples


def test_strings_and_labels_are_read(tmp_path: Path) -> None:
    path = tmp_path / "04.04.SL.2.1.0_TestSA.txt"
    path.write_text("abca\tTRUE\nabda\tFALSE\nabca\tTRUE\n\tFALSE\n")
    examples = read_examples(path)
    assert (examples.symbols, examples.classes) == (("a", "b", "c", "d"), ("FALSE", "TRUE"))
    assert [examples.text(index, "") for index in range(len(examples))] == ["abca", "abda"]
    assert (examples.counts.num_duplicates, examples.empty_label) == (1, "FALSE")
    path.write_text("\ufeffabca\tTRUE\r\nabda\tFALSE\r\n", encoding="utf-8")
    assert read_examples(path).digest == examples.digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"ab\tTRUE\nba FALSE\n",
            "line 2: expected a string, a tab, and TRUE or FALSE, as in a data file of MLRegTest, ",
        ),
        (b"ab\tTRUE\nba\tfalse\n", r"line 2: .*, got 'ba\\tfalse'; correct the line"),
        (b"ab\tTRUE\nba\tFALSE\t\n", "line 2: expected a string, a tab, and TRUE or FALSE"),
        (b"ab\tTRUE\n\nba\tFALSE\n", "line 2: expected a string, a tab, and TRUE or FALSE"),
        (b"ab\tTRUE\rba\tFALSE\n", "line 1: expected a string, a tab, and TRUE or FALSE"),
        (
            b"ab\tTRUE\nb a\tFALSE\n",
            "line 2: expected symbols that are visible characters, got ' '; write strings with",
        ),
        (b"ab\tTRUE\nb\0a\tFALSE\n", r"line 2: expected symbols that are visible characters, got '\\x00'"),
        (b"ab\tTRUE\n\xff\tFALSE\n", "expected text in UTF-8, got other bytes at offset 8; convert the file"),
        (b"ab\tTRUE\nba\tTRUE\n", "expected labels of two classes or more, got only 'TRUE'"),
        (b"", "expected at least one string that is not empty, got none in 0 rows;"),
    ],
)
def test_every_fault_is_named_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "04.04.SL.2.1.0_Train.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_examples(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none_Train\.txt: expected a file of examples, found no such file"):
        read_examples(tmp_path / "none_Train.txt")


@given(
    pairs=st.lists(st.tuples(st.text("abá$#", min_size=1, max_size=6), st.sampled_from(["TRUE", "FALSE"])), min_size=1)
)
def test_strings_come_back(pairs: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("data") / "x_Train.txt"
    path.write_text("".join(f"{string}\t{label}\n" for string, label in pairs), encoding="utf-8")
    outcomes = []
    for source in (path, pairs):
        try:
            examples = read_examples(source, min_classes=1)
            outcomes.append((examples.digest, examples.counts))
        except ValueError as problem:  # all labels are tied
            outcomes.append(str(problem))
    assert outcomes[0] == outcomes[1]
