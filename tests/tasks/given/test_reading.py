"""Labeled strings from files, data frames and pairs: all read alike, and mistakes are named."""

import json
import os
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch

from lengthwise.conventions import IGNORE
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.tasks.given.examples import Counts, Examples
from lengthwise.tasks.given.reading import read_examples

PAIRS = [("ab", "in"), ("b", "out"), ("abab", "in"), ("ba", "out"), ("a", "out"), ("bb", "out")]


def save(path: Path) -> Path:
    kind = path.suffix
    if kind in (".csv", ".tsv"):
        between = {".csv": ",", ".tsv": "\t"}[kind]
        path.write_text(
            "".join(
                f"{between.join(row)}\n"
                for row in [("number", "text", "label")] + [(str(index), *pair) for index, pair in enumerate(PAIRS)]
            )
        )
    elif kind == ".jsonl":
        path.write_text("".join(json.dumps({"label": label, "string": string}) + "\n" for string, label in PAIRS))
    else:
        lines = [f"{label} {len(string)} {' '.join(string)}" for string, label in PAIRS]
        path.write_text("\n".join([f"{len(PAIRS)} 2", *lines]) + "\n")
    return path


def final_labels(examples: Examples) -> list[str]:
    """Return the label of each whole string."""
    return [examples.classes[target] for target in examples.targets[examples.starts[1:] - 1]]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "dat"])
def test_files_are_read_as_pairs_are(kind: str, tmp_path: Path) -> None:
    examples = read_examples(save(tmp_path / f"file.{kind}"))
    expected = read_examples(PAIRS)
    assert (examples.symbols, examples.classes) == (("a", "b"), ("in", "out")) == (expected.symbols, expected.classes)
    for one, another in zip(
        (examples.ids, examples.targets, examples.starts),
        (expected.ids, expected.targets, expected.starts),
        strict=True,
    ):
        assert np.array_equal(one, another)
    strings = [(examples.text(row, ""), label) for row, label in enumerate(final_labels(examples))]
    assert strings == PAIRS
    task = make_task("examples", file=tmp_path / f"file.{kind}")
    assert [length for length in range(1, 9) if task.is_legal_length(length)] == [1, 2, 4]
    assert task.baseline(2) == 2 / 3


class Frame:
    """What narwhals does not know."""

    columns = ("text", "label")


def test_other_objects_with_columns_are_no_data_frames() -> None:
    with pytest.raises(ValueError, match="expected a file, pairs or a data frame, got Frame"):
        read_examples(Frame())


def test_words_and_lists_are_symbols() -> None:
    by_words = read_examples([("get put", "ok"), ("put  get", "bad")], separator=" ")
    by_lists = read_examples([(["get", "put"], "ok"), (["put", "get"], "bad")])
    assert by_words.symbols == by_lists.symbols == ("get", "put")
    assert np.array_equal(by_words.ids, by_lists.ids)


def test_labels_of_each_symbol_are_targets() -> None:
    traces = [("ab", "01"), ("b", "1"), ("aab", ["0", "0", "1"])]
    examples = read_examples(traces, supervision="prefix")
    assert examples.targets.tolist() == [0, 1, 1, 0, 0, 1]
    last = read_examples([("ab", "1"), ("a", "0")])
    assert last.targets.tolist() == [IGNORE, 1, 0]


def test_what_is_there_twice_is_counted() -> None:
    rows = [("a", "x"), ("a", "y"), ("a", "x"), ("", "x"), ("b", "y"), ("b", "y")]
    examples = read_examples(rows)
    assert examples.counts == Counts(num_rows=6, num_empty=1, num_duplicates=2, num_contradictory=1)
    assert final_labels(examples) == ["x", "y"]


@pytest.mark.parametrize(("labels", "kept"), [("", ""), ("x", "x"), ("xyy", "y"), ("xy", ""), ("zzx", "z")])
def test_the_most_frequent_label_of_the_empty_string_is_kept_apart(labels: str, kept: str) -> None:
    examples = read_examples([("a", "x"), ("b", "y"), *(("", label) for label in labels)])
    assert (examples.empty_label, examples.classes) == (kept, ("x", "y"))
    assert examples.part(examples.lengths > 0).empty_label == kept


