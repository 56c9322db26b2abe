"""Levenshtein distance: the smallest number of letter changes that turn one string into another."""

from string import ascii_lowercase
from typing import Annotated

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.conventions import PAD
from lengthwise.tasks.algorithmic.single_answer import join_parts
from lengthwise.tasks.algorithmic.string_pairs import MAX_LONGER_BY, MIN_LETTERS, MIN_SIZE, draw_pairs
from lengthwise.tasks.algorithmic.two_strings import (
    GridTask,
    aligned_letters,
    check_letters,
    common_letters,
    distances_by_definition,
    grid_rule,
    read,
)
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.base_rates import Problems

CELLS = {
    (-1, -1, False): (1, 1),
    (-1, 0, False): (0, 1),
    (-1, 1, False): (-1, 1),
    (0, -1, False): (1, 0),
    (0, 0, False): (1, 1),
    (0, 1, False): (0, 1),
    (1, -1, False): (1, -1),
    (1, 0, False): (1, 0),
    (1, 1, False): (0, 0),
    (-1, -1, True): (1, 1),
    (-1, 0, True): (0, 1),
    (-1, 1, True): (-1, 1),
    (0, -1, True): (1, 0),
    (0, 0, True): (0, 0),
    (0, 1, True): (-1, 0),
    (1, -1, True): (1, -1),
    (1, 0, True): (0, -1),
    (1, 1, True): (-1, -1),
}
"""The rule of a cell in the table of distances: (upper, left, whether letters are equal) -> (lower, right).

Upper, left, lower and right are the growth of the distance along these edges of a cell. The rule was derived by hand
from tables of pairs of strings. Tests compare the rule with the minimum that defines distances.
"""


@TASKS.register("levenshtein-distance")
class LevenshteinDistance(GridTask):
    """The least number of letters to insert, delete or replace to turn one string into another.

    A problem reads ``a b c | a c d <sep>``; the classes are the integers. Pairs are drawn as in `EditDistance`, except
    that `length` may be as small as 2. The second string has at least one letter, and stays second even if it is
    shorter.

    Raises:
        ValueError: a field is out of its range (an alphabet has 3 to 26 letters), or `num_range` is too small.

    Example:
        >>> levenshtein_distance(torch.tensor([[0, 1, 2]]), torch.tensor([[0, 2, 3, 3]])).tolist()
        [3]

    Source: Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals" (1966); pairs: Feng
        et al., "Towards Revealing the Mystery behind Chain of Thought: A Theoretical Perspective" (arXiv 2305.15408),
        Algorithm 1.
    Differs from the source: all costs are 1, while Feng et al. use 2 and 3.
    """

    alphabet: Annotated[int, Field(ge=MIN_LETTERS, le=26)] = 26

    @property
    def largest_number(self) -> int:
        """Return the number of letters of the longest string: the distance if no letter can be kept."""
        return self.max_length + MAX_LONGER_BY

    @property
    def shortest_length(self) -> int:
        """Return the smallest number of letters of the first string: 2, the size at which edits delete no letter."""
        return MIN_SIZE

    @property
    def reference(self) -> GridMachine:
        """Return the rule for the differences, each -1, 0 or 1, of neighboring entries in the table of distances."""
        return grid_rule(CELLS, ascii_lowercase[: self.alphabet], border=1)

    def compare(self, first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
        """Return the Levenshtein distance of each pair of strings."""
        return levenshtein_distance(first, second)

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw problems; about half of the pairs are unrelated strings."""
        first, second = draw_pairs(count, length, self.alphabet, generator)
        return join_parts(first, second), self.compare(first, second)

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return estimates: the distance if all `common_letters` are kept, and if all `aligned_letters` are kept."""
        first, second = read(inputs)
        size = torch.maximum((first != PAD).sum(1), (second != PAD).sum(1))
        return self.features_of(size - common_letters(first, second), size - aligned_letters(first, second))


def levenshtein_distance(first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
    """Return the distance of each pair of strings, which may end in pads.

    The table contains the distance for each pair of prefixes, and each row is computed at once. Without insertions, an
    entry is ``min(above + 1, above_left + [letters differ])``. Each insertion costs 1, so the entry at j is the minimum
    of (entry at k) + j - k over k <= j. The code subtracts the index j from every entry, takes the running minimum, and
    adds the index again.

    Raises:
        ValueError: a string has no letters.
    """
    check_letters(first=first, second=second)
    columns = torch.arange(second.shape[1] + 1)
    row = columns.expand(len(second), -1)
    sizes, widths = ((string != PAD).sum(1) for string in (first, second))
    distances = torch.empty_like(sizes)
    for index, letter in enumerate(first.unbind(1), start=1):
        replaced = row[:, :-1] + (letter[:, None] != second)
        without = torch.cat([row[:, :1] + 1, torch.minimum(row[:, 1:] + 1, replaced)], 1)
        row = (without - columns).cummin(1).values + columns
        # Only one row is kept, so the distance of a pair is read when the last row of its first string is done.
        distances = torch.where(sizes == index, row.gather(1, widths[:, None])[:, 0], distances)
    return distances


def levenshtein_distance_by_definition(
    first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]
) -> Int64[Tensor, " N"]:
    """Return the same distances as `levenshtein_distance`, computed from the table of all pairs of prefixes."""
    return distances_by_definition(first, second, gap=1, replacement=1, gap_at_border=1)
