"""Splits drawn by FLaRe's protocol: the distribution of their strings, their labels, and their files."""

from collections import Counter
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from lengthwise.automata.dfa import DFA
from lengthwise.automata.flare import PROBLEMS, flare
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.tasks.given.flare_sampler import SPLITS, Split, flare_splits, write_flare
from lengthwise.tasks.given.reading import read_examples

TRAIN, HELD_OUT = Split(".", 400, 12), Split("datasets/test-short-held-out", 60, 12)


def accepts(language: DFA, string: tuple[int, ...]) -> bool:
    return bool(language.accepts(np.array([string], np.int64))[0])


@pytest.mark.parametrize("problem", PROBLEMS)
def test_labels_and_lengths_are_right_and_held_out_strings_are_new(problem: str) -> None:
    language = flare(problem)
    splits = flare_splits(language, splits=(TRAIN, HELD_OUT))
    for split, examples in splits.items():
        assert len(examples) == split.num_strings
        for example in examples:
            assert accepts(language, example.string) == example.label
            assert len(example.string) <= split.max_length
            assert example.num_edits is None or (not example.label and example.num_edits >= 1)
    labels = [example.label for example in splits[TRAIN]]
    assert 140 < sum(labels) < 260
    # The language (01)* has seven strings up to length 12, which are all in the training split.
    assert (HELD_OUT in splits) == (problem != "repeat-01")
    trained = {example.string for example in splits[TRAIN]}
    assert not trained & {example.string for example in splits.get(HELD_OUT, [])}


def weight(language: DFA, string: tuple[int, ...]) -> float:
    """The product of 1 / (number of ways to go on or to end) over the states of a string, by looking ahead."""

    def ways(prefix: tuple[int, ...]) -> int:
        symbols = range(len(language.symbols))
        ahead = [
            any(accepts(language, (*prefix, v, *rest)) for n in range(4) for rest in product(symbols, repeat=n))
            for v in symbols
        ]
        return sum(ahead) + accepts(language, prefix)

    return prod(1 / ways(string[:n]) for n in range(len(string) + 1))


@pytest.mark.parametrize(
    ("problem", "lengths"), [("parity", (1, 2, 3, 4)), ("dyck-2-3", (0, 2, 4)), ("even-pairs", range(5))]
)
def test_strings_inside_have_the_published_distribution(problem: str, lengths: tuple[int, ...]) -> None:
    language, split = flare(problem), Split(".", 12_000, 4)
    drawn = Counter(example.string for example in flare_splits(language, splits=[split])[split] if example.label)
    expected = {}
    for length in lengths:
        words = [word for word in product(range(len(language.symbols)), repeat=length) if accepts(language, word)]
        weights = np.array([weight(language, word) for word in words])
        expected.update(zip(words, weights / weights.sum() / len(lengths), strict=True))
    assert drawn.keys() <= expected.keys()
    count = drawn.total()
    for word, share in expected.items():
        assert abs(drawn[word] - count * share) < 5 * (count * share * (1 - share)) ** 0.5, word


def edits_away(string: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Levenshtein distance, row by row."""
    row = list(range(len(other) + 1))
    for number, symbol in enumerate(string, 1):
        above, row[0] = row[0], number
        for at, letter in enumerate(other, 1):
            above, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, above + (symbol != letter))
    return row[-1]


def test_a_number_of_edits_suffices_to_return_to_the_language() -> None:
    examples = flare_splits(flare("repeat-01"), splits=[TRAIN])[TRAIN]
    edited = [example for example in examples if example.num_edits is not None]
    assert 60 < len(edited) < 140
    counts = Counter(example.num_edits for example in edited)
    assert 0.35 < counts[1] / len(edited) < 0.7
    assert max(counts) > 2
    for example in edited:
        distance = min(edits_away(example.string, (0, 1) * n) for n in range(7))
        assert 1 <= distance <= example.num_edits  # an edit may undo another


def test_files_are_read_back_and_depend_on_the_seed_alone(tmp_path: Path) -> None:
    splits = (TRAIN, Split("datasets/test", 50, 30))
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        write_flare(tmp_path / name, flare("dyck-2-3"), seed=seed, splits=splits)
    for split, examples in flare_splits(flare("dyck-2-3"), seed=3, splits=splits).items():
        folder = tmp_path / "one" / split.folder
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert files.keys() == {"main.tok", "labels.txt", "num-edits.txt", "next-symbols.jsonl"}
        assert files == {name: (tmp_path / "again" / split.folder / name).read_bytes() for name in files}
        assert files["main.tok"] != (tmp_path / "other" / split.folder / "main.tok").read_bytes()
        names = flare("dyck-2-3").symbols
        pairs = [([names[v] for v in example.string], str(example.label)) for example in examples]
        assert read_examples(folder).digest == read_examples(pairs).digest
        assert read_examples(folder).counts.num_rows == split.num_strings


def test_existing_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("mine")
    with pytest.raises(
        ValueError,
        match=r"labels\.txt: expected a path without a file, got a file that exists",
    ):
        write_flare(tmp_path, flare("parity"), splits=[TRAIN])
    assert [path.name for path in tmp_path.iterdir()] == ["labels.txt"]


def test_the_published_sizes_are_the_defaults() -> None:
    assert [split.num_strings for split in SPLITS] == [10_000, 1_000, 1_000, 5_010, 1_000]
    assert [split.max_length for split in SPLITS] == [40, 40, 80, 500, 40]


def test_languages_without_strings_of_both_labels_are_rejected() -> None:
    with pytest.raises(
        ValueError,
        match="expected strings in the language and outside it, of up to 12 symbols, got only strings of one",
    ):
        flare_splits(dfa_from_regex("(a|b)*"), splits=[TRAIN])
    with pytest.raises(
        ValueError, match="expected a language with a string of at most 12 symbols, got a language without"
    ):
        flare_splits(dfa_from_regex("a{13}", ("a", "b")), splits=[TRAIN])
