"""Odds first: the letters at odd positions of a string, then the letters at even positions."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.tasks.algorithmic.reverse_string import LetterTask
from lengthwise.tasks.base import TASKS


@TASKS.register("odds-first")
class OddsFirst(LetterTask):
    """The letters 1, 3, 5, ... of a string, then 2, 4, 6, ..., queried one by one (`StringAnswerTask`).

    Raises:
        ValueError: `num_letters` is not in 2 ... 26.

    Example:
        >>> task = OddsFirst()
        >>> task.solve(task.encode("abba????")[None])[0, 4:].tolist()
        [0, 1, 1, 0]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Odds First.
    Differs from the source: the field `num_letters` (2 there), and the ways that `StringAnswerTask` lists. The last
        published code gives the letters at even positions first.
    """

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return each string's letters at odd positions (counted from 1), and then its letters at even positions."""
        return torch.cat([strings[:, ::2], strings[:, 1::2]], 1)