def test_the_most_frequent_label_of_each_prefix_is_kept() -> None:
    """Prefix a is x four times and y twice, so that the row of ac has another label somewhere."""
    rows = [("ab", "xy"), ("ab", "xy"), ("ac", "yx"), ("aa", "xx"), ("abb", "xyx"), ("ab", "yy")]
    examples = read_examples(rows, supervision="prefix")
    assert examples.counts == Counts(num_rows=6, num_empty=0, num_duplicates=1, num_contradictory=2)
    answers = "".join(examples.classes[target] for target in examples.targets)
    assert answers == "xy" + "xx" + "xx" + "xyx"


def test_numbers_with_zeros_in_front_have_an_order() -> None:
    for rows in ([("1", "x"), ("01", "y"), ("001", "x")], [("001", "x"), ("01", "y"), ("1", "x")]):
        examples = read_examples([([symbol], label) for symbol, label in rows])
        assert examples.symbols == ("001", "01", "1")


def test_numbers_are_in_order() -> None:
    assert read_examples([("a", 10), ("b", 2), ("c", 1.0)]).classes == ("1", "2", "10")
    assert read_examples([("a", True), ("b", False)]).classes == ("false", "true")


@pytest.mark.parametrize(
    ("rows", "supervision", "sentence"),
    [
        ([], "last", "expected at least one string that is not empty, got none in 0 rows;"),
        ([("", "x")], "last", "got none in 1 rows;"),
        ([("a", "x"), ("b", "x")], "last", "expected labels of two classes or more, got only 'x'"),
        ([("a", "x"), (None, "y")], "last", "row 2: expected a string, got a missing value; write"),
        (
            [("a", "x"), ({"a": 1}, "y")],
            "last",
            "row 2: expected a string, or a list of symbols, got an object with keys",
        ),
        (
            [("a", "x"), (["a", {"b": 1}], "y")],
            "last",
            "row 2: expected texts as symbols of a list, got {'b': 1}; write each symbol as a",
        ),
        (
            [("a", "x"), (["a", ["b"]], "y")],
            "last",
            "row 2: expected texts as symbols of a list, got .'b'.; write each symbol as a text",
        ),
        ([("a", "x"), (float("nan"), "y")], "last", "row 2: expected a string, got a missing value; write"),
        ([("a", "x"), ("b", None)], "last", "row 2: expected one label, got an empty label"),
        ([("a", "x"), ("b", ["x", "y"])], "last", "row 2: expected one label, got a list of 2; if each symbol has"),
        ([("ab", "xy"), ("ab", "x")], "prefix", "row 2: expected 2 labels, one for each symbol, got 1"),
        (["ab", "cd"], "last", "row 1: expected a string and its label, got 'ab'"),
        ([("a", "x", "y")], "last", "row 1: expected a string and its label"),
    ],
)
def test_mistakes_in_rows_are_named(rows, supervision, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        read_examples(rows, supervision=supervision)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "file.xlsx",
            b"",
            "expected a file of examples (.csv, .tsv, .jsonl, .dat, .parquet, .txt), got suffix '.xlsx'",
        ),
        ("file.csv", b"text,label\n\xff\xfe,1\n", "expected text in UTF-8, got other bytes"),
        (
            "file.csv",
            b"text,sign\nab,1\n",
            "label: expected one column with a standard name (label, class, output, answer, accepted, target), got 0 "
            "among 'text', 'sign'; set label to the name of the column to read",
        ),
        (
            "file.csv",
            b"text,label,class\nab,1,2\n",
            "accepted, target), got 2 among 'text', 'label', 'class'; set label",
        ),
        ("file.csv", b"text,label\nab\n", "row 2: expected 2 columns, got 1; check separators and quotes"),
        ("file.csv", b"text,label\nab,cd,yes\n", "row 2: expected 2 columns, got 3; check separators and quotes"),
        ("file.csv", b"ab,1\nab,cd,2\n", "row 2: expected 2 columns, got 3; check separators and quotes"),
        ("file.csv", b"text,label\n", "got none in 0 rows;"),
        ("file.csv", b"id,session,status\n1,ab,x\n2,b,y\n", "string: expected one column with a standard name (string"),
        ("file.csv", b"session,status\nab,x\nb,y\n", "set string to 'session' and label to 'status'"),
        ("file.jsonl", b'{"text": "ab", "label": 1}\n{"text": \n', "row 2: expected JSON, got something else"),
        (
            "file.jsonl",
            b'{"string": "ab", "label": 1}\n\n{"string": "b"}\n',
            "row 3: expected a label under 'label', as in earlier rows, got only 'string'; add this label, or",
        ),
        ("file.jsonl", b'{"word": "a", "class": 1}\n{"label": 2}\n', "row 2: expected a string under 'word', as in"),
        (
            "file.jsonl",
            b'{"string": "ab"}\n',
            "row 1: label: expected one column with a standard",
        ),
        ("file.jsonl", b'"ab"\n', "row 1: expected a string and its label, got 'ab'"),
        ("file.dat", b"a b\n", "expected a first line with the numbers of strings and of symbols, got ['a', 'b']"),
        ("file.dat", b"2 2\n1 2 a\n", "row 2: expected label, length and symbols, got '1 2 a"),
        (
            "file.dat",
            "\u00b2 2\n".encode(),
            "expected a first line with the numbers of strings and of symbols, got ['\u00b2'",
        ),
        (
            "file.dat",
            b"2 1\n1 1 a\n0 1 b\n",
            "expected at most 1 different symbols, the count in the first line, got 2",
        ),
        ("file.dat", b"2 2\n1 1 a\n-1 1 b\n", "row 3: expected a label, got -1, which marks strings without a"),
        ("file.jsonl", b'{"string": null, "label": "x"}\n', "row 1: expected a string, got a missing value; write"),
        ("file.dat", b"2 2\n1 1 a\n", "expected 2 strings, the count in the first line, got 1"),
        ("file.parquet", b"", "expected the package pyarrow for Parquet, got none; pip install pyarrow"),
    ],
)
def test_mistakes_in_files_are_named(
    name: str, content: bytes, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # which may be installed, for data sets
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the sentence has brackets
        read_examples(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_of_two_columns_needs_no_header(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("ab,x\nb,y\na,x\n")
    assert read_examples(tmp_path / "file.csv").counts.num_rows == 3
    with pytest.raises(
        ValueError, match="expected a column other than the column of strings, got 'text'; name another"
    ):
        read_examples(save(tmp_path / "other.csv"), string="text", label="text")


def test_cells_that_a_spreadsheet_adds_or_leaves_out_are_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("text,label,note\nab,x\nb,y,,\n")
    assert read_examples(path).classes == ("x", "y")


def test_rows_of_an_array_are_pairs() -> None:
    assert read_examples(np.array([["ab", "x"], ["b", "y"]])).classes == ("x", "y")


def test_files_and_columns_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected a file of examples, found no such file"):
        read_examples(tmp_path / "none.csv")
    with pytest.raises(
        ValueError, match="label: expected one of the columns 'number', 'text', 'label', got 'lable'; did"
    ):
        read_examples(save(tmp_path / "file.csv"), label="lable")
    with pytest.raises(ValueError, match="file of examples, found no such file"):
        make_task("examples", file=tmp_path / "none.csv")


def test_labels_of_prefixes_need_no_header_and_may_all_differ(tmp_path: Path) -> None:
    file = tmp_path / "prefixes.csv"
    file.write_text("aab,010\nab,01\nba,11\na,0\nabba,0110\n")
    assert len(read_examples(file, supervision="prefix")) == 5


def test_a_file_with_other_examples_makes_another_task(tmp_path: Path) -> None:
    file = save(tmp_path / "file.csv")
    first = make_task("examples", file=file)
    assert make_task("examples", file=file) == first
    assert make_task("examples", **first.model_dump(mode="json")) == first
    file.write_text(file.read_text().replace("ba,out", "ba,in"))
    os.utime(file, ns=(0, 0))
    other = make_task("examples", file=file)
    assert first.digest != other.digest
    with pytest.raises(
        ValueError, match=rf"expected the examples with digest {first.digest}, got digest '[0-9a-f]+' of file .*csv"
    ):
        make_task("examples", **first.model_dump(mode="json"))
    with pytest.raises(
        ValueError, match=rf"expected the examples with digest {first.digest}, got digest '[0-9a-f]+' of file .*csv"
    ):
        first.sample(2, 2, torch.Generator())
    assert make_task("examples").digest == "", "the examples that need no file"
    with pytest.raises(ValueError, match=r"file: expected the examples with digest 0{16}, got digest '' of file None"):
        make_task("examples", digest="0" * 16)


class NAType:
    """As of pandas: nothing is known of it, not even whether it equals itself."""

    def __ne__(self, other: object) -> "NAType":
        return self

    def __eq__(self, other: object) -> "NAType":
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_what_data_frames_have_for_missing_values_is_named() -> None:
    with pytest.raises(ValueError, match=r"^examples: row 2: expected a string, got a missing value"):
        read_examples([("ab", "x"), (NAType(), "y")])
    with pytest.raises(ValueError, match=r"^examples: row 2: expected one label, got an empty label"):
        read_examples([("ab", "x"), ("ba", NAType())])
    with pytest.raises(ValueError, match=r"^examples: row 2: expected one label, got an empty label"):
        read_examples([("ab", "x"), ("ba", Decimal("NaN"))])


def test_the_name_of_a_file_is_no_part_of_a_run(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        file = save(tmp_path / name / "file.csv")
        runs.append(make_spec("examples", "gru", {"task": {"file": str(file)}, "train": {"min_length": 1}}).id)
    file.write_text(file.read_text().replace("ba,out", "ba,in"))
    os.utime(file, ns=(0, 0))
    runs.append(make_spec("examples", "gru", {"task": {"file": str(file)}, "train": {"min_length": 1}}).id)
    assert runs[0] == runs[1] != runs[2]
    expected = "set train.min_length and train.max_length within 1 to 4, the lengths of its examples, or use the preset"
    with pytest.raises(ValueError, match=expected):
        make_spec("examples", "gru", {"task": {"file": str(file)}})
    with pytest.raises(
        ValueError, match=r"^task\.file: .*none\.csv: expected a file of examples, found no such file; give"
    ):
        make_spec("examples", "gru", {"task": {"file": str(tmp_path / "none.csv")}})


@pytest.mark.unchecked
def test_arrays_tensors_and_symbols_of_any_kind_are_lists() -> None:
    expected = read_examples([(["1", "0"], "true"), (["0"], "false")])
    pairs = [([1, 0], True), ([0], False)]
    for item, label in ((np.array, np.bool_), (torch.tensor, torch.tensor)):
        examples = read_examples([(item(string), label(answer)) for string, answer in pairs])
        assert (examples.symbols, examples.classes) == (expected.symbols, expected.classes)
        assert examples.digest == expected.digest
    assert read_examples([("a\n", "in"), ("a", "out")]).symbols == ("\n", "a")
    for missing in (None, float("nan"), ""):
        with pytest.raises(ValueError, match="expected non-empty symbols in a list, got "):
            read_examples([(["a", missing], "in"), (["a"], "out")])
    with pytest.raises(
        ValueError, match=r"^supervision: expected one of last, prefix, got 'prefx'; did you mean 'prefix'"
    ):
        read_examples([("a", "1"), ("b", "0")], supervision="prefx")


def test_quotes_that_are_left_open_and_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text('string,label\n"ab,in\nb,out\naa,in\n')
    with pytest.raises(ValueError, match=r"table\.csv: cannot be read: unexpected end of data"):
        read_examples(table)
    table.write_text("string,label,label\nab,in,out\nb,out,in\n")
    with pytest.raises(ValueError, match=r"label: expected one of the columns .*, got 'label' 2 times"):
        read_examples(table, label="label")


def test_strings_whose_labels_are_tied_are_left_out_in_any_order() -> None:
    pairs = [("a", "in"), ("a", "out"), ("b", "out"), ("ab", "in"), ("ab", "in"), ("ab", "out")]
    for given in (pairs, pairs[::-1]):
        examples = read_examples(given)
        assert {examples.text(index, "") for index in range(len(examples))} == {"b", "ab"}
        assert examples.counts == Counts(num_rows=6, num_empty=0, num_duplicates=1, num_contradictory=3)
    with pytest.raises(ValueError, match=r"got ties between labels for every string; remove the rows with"):
        read_examples(pairs[:2])


def test_long_strings_of_a_table_are_read_and_rows_without_a_label_are_named(tmp_path: Path) -> None:
    table, lines = tmp_path / "long.csv", tmp_path / "keys.jsonl"
    table.write_text(f"string,label\n{'ab' * 100_000},in\nb,out\n")
    assert int(read_examples(table).lengths.max()) == 200_000
    lines.write_text('{"string": "a", "label": "in"}\n{"string": "b"}\n')
    with pytest.raises(ValueError, match=r"examples: row 2: .*label"):
        read_examples(lines)
