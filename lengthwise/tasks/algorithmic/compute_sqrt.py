"""Square root: the digits of the floor of a binary number's square root."""

from math import isqrt
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS


@TASKS.register("compute-sqrt")
class ComputeSqrt(StringAnswerTask):
    """The digits of floor(sqrt(x)), the most significant first, queried one by one (`StringAnswerTask`).

    A string has the n binary digits of x, the most significant first; x is uniform in 1 ... 2^n - 1. The answer has
    (n + 1) // 2 digits, and may begin with zeros.

    Example:
        >>> task = ComputeSqrt()
        >>> task.solve(task.encode("100101???")[None])[0, 6:].tolist()
        [1, 1, 0]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Compute Sqrt.
    Differs from the source: in the ways that `StringAnswerTask` lists.
    """

    num_counted: ClassVar[int] = 1 << 12  # roots are taken one by one, which is slow

    letters: ClassVar[tuple[str, ...]] = ("0", "1")
    classes: ClassVar[tuple[str, ...]] = ("0", "1")

    def is_balanced_length(self, length: int) -> bool:
        """Return whether a length is at least 3. At smaller lengths, the square root rounded down is always 1."""
        return length >= 3

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw the binary digits of uniform numbers; a number that is 0 is drawn again."""
        strings = torch.zeros(count, length, dtype=torch.int64)
        while (is_zero := ~strings.any(1)).any():
            strings[is_zero] = torch.randint(2, (int(is_zero.sum()), length), generator=generator)
        return strings

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the digits of the rounded-down square root of each number, computed with Python's integers."""
        width = (strings.shape[1] + 1) // 2
        roots = (isqrt(int("".join(map(str, row)), 2)) for row in strings.tolist())
        return torch.tensor([[int(digit) for digit in f"{root:0{width}b}"] for root in roots]).reshape(-1, width)
