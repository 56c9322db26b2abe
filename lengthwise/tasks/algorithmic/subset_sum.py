"""Subset sum: do some of these integers sum to the target?"""

from typing import Annotated

import numpy as np
import torch
from jaxtyping import Bool, Int64
from pydantic import Field
from torch import Tensor

from lengthwise.tasks.algorithmic.single_answer import BAR, NUM_SPECIAL, SEP, SingleAnswerTask
from lengthwise.tasks.base import TASKS

WORD = 64
"""Bits of the words that sets of sums are kept in."""


@TASKS.register("subset-sum")
class SubsetSum(SingleAnswerTask):
    """Whether some of `length` integers, each used at most once, sum to a target.

    Example:
        >>> task = SubsetSum(max_length=4)
        >>> task.decode(task.sample(1, 4, torch.Generator().manual_seed(0)).inputs[0])
        '99 19 57 70 | 113 <sep>'
    """

    max_length: Annotated[int, Field(ge=1, le=1_000)] = 10
    max_value: Annotated[int, Field(ge=1, le=10_000)] = 99

    @property
    def largest_number(self) -> int:
        """The largest sum."""
        return self.max_length * self.max_value

    @property
    def symbols(self) -> tuple[str, ...]:
        """``<sep>``, ``|`` and the integers."""
        return ("<sep>", "|", *self.numbers)

    @property
    def classes(self) -> tuple[str, ...]:
        """Out of reach, and reached."""
        return ("0", "1")

    def draw(
        self, count: int, length: int, generator: torch.Generator
    ) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, " N"]]:
        """Uniform items, and a target that is uniform up to their sum."""
        items = torch.randint(1, self.max_value + 1, (count, length), generator=generator)
        uniforms = torch.rand(count, generator=generator, dtype=torch.float64)
        targets = 1 + (uniforms * items.sum(1)).to(torch.int64)
        answers = reachable_sums(items).gather(1, targets[:, None])[:, 0].to(torch.int64)
        bar, sep = torch.full((count, 1), BAR), torch.full((count, 1), SEP)
        return torch.cat([items + NUM_SPECIAL, bar, targets[:, None] + NUM_SPECIAL, sep], 1), answers

    def cheap_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """How far the target is from half of the sum, in 64ths of the sum."""
        items, target = inputs[:, :-3] - NUM_SPECIAL, inputs[:, -2] - NUM_SPECIAL
        total = items.sum(1)
        return {"|target/sum - 1/2|": (2 * target - total).abs() * 32 // total}


def reachable_sums(items: Int64[Tensor, "N n"]) -> Bool[Tensor, "N S"]:
    """Whether some of a row's positive items sum to s, for s = 0 ... the largest sum of any row.

    A row's sums are the bits of some words; one more item x adds them all again, shifted by x bits.
    """
    largest = int(items.sum(1).max())
    num_words = largest // WORD + 1
    rows, places = np.arange(len(items)), np.arange(num_words)[:, None]
    sums = np.zeros((num_words + 1, len(items)), dtype=np.uint64)  # the first word stays 0: it is what shifts in
    sums[1] = 1
    for item in items.T.numpy():
        words, bits = np.divmod(item, WORD)
        bits = bits.astype(np.uint64)
        moved, below = (sums[np.maximum(places + first - words, 0), rows] for first in (1, 0))
        sums[1:] |= (moved << bits) | (below >> np.uint64(1) >> (np.uint64(WORD - 1) - bits))
    unpacked = np.unpackbits(np.ascontiguousarray(sums[1:].T).astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return torch.from_numpy(unpacked[:, : largest + 1].view(np.bool_))


def reachable_sums_by_definition(items: Int64[Tensor, "N n"]) -> Bool[Tensor, "N S"]:
    """The same, by making every sum."""
    reached = torch.zeros(len(items), int(items.sum(1).max()) + 1, dtype=torch.bool)
    for row, values in enumerate(items.tolist()):
        sums = {0}
        for value in values:
            sums |= {s + value for s in sums}
        reached[row, list(sums)] = True
    return reached
