"""Binary multiplication: the digits of a product, the least significant first."""

from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.binary_addition import TwoBinaryNumbers
from lengthwise.tasks.base import TASKS


@TASKS.register("binary-multiplication")
class BinaryMultiplication(TwoBinaryNumbers):
    """The digits of x * y, the least significant first, then ``end``, queried one by one (`StringAnswerTask`).

    A string is ``x*y``, drawn as in `BinaryAddition`.

    Example:
        >>> task = BinaryMultiplication()
        >>> [task.classes[answer] for answer in task.solve(task.encode("11*01????")[None])[0, 5:]]
        ['0', '1', '1', 'end']

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Binary Multiplication.
    Differs from the source: in the ways that `StringAnswerTask` lists.
    """

    num_counted: ClassVar[int] = 1 << 12  # products are computed one by one, which is slow

    sign: ClassVar[str] = "*"

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the digits of each product, followed by ``end``, computed with Python's integers."""
        answers = torch.full_like(strings, IGNORE)
        for row, letters in zip(answers, strings.tolist(), strict=True):
            factors = "".join(self.letters[letter] for letter in letters).split("*")
            if len(factors) == 2 and all(factors):
                product = int(factors[0][::-1], 2) * int(factors[1][::-1], 2)
                digits = f"{product:b}"[::-1] if product else ""
                row[: len(digits) + 1] = torch.tensor([*map(self.classes.index, digits), self.classes.index("end")])
        return answers
