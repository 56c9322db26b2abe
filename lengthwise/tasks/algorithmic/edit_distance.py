"""Edit distance: the least cost to turn one string into another."""

from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.conventions import PAD
from lengthwise.tasks.algorithmic.single_answer import join_parts
from lengthwise.tasks.algorithmic.string_pairs import MAX_LONGER_BY, MAX_SHORTER_BY, MIN_LETTERS, draw_ordered_pairs
from lengthwise.tasks.algorithmic.two_strings import (
    TwoStringsTask,
    aligned_letters,
    check_letters,
    common_letters,
    distances_by_definition,
    read,
)
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.base_rates import Problems

Border = Literal["true", "published"]
Ids = npt.NDArray[np.int64]

GAP, REPLACEMENT = 2, 3
"""The cost of an inserted or deleted letter, and the cost of a replaced letter."""

MAX_PAIRS_PER_CHUNK = 1_024
"""The number of distance tables that are computed at a time; their current antidiagonals fit into a cache."""


@TASKS.register("edit-distance")
class EditDistance(TwoStringsTask):
    """The least cost to turn one string into another: 2 for an inserted or deleted letter, 3 for a replaced letter.

    A problem reads ``a b c | a c d <sep>``, with the shorter string first. The classes are the integers. `length` is
    the number of letters of the string s that is drawn first. The letters of s are uniform among k letters of the
    alphabet, with k uniform between 3 and the size of the alphabet.

    With probability 0.4, the other string is unrelated, and its size is uniform in ``length - 3`` ... ``length + 2``.
    Otherwise it is a copy of s after D edits, with D uniform in 1 ... `length`. Each edit deletes, replaces or inserts
    a letter at a uniform position, with probability 1/3 each. A deletion from a string of two letters does nothing. A
    second string that equals s, or whose size is outside ``length - 3`` ... ``length + 2``, is drawn again with the
    same D. As a result, more than half of the pairs are unrelated.

    With border ``"true"`` the answer is the distance. With ``"published"``, each letter that is deleted or inserted at
    the start costs 1 instead of 2. This border changes two thirds of the answers at 60 letters.

    Raises:
        ValueError: a field is out of its range (an alphabet has 3 to 26 letters), or `num_range` is too small.

    Example:
        >>> first, second = torch.tensor([[0]]), torch.tensor([[1, 0]])
        >>> [edit_distance(first, second, border).item() for border in ("true", "published")]
        [2, 1]

    Source: Xu and Sato, "On Expressive Power of Looped Transformers: Theoretical Analysis and Enhancement via Timestep
        Encoding" (arXiv 2410.01405), appendix C.1.2, after Feng et al., "Towards Revealing the Mystery behind Chain of
        Thought: A Theoretical Perspective" (arXiv 2305.15408), Algorithm 1.
    Differs from the source: with border ``"true"``, the answers are true distances. ``"published"`` follows the
        source's code, whose table begins with the number of letters instead of their cost. Pairs are not compared with
        one another, so a pair may occur twice. See `SingleAnswerTask` for scoring.
    """

    alphabet: Annotated[int, Field(ge=MIN_LETTERS, le=26)] = 26
    border: Border = "true"

    @property
    def largest_number(self) -> int:
        """Return the cost of replacing every letter of the shorter string and inserting the longer string's rest."""
        return REPLACEMENT * self.max_length + GAP * MAX_LONGER_BY

    @property
    def shortest_length(self) -> int:
        """Return the smallest `length`, 4: the second string may be 3 letters shorter, and must not be empty."""
        return MAX_SHORTER_BY + 1

    def compare(self, first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
        """Return the edit distance of each pair of strings."""
        return edit_distance(first, second, self.border)

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw pairs, about half of them unrelated strings, with the shorter string first."""
        shorter, longer = draw_ordered_pairs(count, length, self.alphabet, generator)
        return join_parts(shorter, longer), self.compare(shorter, longer)

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return estimates of the distance: the cost if all `common_letters` or all `aligned_letters` are kept."""
        shorter, longer = read(inputs)
        sizes = [(string != PAD).sum(1) for string in (shorter, longer)]
        longer_by = sizes[1] - sizes[0]
        kept = [common_letters(shorter, longer), aligned_letters(shorter, longer)]
        return self.features_of(*(GAP * longer_by + REPLACEMENT * (sizes[0] - letters) for letters in kept))


def edit_distance(
    first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"], border: Border = "true"
) -> Int64[Tensor, " N"]:
    """Return the distance of each pair of strings, which may end in pads.

    The distance is computed in a table of all pairs of prefixes. An entry of the table is a saving: the cost of
    deleting all letters of one prefix and inserting all letters of the other, minus the distance of the two prefixes.
    For prefixes of i and j letters with distance d(i, j), the saving is ``s(i, j) = 2 (i + j) - d(i, j)``. Each saving
    is the largest of ``s(i - 1, j)``, ``s(i, j - 1)`` and ``s(i - 1, j - 1) + c``, where c is 4 if the last letters
    agree and 1 if they differ. All entries of an antidiagonal are computed at once, from the two antidiagonals before
    it.

    Raises:
        ValueError: a string has no letters.
    """
    check_letters(first=first, second=second)
    saved_at_border = 0 if border == "true" else GAP - 1
    parts = zip(first.split(MAX_PAIRS_PER_CHUNK), second.split(MAX_PAIRS_PER_CHUNK), strict=True)
    return torch.cat([torch.from_numpy(_distances(a.numpy(), b.numpy(), saved_at_border)) for a, b in parts])


def _distances(first: Ids, second: Ids, saved_at_border: int) -> Ids:
    # The second string is reversed, so an antidiagonal is a slice of each string. 16 bits hold sums for 1,000 letters.
    down, across = (np.ascontiguousarray(string.T, dtype=np.int16) for string in (first, second[:, ::-1]))
    height, width = len(down), len(across)
    sizes: Ids = (first != PAD).sum(1)
    last_diagonals = sizes + (second != PAD).sum(1)
    ends = set(last_diagonals.tolist())
    distances: Ids = np.zeros_like(sizes)
    before = last = np.zeros((height + 1, len(first)), dtype=np.int16)
    by_letters = np.empty_like(down)
    for diagonal in range(1, height + width + 1):
        saved = np.empty_like(last)  # in row i of the table, column diagonal - i
        start, end = max(1, diagonal - width), min(height, diagonal - 1) + 1
        if start < end:
            at, kept = width - diagonal, by_letters[: end - start]
            np.equal(down[start - 1 : end - 1], across[at + start : at + end], out=kept, casting="unsafe")
            # The next two lines add 4 if the letters agree, and 1 if they differ.
            kept *= REPLACEMENT
            kept += before[start - 1 : end - 1] + (2 * GAP - REPLACEMENT)
            np.maximum(last[start:end], last[start - 1 : end - 1], out=saved[start:end])
            np.maximum(saved[start:end], kept, out=saved[start:end])
        if diagonal <= width:
            saved[0] = saved_at_border * diagonal
        if diagonal <= height:
            saved[diagonal] = saved_at_border * diagonal
        # Only the last two diagonals are kept, so the distance of a pair is read when the pair's own last diagonal is
        # done.
        if diagonal in ends:
            done = np.nonzero(last_diagonals == diagonal)[0]
            distances[done] = GAP * diagonal - saved[sizes[done], done]
        before, last = last, saved
    return distances


def edit_distance_by_definition(
    first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"], border: Border = "true"
) -> Int64[Tensor, " N"]:
    """Return the same distances as `edit_distance`, computed from the table of all pairs of prefixes."""
    gap_at_border = GAP if border == "true" else 1
    return distances_by_definition(first, second, gap=GAP, replacement=REPLACEMENT, gap_at_border=gap_at_border)
