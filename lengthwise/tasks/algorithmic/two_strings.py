"""The base classes of problems with two strings, and features that are cheap to compute."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Annotated

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.conventions import BAR, NUM_SPECIAL, PAD
from lengthwise.tasks.algorithmic.single_answer import SingleAnswerTask
from lengthwise.tasks.base import MachineTask
from lengthwise.tasks.base_rates import symbol_counts

MAX_MOVED = 3
"""The largest shift of one string against the other in `aligned_letters`."""

NO_LETTER = PAD - 1
"""A number that differs from all letters and from `PAD`."""


class TwoStringsTask(SingleAnswerTask):
    """A number computed from two strings of the first `alphabet` letters; a problem reads ``a b c | a c <sep>``."""

    max_length: Annotated[int, Field(ge=1, le=1_000)] = 60
    alphabet: Annotated[int, Field(ge=1, le=26)] = 26

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return ``<sep>``, ``|`` and the letters."""
        return ("<sep>", "|", *ascii_lowercase[: self.alphabet])

    @abstractmethod
    def compare(self, first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
        """Return the answers for pairs of strings, which may end in pads."""

    def answer(self, parts: Sequence[Sequence[int]]) -> int | None:
        """Return the answer for two strings; None if the number of parts is not two."""
        if len(parts) != 2:
            return None
        first, second = (torch.tensor([part]) for part in parts)
        return int(self.compare(first, second))

    def features_of(self, common: Int64[Tensor, " N"], aligned: Int64[Tensor, " N"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return features of each pair by name: `common`, `aligned`, and one integer that encodes both."""
        return {
            "common letters": common,
            "aligned letters": aligned,
            "common and aligned letters": common * (self.largest_number + 1) + aligned,
        }


class GridTask(TwoStringsTask, MachineTask):
    """A number computed from two strings by a local rule, over a table with a cell for each pair of letters."""

    @property
    @abstractmethod
    def reference(self) -> GridMachine:
        """Return the local rule, which computes the differences of neighboring entries in the task's table.

        The rule is written independently of `compare`.
        """


def grid_rule(cells: Mapping[tuple[int, int, bool], tuple[int, int]], letters: str, border: int) -> GridMachine:
    """Return the rule for the differences of neighboring entries of a table.

    Along the upper and the left edge of the table, all differences are `border`.

    ``cells[across, down, equal]`` contains the differences along the lower and the right edge of a cell. The key
    contains the differences along the upper and the left edge, and whether the letters are equal. Classes are the
    sorted differences.
    """
    values = sorted({value for pair in cells.values() for value in pair} | {border})
    class_of = {value: index for index, value in enumerate(values)}
    table = np.empty((len(values), len(values), len(letters), len(letters), 2), dtype=np.int64)
    equal = np.eye(len(letters), dtype=np.bool_)
    for (across, down, is_equal), (below, right) in cells.items():
        table[class_of[across], class_of[down], equal == is_equal] = class_of[below], class_of[right]
    return GridMachine(tuple(letters), table, class_of[border], class_of[border], np.array(values), border)


def read(inputs: Int64[Tensor, "N T"]) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, "N T"]]:
    """Return the two strings of each problem, with pads at their ends: the inverse of `join_parts`."""
    bars = (inputs == BAR).cumsum(1)
    strings = [torch.where((bars == part) & (inputs >= NUM_SPECIAL), inputs - NUM_SPECIAL, PAD) for part in (0, 1)]
    length = inputs.shape[1]
    after_bar = length - bars.sum(1, keepdim=True) + 1
    return strings[0], strings[1].gather(1, (after_bar + torch.arange(length)).clamp(max=length - 1))


def check_letters(**strings: Int64[Tensor, "_ _"]) -> None:
    """Raise a ValueError if a string has no letters; the message names the argument and the row."""
    for name, string in strings.items():
        empty = torch.nonzero((string == PAD).all(1))[:, 0].tolist()
        if empty:
            raise ValueError(
                f"{name}: expected at least 1 letter in every string, got no letter in row {empty[0]}; leave out "
                "this row"
            )


def distances_by_definition(
    first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"], *, gap: int, replacement: int, gap_at_border: int
) -> Int64[Tensor, " N"]:
    """Return the least costs to turn one string into another, computed from the table of all pairs of prefixes.

    An inserted or deleted letter costs `gap`, or `gap_at_border` along the border of the table. A replaced letter costs
    `replacement`.
    """
    distances = []
    for pair in zip(first.tolist(), second.tolist(), strict=True):
        a, b = ([letter for letter in string if letter != PAD] for string in pair)
        row = [gap_at_border * j for j in range(len(b) + 1)]
        for i, letter in enumerate(a, start=1):
            above, row = row, [gap_at_border * i]
            for j, other in enumerate(b):
                row.append(min(above[j + 1] + gap, row[j] + gap, above[j] + replacement * (letter != other)))
        distances.append(row[-1])
    return torch.tensor(distances)


def common_letters(first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
    """Return how many letters two strings share in any order; no common subsequence is longer."""
    counts = [symbol_counts(string - PAD, len(ascii_lowercase) + 1) for string in (first, second)]
    return torch.minimum(*counts)[:, 1:].sum(1)


def aligned_letters(first: Int64[Tensor, "N T"], second: Int64[Tensor, "N T"]) -> Int64[Tensor, " N"]:
    """Return the largest number of positions at which two strings agree.

    One string may be moved against the other string by up to `MAX_MOVED` positions.
    """
    padded = F.pad(first.to(torch.int8), (MAX_MOVED, MAX_MOVED), value=PAD)
    # Pads of the two strings must not count as agreement.
    letters = torch.where(second == PAD, NO_LETTER, second).to(torch.int8)
    agreeing = [(moved == letters).sum(1) for moved in padded.unfold(1, first.shape[1], 1).unbind(1)]
    return torch.stack(agreeing).max(0).values
