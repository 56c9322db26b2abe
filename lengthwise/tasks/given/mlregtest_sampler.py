"""The data sets of MLRegTest, drawn by its protocol for any regular language."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.files import check_new, write_by_rename
from lengthwise.randomness import generator_for
from lengthwise.registry import check_known

SHORT, LONG = range(20, 30), range(31, 51)
"""The lengths of strings in Train, Dev and the short tests (TestSR, TestSA), and in the long tests (TestLR, TestLA)."""

SPLITS = {"Train": SHORT, "Dev": SHORT, "TestSR": SHORT, "TestLR": LONG, "TestSA": SHORT, "TestLA": LONG}
"""The data sets of a language with the lengths of their strings, in drawing order."""

SIZES = {"Small": 1_000, "Mid": 10_000, "Large": 100_000}
"""The folders of the data sets, and the number of strings in each set."""

MAX_TRIES = 200
"""The largest number of rounds in which a `Group` is drawn; each round draws as many strings as the group needs."""

String = tuple[int, ...]
"""The ids of a string's symbols."""


class Group(NamedTuple):
    """A group of strings that have one label and are drawn for one length."""

    label: str
    strings: list[String]


def mlregtest_splits(language: DFA, size: int = 1_000, *, seed: int = 0) -> dict[str, list[Group]]:
    """Draw the six data sets of a language by the protocol of MLRegTest.

    Each set has `size` strings, half inside the language (TRUE) and half outside (FALSE). All lengths have equally many
    strings.

    - Train: uniform strings of 20 to 29 symbols; a string may occur again.
    - Dev, TestSR: the same lengths, but each string occurs only once, and in no earlier set.
    - TestLR: different uniform strings of 31 to 50 symbols.
    - TestSA, TestLA: pairs of a string inside and a string outside that differ by one inserted, deleted or replaced
      symbol. No string of TestSA is in Train or Dev. One string of a pair has the drawn length, and the other one may
      have a symbol more or less.

    Raises:
        ValueError: `size` is not a multiple of 40; a length has too few strings inside or outside, or too few pairs.

    Source: MLRegTest (JMLR 25(283), 2024), section 5, and its repository's `pathogen.py` and `data-gen.py`.
    Differs from the source: the random numbers. The first string of a pair is drawn from the language or from its
        complement, whichever has fewer strings of the drawn length. In the source, the first string is a string inside
        (`pathogen.py`), or any uniform string (`data-gen.py`).
    """
    num_groups = 2 * len(LONG)
    if size < num_groups or size % num_groups:
        raise ValueError(
            f"size: expected a multiple of {num_groups}, got {size:,}; give for example 1,000, the smallest size of "
            "MLRegTest"
        )
    drawing = _Drawing(
        (language.complement(), language), np.random.default_rng(generator_for(seed, "data").initial_seed())
    )
    drawn: dict[str, list[Group]] = {}
    for name, lengths in SPLITS.items():
        count = size // (2 * len(lengths))
        seen = {string for each in ("Train", "Dev") for group in drawn.get(each, ()) for string in group.strings}
        drawn[name] = []
        for length in lengths:
            if name.endswith("A"):
                inside, outside = drawing.pairs(length, count, seen)
            else:
                avoided = None if name == "Train" else seen
                inside, outside = (drawing.uniform(side, length, count, avoided) for side in (1, 0))
            drawn[name] += [Group("TRUE", inside), Group("FALSE", outside)]
    return drawn


def rows_of(groups: Iterable[Group], symbols: Sequence[str], every: int = 1) -> Iterator[tuple[list[str], str]]:
    """Yield strings and labels: every `every`-th string of each group, as in MLRegTest's smaller sets."""
    for label, strings in groups:
        for string in strings[::every]:
            yield [symbols[v] for v in string], label


