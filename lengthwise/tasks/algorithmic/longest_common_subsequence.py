"""Longest common subsequence: the length of the longest string that both strings contain, possibly with gaps."""

from string import ascii_lowercase
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.conventions import PAD
from lengthwise.tasks.algorithmic.single_answer import join_parts
from lengthwise.tasks.algorithmic.two_strings import (
    GridTask,
    aligned_letters,
    check_letters,
    common_letters,
    grid_rule,
    read,
)
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.base_rates import Problems

WORD = 64
"""The number of bits in the words that hold rows of the table."""


CELLS = {
    (0, 0, False): (0, 0),
    (0, 1, False): (0, 1),
    (1, 0, False): (1, 0),
    (1, 1, False): (0, 0),
    (0, 0, True): (1, 1),
    (0, 1, True): (0, 1),
    (1, 0, True): (1, 0),
    (1, 1, True): (0, 0),
}
"""The rule of a cell in the table of lengths: (upper, left, whether letters are equal) -> (lower, right).

Upper, left, lower and right are the growth of the length along these edges of a cell. The length grows by 1 from the
cell's upper left to its lower right corner if the letters are equal, or if the upper or left growth is 1. Otherwise the
length stays the same.
"""


@TASKS.register("longest-common-subsequence")
class LongestCommonSubsequence(GridTask):
    """The length of the longest common subsequence of two strings of `length` letters each.

    A problem reads ``a b c b | b d a b <sep>``; the classes are the integers. Each string has its own pool of
    `pool_size` letters, drawn with replacement from the alphabet. The letters of the string are uniform in the pool.
    The second string is shorter by a uniform number of 0 to `max_shorter` letters (by default 0), and keeps at least
    one letter.

    Raises:
        ValueError: a field is out of its range (an alphabet has at most 26 letters), or `num_range` is too small.

    Example:
        >>> first, second = torch.tensor([[0, 1, 2, 1]]), torch.tensor([[1, 3, 0, 1]])
        >>> common_length(first, second).tolist()
        [2]

    Source: Xu and Sato, "On Expressive Power of Looped Transformers: Theoretical Analysis and Enhancement via Timestep
        Encoding" (arXiv 2410.01405), appendix C.1.2.
    Differs from the source: the source does not state the size of pools. Its example has 11 and 10 different letters
        among 60; such numbers are likely with pools of 13. Strings differ in size if `max_shorter` is above 0. See
        `SingleAnswerTask` for scoring.
    """

    pool_size: Annotated[int, Field(ge=1, le=1_000)] = 13
    max_shorter: Annotated[int, Field(ge=0, le=1_000, exclude_if=lambda letters: letters == 0)] = 0

    @property
    def largest_number(self) -> int:
        """Return `max_length`, the answer for two equal strings of the largest length."""
        return self.max_length

    @property
    def reference(self) -> GridMachine:
        """Return the rule for the differences, each 0 or 1, of neighboring entries in the table of common lengths."""
        return grid_rule(CELLS, ascii_lowercase[: self.alphabet], border=0)

    def compare(self, first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
        """Return the length of the longest common subsequence of each pair of strings."""
        return common_length(first, second)

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw problems of two strings, each over its own pool of letters."""
        pools = torch.randint(self.alphabet, (2, count, self.pool_size), generator=generator)
        first, second = pools.gather(2, torch.randint(self.pool_size, (2, count, length), generator=generator))
        if self.max_shorter:
            sizes = length - torch.randint(min(self.max_shorter, length - 1) + 1, (count, 1), generator=generator)
            second = torch.where(torch.arange(length) < sizes, second, PAD)
        return join_parts(first, second), self.compare(first, second)

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return the numbers of common letters (`common_letters`) and of aligned letters (`aligned_letters`)."""
        strings = read(inputs)
        return self.features_of(common_letters(*strings), aligned_letters(*strings))


def common_length(first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
    """Return the length of the longest common subsequence of each pair of strings, which may end in pads.

    The table contains the length for each pair of prefixes. Neighbors in a row differ by 0 or 1. A row is stored as
    bits V, which are 1 where the difference is 0. Let the bits M be 1 at each position of `first` whose letter equals
    the next letter of `second`, and U = V & M. The next row is then (V + U) | (V - U), and the sum carries from word to
    word.

    Raises:
        ValueError: a string has no letters.

    Source: Hyyrö, "Bit-parallel LCS-length computation revisited" (AWOCA 2004), figure 3, after Crochemore et al., "A
        fast and practical bit-vector algorithm for the longest common subsequence problem" (Information Processing
        Letters 80, 2001).
    Differs from the source: many pairs are compared at once, and strings may end in pads.
    """
    check_letters(first=first, second=second)
    count, length = first.shape
    rows, num_words = np.arange(count), (length - 1) // WORD + 1
    num_letters = 1 + int(torch.maximum(first.max(), second.max()))
    holds = np.zeros((num_words, num_letters + 1, count), dtype=np.uint64)
    for position, letter in enumerate(first.T.numpy()):
        holds[position // WORD, letter, rows] |= np.uint64(1 << position % WORD)
    # Pads have index -1, which is the last row. The row is cleared, so pads match nothing.
    holds[:, PAD] = 0
    same = np.full((num_words, count), ~np.uint64(0))
    for letter in second.T.numpy():
        carry = np.zeros(count, dtype=np.uint64)
        for word, old in enumerate(same):
            matched = old & holds[word, letter, rows]
            added = old + matched
            total = added + carry
            # Unsigned sums wrap around, so a sum that is below a summand has a carry.
            carry = ((added < old) | (total < added)).astype(np.uint64)
            same[word] = total | (old ^ matched)
    # Bits beyond the string must not count. There are two shifts, because one shift by all 64 bits would be undefined.
    same[-1] |= ~np.uint64(0) << np.uint64((length - 1) % WORD) << np.uint64(1)
    return torch.from_numpy(np.bitwise_count(~same).sum(0, dtype=np.int64))


def common_length_by_definition(first: Int64[Tensor, "N A"], second: Int64[Tensor, "N B"]) -> Int64[Tensor, " N"]:
    """Return the same lengths as `common_length`, computed from the table of all pairs of prefixes."""
    lengths = []
    for pair in zip(first.tolist(), second.tolist(), strict=True):
        a, b = ([letter for letter in string if letter != PAD] for string in pair)
        above = [0] * (len(b) + 1)
        for letter in a:
            row = [0]
            for j, other in enumerate(b):
                row.append(above[j] + 1 if letter == other else max(above[j + 1], row[j]))
            above = row
        lengths.append(above[-1])
    return torch.tensor(lengths)
