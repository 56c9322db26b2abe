"""Labeled strings: symbols and classes as ids, without duplicates and contradictions."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.conventions import IGNORE

Supervision = Literal["last", "prefix"]
"""The number of labels of a string: with "last", a string has one label, and with "prefix", one after each symbol."""

MAX_NAMES = 10_000
"""The largest number of symbols or of classes. A larger number is a sign that a wrong column was read."""

MAX_NAMED_COLUMNS = 10
"""The largest number of unused columns that a message names."""


class Row(NamedTuple):
    """An example: the symbols of a string, its labels (one, or one per symbol), and its line number for messages."""

    symbols: Sequence[str]
    labels: Sequence[str]
    number: int


class Counts(NamedTuple):
    """Counts of the rows of examples: the number of rows read, and the number of rows left out for each reason.

    If a string has several labels, the most frequent label is kept. With a label for each symbol, this rule applies to
    each prefix. If the most frequent labels are tied, the string is left out. `num_contradictory` counts rows whose
    label differs from the kept label, and rows of strings without a kept label. No net answers the empty string, so its
    label is stored separately (`Examples.empty_label`). `unused_columns` are the columns of a table that contain
    neither strings nor labels.
    """

    num_rows: int
    num_empty: int = 0
    num_duplicates: int = 0
    num_contradictory: int = 0
    unused_columns: tuple[str, ...] = ()

    def describe_omitted_rows(self) -> str:
        """Return a clause that counts the rows that were left out, by reason."""
        return (
            f"{self.num_duplicates:,} duplicates, {self.num_contradictory:,} that contradict others, "
            f"{self.num_empty:,} of the empty string"
        )

    def describe_unused_columns(self) -> str:
        """Return a clause that names the unused columns of the table, or an empty string if all columns are used."""
        if not self.unused_columns:
            return ""
        known, count = self.unused_columns[:MAX_NAMED_COLUMNS], len(self.unused_columns)
        more = f" and {count - len(known):,} more" * (count > len(known))
        return f"columns that are not used: {', '.join(repr(name[:40]) for name in known)}{more}"


@dataclass(frozen=True, eq=False)
class Examples:
    """Strings and their labels. String n is ``ids[starts[n]:starts[n + 1]]``: all strings are stored one after another.

    `targets` contains `IGNORE` at positions without a label. `rows` contains the number of each string's first row, for
    error messages. `empty_label` is the label of the empty string, or "".
    """

    symbols: tuple[str, ...]
    classes: tuple[str, ...]
    ids: Int64[np.ndarray, " M"]
    targets: Int64[np.ndarray, " M"]
    starts: Int64[np.ndarray, " N1"]
    rows: Int64[np.ndarray, " N"]
    supervision: Supervision
    counts: Counts
    empty_label: str = ""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " N"]:
        """Return the number of symbols in each string."""
        return np.diff(self.starts)

    @cached_property
    def digest(self) -> str:
        """Return a hash of the strings, their labels, and the names of symbols and classes."""
        names = json.dumps([self.symbols, self.classes])
        arrays = (self.ids, self.targets, self.starts)
        return blake2b(names.encode() + b"".join(array.tobytes() for array in arrays), digest_size=8).hexdigest()

    @cached_property
    def prefixes(self) -> Int64[np.ndarray, " M"]:
        """Return a number for each prefix of each string, in the order of `targets`; equal prefixes share a number."""
        numbers, count = np.empty(len(self.ids), np.int64), 0
        rows, before = np.arange(len(self)), np.zeros(len(self), np.int64)
        for length in range(int(self.lengths.max(initial=0))):
            before, rows = before[self.lengths[rows] > length], rows[self.lengths[rows] > length]
            positions = self.starts[rows] + length
            _, before = np.unique(before * len(self.symbols) + self.ids[positions], return_inverse=True)
            numbers[positions] = count + before
            count += int(before.max()) + 1
        return numbers

    def of_length(self, length: int) -> tuple[Int64[np.ndarray, "K T"], Int64[np.ndarray, "K T"]]:
        """Return the ids and targets of all strings of a length."""
        rows = self.starts[:-1][self.lengths == length]
        positions = rows[:, None] + np.arange(length)
        return self.ids[positions], self.targets[positions]

    def row_of(self, index: int) -> int:
        """Return the number of the row from which the string that contains `ids[index]` was first read."""
        return int(self.rows[np.searchsorted(self.starts, index, side="right") - 1])

    def part(self, is_kept: Bool[np.ndarray, " N"]) -> "Examples":
        """Return the strings for which the mask is True; symbols and classes stay, even if they no longer occur."""
        kept = np.repeat(is_kept, self.lengths)
        starts = np.concatenate([[0], self.lengths[is_kept].cumsum()])
        ids, targets = self.ids[kept], self.targets[kept]
        return replace(self, ids=ids, targets=targets, starts=starts, rows=self.rows[is_kept])

    def text(self, index: int, separator: str) -> str:
        """Return the string with this index as text, with the separator between its symbols."""
        return separator.join(self.symbols[v] for v in self.ids[self.starts[index] : self.starts[index + 1]])


def examples_from(rows: Iterable[Row], supervision: Supervision, *, min_classes: int = 2) -> Examples:
    """Return examples without duplicates, in which symbols and classes are numbered in the order of their names.

    Raises:
        ValueError: a string lacks its label, or a label for each symbol; there are fewer classes than `min_classes`, or
            no strings; the labels of every string are tied; or there are more than 10,000 symbols or classes.

    Example:
        >>> examples = examples_from([Row("ab", ["in"], 1), Row("b", ["out"], 2), Row("ab", ["in"], 3)], "last")
        >>> examples.symbols, examples.classes, examples.counts.num_duplicates
        (('a', 'b'), ('in', 'out'), 1)
    """
    strings, chosen, numbers, empty_label, counts = _without_repetitions(rows, supervision)
    names = sorted({symbol for string in strings for symbol in string}, key=_natural)
    classes = sorted({label for labels in chosen for label in labels}, key=_natural)
    for what, of_kind in (("symbols", names), ("classes", classes)):
        if len(of_kind) > MAX_NAMES:
            raise ValueError(
                f"examples: expected at most {MAX_NAMES:,} {what}, got {len(of_kind):,}; check the column and the "
                "separator"
            )
    if len(classes) < min_classes:
        raise ValueError(
            f"examples: expected labels of two classes or more, got only {classes[0]!r}; add examples of another class"
        )
    symbol_ids = {symbol: index for index, symbol in enumerate(names)}
    class_ids = {name: index for index, name in enumerate(classes)}
    starts = np.cumsum([0, *map(len, strings)])
    ids = np.fromiter((symbol_ids[symbol] for string in strings for symbol in string), np.int64, starts[-1])
    labeled = np.fromiter((class_ids[label] for labels in chosen for label in labels), np.int64)
    targets = np.full(len(ids), IGNORE)
    targets[starts[1:] - 1 if supervision == "last" else slice(None)] = labeled
    first = np.array(numbers, np.int64)
    return Examples(tuple(names), tuple(classes), ids, targets, starts, first, supervision, counts, empty_label)


def _without_repetitions(
    rows: Iterable[Row], supervision: Supervision
) -> tuple[list[Sequence[str]], list[list[str]], list[int], str, Counts]:
    """Return each string once, its majority labels, its first row, the empty string's label, and counts.

    If prefixes have labels, the nodes of the tree of prefixes are numbered. Otherwise whole strings are numbered. Each
    row is one vote for the label of its string, or for the label of each of its prefixes.
    """
    nodes: dict[tuple[int, str], int] = {}
    whole: dict[Sequence[str], int] = {}
    votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
    empty_votes: Counter[str] = Counter()
    strings: dict[int, tuple[Sequence[str], list[int], int]] = {}
    labeled: list[tuple[list[int], Sequence[str]]] = []
    num_rows = 0
    for symbols, labels, number in rows:
        num_rows += 1
        _check_labels(symbols, labels, number, supervision)
        if symbols:
            nodes_of = []
            if supervision == "last":
                # Prefixes have no labels here, so a tree of prefixes would only take memory.
                nodes_of.append(whole.setdefault(tuple(symbols), len(whole)))
            else:
                for symbol in symbols:
                    before = nodes_of[-1] if nodes_of else -1
                    nodes_of.append(nodes.setdefault((before, symbol), len(nodes)))
            strings.setdefault(nodes_of[-1], (symbols, nodes_of, number))
            labeled.append((nodes_of, labels))
            for node, label in zip(nodes_of, labels, strict=True):
                votes[node][label] += 1
        elif labels:
            empty_votes[labels[0]] += 1
    if not strings:
        raise ValueError(
            f"examples: expected at least one string that is not empty, got none in {num_rows:,} rows; add strings"
        )
    majority = {node: max(counter, key=counter.__getitem__) for node, counter in votes.items() if not _is_tied(counter)}
    agreeing = [
        nodes_of[-1]
        for nodes_of, labels in labeled
        if all(majority.get(node) == label for node, label in zip(nodes_of, labels, strict=True))
    ]
    kept = [string for string in strings.values() if majority.keys() >= set(string[1])]
    if not kept:
        raise ValueError(
            "examples: expected at least one string with a single most frequent label, got ties between labels for "
            "every string; remove the rows with wrong labels"
        )
    num_duplicates = len(agreeing) - len(set(agreeing))
    counts = Counts(num_rows, num_rows - len(labeled), num_duplicates, len(labeled) - len(agreeing))
    chosen = [[majority[node] for node in nodes_of] for _, nodes_of, _ in kept]
    empty_label = "" if _is_tied(empty_votes) else max(empty_votes, key=empty_votes.__getitem__, default="")
    return [symbols for symbols, *_ in kept], chosen, [number for *_, number in kept], empty_label, counts


def _is_tied(votes: Counter[str]) -> bool:
    """Return whether the two most frequent labels are equally frequent."""
    counts = sorted(votes.values())
    # Slices are used because there may be fewer than two labels. Without any label, both slices are empty, which counts
    # as a tie.
    return counts[-2:-1] == counts[-1:]


def _check_labels(symbols: Sequence[str], labels: Sequence[str], number: int, supervision: Supervision) -> None:
    expected = 1 if supervision == "last" else len(symbols)
    if len(labels) != expected or not all(labels):
        what = "one label" if supervision == "last" else f"{expected} labels, one for each symbol"
        got = len(labels) if all(labels) else "an empty label"
        way_out = "write each missing label" if got == "an empty label" else f"give {what}"
        raise ValueError(f"examples: row {number:,}: expected {what}, got {got}; {way_out}, or leave the row out")


def _natural(name: str) -> tuple[int, int, str]:
    """Return a key that sorts numbers by size, and before words."""
    return (0, int(name), name) if name.isascii() and name.isdigit() and len(name) < 19 else (1, 0, name)