def write_mlregtest(folder: Path, name: str, language: DFA, *, largest: str = "Small", seed: int = 0) -> None:
    """Write the data sets of a language in MLRegTest's files, such as ``Small/NAME_Train.txt``.

    `largest` is the largest size to write, ``Small``, ``Mid`` or ``Large``. The data sets of smaller sizes are also
    written; they are subsets of the largest ones.

    Raises:
        ValueError: the size is unknown, or a file exists already; otherwise as for `mlregtest_splits`.

    Example:
        >>> from tempfile import mkdtemp
        >>> from lengthwise.automata.regex import dfa_from_regex
        >>> folder = Path(mkdtemp())
        >>> write_mlregtest(folder, "no-bb", dfa_from_regex("(b?(a|c))*b?"))
        >>> len((folder / "Small" / "no-bb_TestLA.txt").read_text().splitlines())
        1000
    """
    check_known("largest", largest, SIZES)
    sizes = {key: size for key, size in SIZES.items() if size <= SIZES[largest]}
    check_new(folder / key / f"{name}_{split}.txt" for key in sizes for split in SPLITS)
    splits = mlregtest_splits(language, SIZES[largest], seed=seed)
    for key, size in sizes.items():
        target = folder / key
        target.mkdir(parents=True, exist_ok=True)
        for split, groups in splits.items():
            rows = rows_of(groups, language.symbols, SIZES[largest] // size)
            lines = [f"{''.join(string)}\t{label}\n" for string, label in rows]
            write_by_rename(target / f"{name}_{split}.txt", "".join(lines).encode())


class _Drawing(NamedTuple):
    """The two sides from which strings are drawn (complement and language), and the source of random numbers."""

    sides: tuple[DFA, DFA]
    chance: np.random.Generator

    def uniform(self, side: int, length: int, count: int, seen: set[String] | None) -> list[String]:
        """Draw uniform strings from the language (side 1) or from its complement (side 0).

        With `seen`, draw only new, distinct strings, and add them to `seen`.
        """
        strings: list[String] = []
        for _ in range(MAX_TRIES if self.sides[side].count(length) else 0):
            for string in self._draw(side, length, count - len(strings)):
                if seen is None or string not in seen:
                    strings.append(string)
                    if seen is not None:
                        seen.add(string)
            if len(strings) == count:
                return strings
        raise _too_few(f"new strings {'inside' if side else 'outside'} the language", length, count, len(strings))

    def pairs(self, length: int, count: int, seen: set[String]) -> tuple[list[String], list[String]]:
        """Draw pairs of a string inside the language and a string outside it, one edit apart and not yet in `seen`.

        The drawn strings are added to `seen`.
        """
        numbers = [side.count(length) for side in self.sides]
        # Most strings of the rarer side are near the other side, so few draws are wasted.
        side = int(numbers[1] <= numbers[0])
        drawn: tuple[list[String], list[String]] = ([], [])
        for _ in range(MAX_TRIES if numbers[side] else 0):
            strings = self._draw(side, length, count)
            edited = [self._edited(string) for string in strings]
            for string, other, crosses in zip(strings, edited, self.sides[1 - side].accepts_each(edited), strict=True):
                if crosses and string not in seen and other not in seen and len(drawn[0]) < count:
                    seen.update((string, other))
                    drawn[1 - side].append(other)
                    drawn[side].append(string)
            if len(drawn[0]) == count:
                return drawn[1], drawn[0]
        what = "new pairs of strings inside and outside the language, one edit apart,"
        raise _too_few(what, length, count, len(drawn[0]))

    def _draw(self, side: int, length: int, count: int) -> list[String]:
        return [tuple(string) for string in self.sides[side].sample(self.chance.random((count, length))).tolist()]

    def _edited(self, string: String) -> String:
        """Change a string by one edit, uniform among deletions, insertions and replacements by another symbol."""
        num_symbols, length = len(self.sides[0].symbols), len(string)
        number = int(self.chance.integers(length + (length + 1) * num_symbols + length * (num_symbols - 1)))
        if number < length:
            return string[:number] + string[number + 1 :]
        at, symbol = divmod(number - length, num_symbols)
        if at <= length:
            return (*string[:at], symbol, *string[at:])
        at, shift = divmod(number - length - (length + 1) * num_symbols, num_symbols - 1)
        return (*string[:at], (string[at] + 1 + shift) % num_symbols, *string[at + 1 :])


def _too_few(what: str, length: int, count: int, num_drawn: int) -> ValueError:
    return ValueError(
        f"language: expected {count:,} {what} at length {length}, got {num_drawn:,}; lower size, or choose another "
        "language"
    )
