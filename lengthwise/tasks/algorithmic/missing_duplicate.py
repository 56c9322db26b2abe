"""Missing duplicate: the letter that is hidden in one of two copies of a string."""

from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS

HIDDEN = 2
"""The id of ``_``, which hides a letter; ids 0 and 1 are the letters a and b."""


@TASKS.register("missing-duplicate")
class MissingDuplicate(StringAnswerTask):
    """The letter that ``_`` hides in one of two copies of a string, queried at the end (`StringAnswerTask`).

    The letters of the first half are independent and uniform, and the hidden position is uniform. Lengths are even.

    Example:
        >>> task = MissingDuplicate()
        >>> task.solve(task.encode("ab_b?")[None])[0, 4:].tolist()
        [0]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Missing Duplicate.
    Differs from the source: in the source, strings of odd length end in an empty token, and the answer is given without
    a query.
    """

    letters: ClassVar[tuple[str, ...]] = ("a", "b", "_")  # the last one hides a letter
    classes: ClassVar[tuple[str, ...]] = ("a", "b")

    def is_legal_length(self, length: int) -> bool:
        """Return whether a length is even and at least 2."""
        return length >= 2 and length % 2 == 0

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw the first half of each string, and the position of the hidden letter."""
        half = torch.randint(2, (count, length // 2), generator=generator)
        hidden = torch.randint(length, (count, 1), generator=generator)
        return torch.cat([half, half], 1).scatter(1, hidden, HIDDEN)

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the hidden letter, read in the other half; `IGNORE` if the halves differ elsewhere."""
        length = strings.shape[1]
        if length % 2:
            return torch.full((len(strings), 1), IGNORE)
        first, second = strings.chunk(2, dim=1)
        is_hidden = (first == HIDDEN) ^ (second == HIDDEN)
        agrees = ((first == second) & (first != HIDDEN)) | is_hidden
        is_one = agrees.all(1) & (is_hidden.sum(1) == 1)
        letters = (torch.minimum(first, second) * is_hidden).sum(1)
        return torch.where(is_one, letters, IGNORE)[:, None]

    def baseline(self, length: int) -> float:
        """Return 1/2, because the hidden letter is a or b with equal probability."""
        return 0.5
