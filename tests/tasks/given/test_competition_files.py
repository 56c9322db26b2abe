"""Abbadingo's and StaMInA's files, and files of examples in which something was changed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.tasks.given.reading import read_examples


def test_the_training_files_of_stamina_are_read(tmp_path: Path) -> None:
    path = tmp_path / "1_training.dat"
    path.write_text("+ 1 0 0\n- 10 0\n\n+\n- 1\n+ 1 0 0\n")
    examples = read_examples(path)
    assert examples.symbols == ("0", "1", "10")
    assert examples.classes == ("+", "-")
    assert [examples.text(index, " ") for index in range(len(examples))] == ["1 0 0", "10 0", "1"]
    assert examples.empty_label == "+"
    assert examples.counts.num_duplicates == 1


def test_flexfringe_counts_attributes_in_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "1_training.txt.dat"
    path.write_text("3 2:0\n1 2 0 1\n0 1 0\n0 0 \n")
    examples = read_examples(path)
    assert (len(examples), examples.empty_label) == (2, "0")
    path.write_text("3 2:1\n1 2 0:7 1:8\n")
    with pytest.raises(ValueError, match=r"expected symbols without attributes, got '2:1' in the first line; remove"):
        read_examples(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "? 1 0\n? 0\n",
            r"row 1: expected \+ or - before the symbols, got \?, which marks strings to be labeled; give",
        ),
        ("+ 1 0\n0 1\n", r"row 2: expected \+ or - before the symbols, got '0'; give the file of"),
        ("+1 0\n- 1\n", r"expected a first line with the numbers of strings .*, got \['\+1', '0'\]; write these two"),
        ("2 2:\n1 1 0\n", r"expected a first line with the numbers of strings .*, got \['2', '2:'\]; write these two"),
    ],
)
def test_other_lines_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.dat"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_examples(path)


def test_text_files_are_pointed_to_the_right_suffix(tmp_path: Path) -> None:
    path = tmp_path / "1_training.txt"
    path.write_text("+ 1 0 0\n")
    with pytest.raises(ValueError, match=r"got '\+ 1 0 0'; correct the line, or rename .* \(\.dat for Abbadingo"):
        read_examples(path)


STRINGS = st.lists(st.sampled_from("ab"), max_size=5).map("".join)
PAIRS = st.dictionaries(STRINGS, st.sampled_from("+-"), min_size=3, max_size=8).filter(
    lambda pairs: len({label for text, label in pairs.items() if text}) == 2
)
WRITERS = {
    "csv": lambda pairs: "string,label\n" + "".join(f"{text},{label}\n" for text, label in pairs),
    "tsv": lambda pairs: "string\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in pairs),
    "jsonl": lambda pairs: "".join(json.dumps({"string": text, "label": label}) + "\n" for text, label in pairs),
    "abbadingo.dat": lambda pairs: (
        f"{len(pairs)} 2\n" + "".join(f"{label} {len(text)} {' '.join(text)}\n" for text, label in pairs)
    ),
    "stamina.dat": lambda pairs: "".join(f"{label} {' '.join(text)}\n" for text, label in pairs),
}


def change(kind: str, text: str, data: st.DataObject) -> str:
    """Add a column, a field, or a line that the format has not."""
    head, *lines = text.splitlines()
    if kind in ("csv", "tsv"):
        between = "," if kind == "csv" else "\t"
        name = data.draw(st.sampled_from(["weight", "count", "split", "label", "device"]))
        return "\n".join([head + between + name, *(line + between + "2" for line in lines)]) + "\n"
    if kind == "jsonl":
        added = data.draw(
            st.sampled_from(['"label": "+"', '"label": "-"', '"weight": 2', '"device": 1', '"text": "b"'])
        )
        index = data.draw(st.integers(0, len(lines)))
        every = [head, *lines]
        every[index] = every[index][:-1] + f", {added}}}"
        return "\n".join(every) + "\n"
    added = data.draw(st.sampled_from(["? a b", "-1 1 a", "+ 9 a b", "weight 2", "* a b", "+a b"]))
    if kind == "stamina.dat" and added == "+ 9 a b":
        added = "+9 a b"
    return "\n".join([head, *lines, added]) + "\n"


@pytest.mark.parametrize("kind", WRITERS)
@given(pairs=PAIRS, data=st.data())
def test_what_is_written_is_read_and_changes_are_refused_or_change_nothing(
    kind: str, pairs: dict[str, str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("examples") / f"file.{kind}"
    text = WRITERS[kind](list(pairs.items()))
    path.write_text(text)
    expected = read_examples(list(pairs.items()))
    examples = read_examples(path)
    assert (examples.digest, examples.empty_label) == (expected.digest, expected.empty_label)
    path.write_text(change(kind, text, data))
    try:
        changed = read_examples(path)
    except ValueError:
        return
    assert (changed.digest, changed.empty_label) == (expected.digest, expected.empty_label)
    assert changed.counts.unused_columns == ("device",)
