"""Duplicate string: the letters of two copies of a string."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.tasks.algorithmic.reverse_string import LetterTask
from lengthwise.tasks.base import TASKS


@TASKS.register("duplicate-string")
class DuplicateString(LetterTask):
    """Two copies of a string, one after the other, whose letters are queried one by one (`StringAnswerTask`).

    Raises:
        ValueError: `num_letters` is not in 2 ... 26.

    Example:
        >>> task = DuplicateString()
        >>> task.solve(task.encode("ab????")[None])[0, 2:].tolist()
        [0, 1, 0, 1]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Duplicate String.
    Differs from the source: the field `num_letters` (2 there), and the ways that `StringAnswerTask` lists.
    """

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return each string twice, joined."""
        return torch.cat([strings, strings], 1)
