"""Data sets drawn by MLRegTest's protocol: their sizes, labels, overlaps and pairs, and their files."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lengthwise.automata.dfa import DFA
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.tasks.given import mlregtest_sampler
from lengthwise.tasks.given.mlregtest_sampler import LONG, SHORT, SPLITS, mlregtest_splits, rows_of, write_mlregtest
from lengthwise.tasks.given.reading import read_examples

NO_BB = dfa_from_regex("(b?(a|c))*b?")
"""Strings over a, b and c without bb: outside is far more frequent at length 50."""


def strings_of(language: DFA, split: str, size: int = 400) -> list[tuple[str, str]]:
    groups = mlregtest_splits(language, size)[split]
    return [("".join(string), label) for string, label in rows_of(groups, language.symbols)]


def differ_by_one_symbol(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) == len(long):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


@pytest.mark.parametrize("split", SPLITS)
def test_each_length_has_equally_many_strings_inside_and_outside(split: str) -> None:
    rows, lengths = strings_of(NO_BB, split), SPLITS[split]
    assert len(rows) == 400
    assert all(("bb" not in string) == (label == "TRUE") for string, label in rows)
    if split.endswith("A"):
        inside, outside = ([string for string, label in rows if label == name] for name in ("TRUE", "FALSE"))
        pairs = list(zip(inside, outside, strict=True))
        assert all(differ_by_one_symbol(*pair) for pair in pairs)
        assert Counter(len(string) for string in inside) == dict.fromkeys(lengths, 200 // len(lengths))
        assert {len(other) - len(string) for string, other in pairs} == {-1, 0, 1}
        assert len({*inside, *outside}) == 400
    else:
        counts = Counter((len(string), label) for string, label in rows)
        labels = ("TRUE", "FALSE")
        assert counts == {(length, label): 200 // len(lengths) for length in lengths for label in labels}
        assert split == "Train" or len(set(rows)) == 400


def test_strings_of_training_occur_in_no_other_set() -> None:
    groups = mlregtest_splits(NO_BB, 400)
    sets = {name: {string for group in groups[name] for string in group.strings} for name in SPLITS}
    for one, other in (
        ("Train", "Dev"),
        ("Train", "TestSR"),
        ("Dev", "TestSR"),
        ("Train", "TestSA"),
        ("Dev", "TestSA"),
    ):
        assert not sets[one] & sets[other]


def test_training_strings_may_occur_again() -> None:
    """The language has one string at each length, which training repeats; Dev cannot have another."""
    constant = dfa_from_regex("a*", ("a", "b"))
    with pytest.raises(
        ValueError, match="expected 20 new strings inside the language at length 20, got 0; lower size, or choose"
    ):
        mlregtest_splits(constant, 400)


def test_strings_are_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlregtest_sampler, "SPLITS", {"Train": range(3, 4)})
    drawn = Counter(string for string, label in strings_of(NO_BB, "Train", 8_000) if label == "TRUE")
    assert len(drawn) == NO_BB.count(3) == 22
    assert all(abs(count - 4_000 / 22) < 5 * (4_000 / 22) ** 0.5 for count in drawn.values())


def test_edits_are_uniform() -> None:
    language = dfa_from_regex("a*", ("a", "b"))
    drawing = mlregtest_sampler._Drawing((language.complement(), language), np.random.default_rng(0))
    drawn = Counter(drawing._edited((0, 1)) for _ in range(5_000))
    twice = {(0, 0, 1), (0, 1, 1)}  # by insertions at two positions
    once = {(0,), (1,), (0, 0), (1, 1), (1, 0, 1), (0, 1, 0)}
    assert drawn.keys() == twice | once
    assert all(abs(drawn[string] - (1_000 if string in twice else 500)) < 150 for string in drawn)


def test_smaller_sizes_are_parts_of_larger_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlregtest_sampler, "SIZES", {"Small": 40, "Mid": 400, "Large": 4_000})
    write_mlregtest(tmp_path, "no-bb", NO_BB, largest="Mid", seed=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Mid", "Small"]
    for split in SPLITS:
        small, mid = ((tmp_path / size / f"no-bb_{split}.txt").read_text().splitlines() for size in ("Small", "Mid"))
        assert (len(small), len(mid)) == (40, 400)
        assert not Counter(small) - Counter(mid)
        examples = read_examples(tmp_path / "Mid" / f"no-bb_{split}.txt")
        assert (examples.classes, examples.symbols) == (("FALSE", "TRUE"), ("a", "b", "c"))
        assert examples.counts.num_rows == 400
    write_mlregtest(tmp_path / "again", "no-bb", NO_BB, largest="Mid", seed=1)
    for path in (tmp_path / "Mid").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / "Mid" / path.name).read_bytes()


def test_existing_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "Small").mkdir()
    (tmp_path / "Small/no-bb_Dev.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"no-bb_Dev\.txt: expected a path without a file, got a file that exists"):
        write_mlregtest(tmp_path, "no-bb", NO_BB)
    assert len([*tmp_path.rglob("*.txt")]) == 1


def test_wrong_sizes_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match="size: expected a multiple of 40, got 50; give for example 1,000, the smallest size of MLRegTest",
    ):
        mlregtest_splits(NO_BB, 50)
    with pytest.raises(ValueError, match="largest: expected one of Small, Mid, Large, got 'Huge'; choose one of these"):
        write_mlregtest(tmp_path, "x", NO_BB, largest="Huge")
    assert (SHORT[0], SHORT[-1], LONG[0], LONG[-1]) == (20, 29, 31, 50)
