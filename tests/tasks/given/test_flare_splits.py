"""Folders with a split of FLaRe: what is read, and what is rejected with its file and line."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise import make_task
from lengthwise.tasks.given.reading import read_examples

SPLIT = {
    "main.tok": "(0 )0\n\n(0\n(0 )0\n)0 (1\n",
    "labels.txt": "1\n1\n0\n1\n0\n",
    "next-symbols.jsonl": (
        '[{"s":"(0","e":true},{"s":"(0 )0","e":false},{"s":"(0","e":true}]\n'
        '[{"s":"(0","e":true}]\n'
        '[{"s":"(0","e":true},{"s":"(0 )0","e":false},{"s":"(0","e":true}]\n'
    ),
    "num-edits.txt": "1\n\n",
    "log-probabilities.txt": "-2.5\n-1\n-2.5\n",
    "edit-distances.txt": "1\n2\n",
}


def split_folder(folder: Path, changes: dict[str, str | bytes | None] | None = None) -> Path:
    """Write the split with changed files; None leaves a file out."""
    folder.mkdir()
    for name, content in {**SPLIT, **(changes or {})}.items():
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_split_is_read(tmp_path: Path) -> None:
    examples = read_examples(split_folder(tmp_path / "train"))
    assert examples.symbols == ("(0", "(1", ")0")
    assert [examples.text(index, " ") for index in range(len(examples))] == ["(0 )0", "(0", ")0 (1"]
    assert [examples.classes[at] for at in examples.targets[examples.starts[1:] - 1]] == ["1", "0", "0"]
    assert examples.empty_label == "1"
    assert examples.counts[:4] == (5, 1, 1, 0)


def test_only_strings_and_labels_are_needed(tmp_path: Path) -> None:
    folder = split_folder(tmp_path / "train", dict.fromkeys(SPLIT.keys() - {"main.tok", "labels.txt"}))
    assert sorted(path.name for path in folder.iterdir()) == ["labels.txt", "main.tok"]
    assert len(read_examples(folder)) == 3


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), lambda text: "\ufeff" + text])
def test_line_ends_and_marks_of_windows_change_nothing(change, tmp_path: Path) -> None:
    changed = split_folder(tmp_path / "changed", {name: change(text) for name, text in SPLIT.items()})
    assert read_examples(changed).digest == read_examples(split_folder(tmp_path / "train")).digest


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("main.tok", None, r"expected a file of examples, or a folder with main\.tok and labels\.txt as in FLaRe, got"),
        ("labels.txt", None, r"got a folder without labels\.txt; name a file, or the folder of a split$"),
        (
            "labels.txt",
            "1\n1\n0\n1\n",
            r"labels\.txt: expected 5 lines, as in main\.tok, got 4; restore the two files$",
        ),
        ("labels.txt", "1\n1\n0\n1\n0\n0\n", r"labels\.txt: expected 5 lines, as in main\.tok, got 6; restore"),
        (
            "labels.txt",
            "1\n1\n2\n1\n0\n",
            r"labels\.txt: line 3: expected the label 0 or 1, got '2'; correct the label$",
        ),
        ("labels.txt", "1\n\n0\n1\n0\n", r"labels\.txt: line 2: expected the label 0 or 1, got ''; correct the label$"),
        (
            "labels.txt",
            b"1\n1\n\xff\n1\n0\n",
            r"labels\.txt: expected text in UTF-8, got other bytes at offset 4; convert the file to UTF-8$",
        ),
        (
            "main.tok",
            "(0\t)0\n\n(0\n(0\n)0\n",
            r"main\.tok: line 1: expected symbols with one blank between them, got '\(",
        ),
        (
            "main.tok",
            "(0  )0\n\n(0\n(0\n)0\n",
            r"main\.tok: line 1: expected symbols .* got '' as a symbol; remove tabs",
        ),
        ("main.tok", "(0 )0\n \n(0\n(0\n)0\n", r"main\.tok: line 2: expected symbols .* got '' as a symbol"),
        ("main.tok", "(0 )0\n\n(0\r(0\n(0\n)0\n", r"main\.tok: line 3: expected symbols .* got '\(0\\r' as a symbol"),
        ("main.tok", "(0 )0\n\n\0\n(0\n)0\n", r"main\.tok: line 3: expected symbols .* got '\\x00' as a symbol"),
        (
            "num-edits.txt",
            "1\n",
            r"num-edits\.txt: expected a line for each string with label 0, got none for the string on line 5 of m",
        ),
        (
            "num-edits.txt",
            "1\n\n3\n",
            r"num-edits\.txt: expected 2 lines, one for each string with label 0, got at least 3; r",
        ),
        (
            "num-edits.txt",
            "1\n0\n",
            r"num-edits\.txt: line 2: expected an empty line, or a number of edits from 1, ",
        ),
        ("edit-distances.txt", "1\n-1\n", r"edit-distances\.txt: line 2: expected an empty line, or a number"),
        (
            "log-probabilities.txt",
            "-2.5\nnan\n-1\n",
            r"log-probabilities\.txt: line 2: expected the logarithm of a prob",
        ),
        (
            "log-probabilities.txt",
            "-2.5\n-1\n",
            r"expected a line for each string with label 1, got none for the string on line 4 of ma",
        ),
        (
            "next-symbols.jsonl",
            '[{"s":"","e":true,"e":true}]\n',
            r"line 1: expected each key of an object once, got 'e'",
        ),
        (
            "next-symbols.jsonl",
            '[{"s":"(0","e":true}]\n',
            r"line 1: expected a list of 3 sets, one for each prefix, got a",
        ),
        (
            "next-symbols.jsonl",
            "{}\n",
            r"line 1: expected a list of 3 sets, one for each prefix, got a dict; correct the line$",
        ),
        (
            "next-symbols.jsonl",
            '[{"s":"(0","e":true},{"s":"(0 )0","e":0},{"s":"(0","e":true}]\n',
            r"""line 1: expected sets such as \{"s": "0 1", "e": true\}, got """
            r"""\{'s': '\(0 \)0', 'e': 0\}; correct the set$""",
        ),
        (
            "next-symbols.jsonl",
            '[{"s":"(0","e":true},{"s":"(0","e":false},{"s":"(0","e":true}]\n',
            r"line 1: expected a set with '\)0', which comes next in main\.tok, got \{",
        ),
        (
            "next-symbols.jsonl",
            '[{"s":"(0","e":true},{"s":")0","e":false},{"s":"(0","e":false}]\n',
            r"line 1: expected a set with the end, which comes next in main\.tok, got \{",
        ),
    ],
)
def test_every_fault_is_named_with_file_and_line(
    name: str, content: str | bytes | None, message: str, tmp_path: Path
) -> None:
    folder = split_folder(tmp_path / "train", {name: content})
    with pytest.raises(ValueError, match=message) as refused:
        read_examples(folder)
    assert str(refused.value).startswith(str(folder))


def test_a_broken_link_is_not_a_missing_file(tmp_path: Path) -> None:
    folder = split_folder(tmp_path / "train", {"num-edits.txt": None})
    (folder / "num-edits.txt").symlink_to(tmp_path / "none")
    with pytest.raises(
        ValueError, match=r"num-edits\.txt: expected a file, got a link to a missing file; restore the file"
    ):
        read_examples(folder)


@pytest.mark.parametrize("argument", ["separator", "string", "label"])
@pytest.mark.parametrize("name", ["split", "a.txt", "a.dat"])
def test_arguments_without_a_use_are_rejected(name: str, argument: str, tmp_path: Path) -> None:
    split_folder(tmp_path / "split")
    (tmp_path / "a.txt").write_text("ab\tTRUE\nba\tFALSE\n")
    (tmp_path / "a.dat").write_text("+ 1 0\n- 0\n")
    read_examples(tmp_path / name)
    with pytest.raises(
        ValueError, match=rf"^{argument}: expected no value for .*{name}, .* got 'x'; leave {argument} out$"
    ):
        read_examples(tmp_path / name, **{argument: "x"})


def test_a_missing_path_is_not_a_wrong_suffix(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nope: expected a file of examples, found no such file; give the file"):
        read_examples(tmp_path / "nope")


def test_a_lone_carriage_return_does_not_end_a_line(tmp_path: Path) -> None:
    """A lone carriage return in both files would else shift strings against labels."""
    with pytest.raises(ValueError, match="line 1: expected"):
        read_examples(split_folder(tmp_path / "train", {"main.tok": "a\rb\nc\n", "labels.txt": "1\r0\n1\n"}))


SYMBOLS = st.lists(st.sampled_from(["0", "1", "(0", ")0", "é", "#"]), max_size=4)


@given(pairs=st.lists(st.tuples(SYMBOLS, st.sampled_from("01")), min_size=1, max_size=8))
def test_strings_and_labels_come_back(
    pairs: list[tuple[list[str], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("split")
    (folder / "main.tok").write_text("".join(" ".join(string) + "\n" for string, _ in pairs), encoding="utf-8")
    (folder / "labels.txt").write_text("".join(f"{label}\n" for _, label in pairs))
    outcomes = []
    for source in (folder, pairs):
        try:
            outcomes.append(read_examples(source, min_classes=1))
        except ValueError as problem:  # all strings are empty, or all labels are tied
            outcomes.append(str(problem))
    if isinstance(outcomes[0], str):
        assert outcomes[0] == outcomes[1]
    else:
        assert outcomes[0].digest == outcomes[1].digest
        assert outcomes[0].counts == outcomes[1].counts
        assert outcomes[0].empty_label == outcomes[1].empty_label


def test_a_task_of_a_folder_notices_a_changed_file(tmp_path: Path) -> None:
    folder = split_folder(tmp_path / "train")
    task = make_task("examples", file=folder)
    assert task.is_legal_length(2)
    before = (folder / "labels.txt").stat()
    (folder / "labels.txt").write_text("0\n1\n0\n0\n1\n")
    os.utime(folder / "labels.txt", ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    lines = [json.dumps([{"s": "(0 (1 )0", "e": True}] * n) + "\n" for n in (1, 3)]
    (folder / "next-symbols.jsonl").write_text("".join(lines))
    (folder / "log-probabilities.txt").write_text("-1\n-1\n")
    for name in ("num-edits.txt", "edit-distances.txt"):
        (folder / name).write_text("1\n1\n1\n")
    with pytest.raises(ValueError, match=r"file: expected the examples with digest .*, got digest"):
        _ = task.examples
