"""Finite machines over the grid of two strings: one rule for every cell, and an integer as the answer.

The grid has one row for each letter of the first string, and one column for each letter of the second string.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.semiautomaton import set_frozen, whole_numbers

Ids = Int64[np.ndarray, "B _"]

MAX_CELLS = 1 << 22
"""The largest number of entries in the table of a `GridMachine`."""


@dataclass(frozen=True, eq=False)
class GridMachine:
    """A rule that passes classes over the grid of two strings, and reads an integer from the grid's last row.

    The cell at row i and column j computes ``table[p, q, a, b] = (p', q')``. Here p is the class from above, q is the
    class from the left, a is letter i of the first string, and b is letter j of the second string. The cell passes p'
    down and q' to the right. The class above the first row is `top`, and the class left of the first column is `left`.
    The answer for two strings of n and m letters is

        per_row n + sum over the last row of numbers[p'].

    Many dynamic programs on two strings, such as edit distance, have this form. A dynamic program has this form if
    neighboring entries of its table differ by one of a few amounts. These amounts are the classes. The answer is the
    sum of the amounts down the left border and along the last row.

    Raises:
        ValueError: an array has the wrong shape, or contains a class that does not exist.

    Example:
        >>> table = np.zeros((1, 1, 2, 2, 2), dtype=np.int64)
        >>> GridMachine(("a", "b"), table, 0, 0, np.array([2]), 1).run(np.array([[0, 1]]), np.array([[0, 1, 1]]))
        array([8])
    """

    symbols: tuple[str, ...]
    table: Int64[np.ndarray, "P Q V V 2"]
    top: int
    left: int
    numbers: Int64[np.ndarray, " P"]
    per_row: int

    def __post_init__(self) -> None:
        table, numbers = whole_numbers("table", self.table), whole_numbers("numbers", self.numbers)
        size = len(self.symbols)
        if table.ndim != 5 or not 0 < table.size <= MAX_CELLS or table.shape[2:] != (size, size, 2):
            raise ValueError(
                f"table: expected shape [P, Q, {size}, {size}, 2] with up to {MAX_CELLS:,} entries (P classes from "
                f"above, Q from the left, {size} letters), got {list(table.shape)}; make table[p, q, a, b] the two "
                "classes passed down and right"
            )
        if len(set(self.symbols)) != size or "" in self.symbols:
            raise ValueError(f"symbols: expected distinct letters, got {self.symbols!r}; name each letter once")
        if numbers.shape != table.shape[:1]:
            raise ValueError(
                f"numbers: expected one number for each of the {len(table)} classes that cells pass down, got shape "
                f"{list(numbers.shape)}; give one number for each index of axis 0 of the table"
            )
        # Cells at a border read the border's class, so this class must be an index of the same axis.
        for index, (what, border) in enumerate((("top", self.top), ("left", self.left))):
            classes = np.append(table[..., index], border)
            if classes.min() < 0 or classes.max() >= table.shape[index]:
                raise ValueError(
                    f"table: expected classes in 0..{table.shape[index] - 1} in table[..., {index}] and in `{what}`, "
                    f"got classes from {classes.min()} to {classes.max()}; correct the wrong class"
                )
        set_frozen(self, table=table, numbers=numbers)

    @property
    def num_classes(self) -> int:
        """The number of classes that cells pass down, plus the number of classes that cells pass to the right."""
        return sum(self.table.shape[:2])

    @property
    def num_cells(self) -> int:
        """The number of combinations of two classes and two letters that a cell can read."""
        return self.table.size // 2

    def messages(self, first: Ids, second: Ids) -> tuple[Int64[np.ndarray, "B n m"], Int64[np.ndarray, "B n m"]]:
        """Return the classes that every cell passes down and to the right, for pairs of strings of letter ids.

        Raises:
            ValueError: a letter lies outside the alphabet.
        """
        for string in (first, second):
            if string.size and not 0 <= string.min() <= string.max() < len(self.symbols):
                raise ValueError(
                    f"strings: expected ids of letters in 0..{len(self.symbols) - 1}, got ids from {string.min()} to "
                    f"{string.max()}; give each letter as its index in symbols"
                )
        rows, columns = first.T.copy(), second.T.copy()
        num_left, num_letters = self.table.shape[1:3]
        to_below, to_right = (self.table[..., axis].ravel() for axis in (0, 1))
        shape = (len(rows), len(columns), len(first))  # strings are the last axis, so memory of a cell is contiguous
        down, right = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        for i in range(shape[0]):
            for j in range(shape[1]):
                above = down[i - 1, j] if i else self.top
                before = right[i, j - 1] if j else self.left
                # Cells are looked up by one number with the digits p, q, a, b. Indexing with four arrays would be
                # slower.
                cells = ((above * num_left + before) * num_letters + rows[i]) * num_letters + columns[j]
                down[i, j], right[i, j] = to_below.take(cells), to_right.take(cells)
        return np.moveaxis(down, 2, 0), np.moveaxis(right, 2, 0)

    def run(self, first: Ids, second: Ids) -> Int64[np.ndarray, " B"]:
        """Return the answer for each pair of nonempty strings; errors are as in `messages`."""
        down, _ = self.messages(first, second)
        return np.asarray(self.per_row * first.shape[1] + self.numbers[down[:, -1]].sum(1))

    def to_json(self) -> dict[str, Any]:
        """Return letters, table, borders and numbers as plain lists."""
        return {
            "letters": list(self.symbols),
            "cells": self.table.tolist(),
            "top": self.top,
            "left": self.left,
            "numbers": self.numbers.tolist(),
            "per_row": self.per_row,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "GridMachine":
        """Build a machine from the content that `to_json` returns; raise a ValueError if the table is ragged."""
        try:
            table = np.array(content["cells"], dtype=np.int64)
        except ValueError:
            raise ValueError(
                "table: expected lists of equal lengths, got lists of different lengths; fill in the missing entries"
            ) from None
        borders = content["top"], content["left"]
        return cls(tuple(content["letters"]), table, *borders, np.array(content["numbers"]), content["per_row"])
