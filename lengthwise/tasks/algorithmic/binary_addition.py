"""Binary addition: the digits of a sum, the least significant first."""

from statistics import fmean
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS

SIGN = 2
"""The id of the sign between the two numbers; ids 0 and 1 are the digits 0 and 1."""

END = 2
"""The class that follows the highest digit."""

MAX_EXACT_LENGTH = 16
"""The length, in letters, of the longest strings whose baseline is exact. For longer strings the baseline is 1/2, which
is too high by at most 0.0042."""


class TwoBinaryNumbers(StringAnswerTask):
    """The digits of the result of the operator `sign` between two binary numbers, drawn as in `BinaryAddition`."""

    sign: ClassVar[str]

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the binary digits, and the operator `sign`."""
        return ("0", "1", self.sign)

    classes: ClassVar[tuple[str, ...]] = ("0", "1", "end")

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length has room for two digits and the operator between them."""
        return length >= 3

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw both numbers until neither is 0, and put `sign` between them."""
        sizes = torch.randint(1, length - 1, (count, 1), generator=generator)
        where = torch.arange(length)
        strings = torch.zeros(count, length, dtype=torch.int64)
        is_left = torch.ones(count, dtype=torch.bool)
        # If one number is 0, both are drawn again, so each number stays uniform among the numbers that are not 0.
        while is_left.any():
            strings[is_left] = torch.randint(2, (int(is_left.sum()), length), generator=generator)
            first, second = (strings * (where < sizes)).any(1), (strings * (where > sizes)).any(1)
            is_left = ~(first & second)
        return torch.where(where == sizes, SIGN, strings)


@TASKS.register("binary-addition")
class BinaryAddition(TwoBinaryNumbers):
    """The digits of x + y, the least significant first, then ``end``, queried one by one (`StringAnswerTask`).

    A string is ``x+y``, and both numbers begin with their least significant digits. The number of digits of the first
    number is uniform in 1 ... `length` - 2. A number of n digits is uniform in 1 ... 2^n - 1, so its highest digits may
    be 0.

    Example:
        >>> task = BinaryAddition()
        >>> [task.classes[answer] for answer in task.solve(task.encode("11+01????")[None])[0, 5:]]
        ['1', '0', '1', 'end']

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Binary Addition.
    Differs from the source: in the ways that `StringAnswerTask` lists.
    """

    sign: ClassVar[str] = "+"

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the digits of each sum, followed by ``end``; an answer is never longer than its string.

        Let s_i be the sum of the two digits at position i. Position i carries if s_i is 2, and does not carry if s_i is
        0. If s_i is 1, position i passes on the carry from position i - 1. So the last s_j with j <= i that is not 1
        decides: the carry out of position i is 1 if this s_j is 2, and else 0.
        """
        length = strings.shape[1]
        where = torch.arange(length)
        is_plus = strings == SIGN
        sizes = is_plus.to(torch.int64).argmax(1, keepdim=True)
        of_second = where + sizes + 1
        digits = strings.masked_fill(is_plus, 0)
        first = digits * (where < sizes)
        second = digits.gather(1, of_second.clamp(max=length - 1)) * (of_second < length)
        sums = first + second
        settled = torch.where(sums == 1, -1, where).cummax(1).values
        carries = (sums.gather(1, settled.clamp(min=0)) == 2) & (settled >= 0)
        total = sums.clone()
        total[:, 1:] += carries[:, :-1]
        total %= 2
        # The highest digit is the highest 1: an answer has no leading zeros.
        num_digits = ((where + 1) * total).amax(1, keepdim=True)
        answers = torch.where(where == num_digits, END, total).masked_fill(where > num_digits, IGNORE)
        is_sum = (is_plus.sum(1, keepdim=True) == 1) & (sizes > 0) & (sizes < length - 1)
        return answers.masked_fill(~is_sum, IGNORE)

    def baseline(self, length: int) -> float:
        """Return the score of the constant answer 1; the score is exact up to 16 letters.

        For longer strings, the returned score is 1/2, which is too high by at most 0.0042. If all sums of d digits were
        equally likely, (d + 1) / 2 of their digits would be 1 on average, because the highest digit is always 1.
        Together with ``end``, d + 1 symbols are queried, so half of them would be 1.
        """
        if length > MAX_EXACT_LENGTH:
            return 0.5
        shares = []
        for size in range(1, length - 1):
            first, second = 2**size - 1, 2 ** (length - 1 - size) - 1
            totals = np.arange(2, first + second + 1)
            # The number of pairs of summands first grows with the total, then stays constant, and then shrinks.
            pairs = np.minimum(np.minimum(totals - 1, totals[::-1] - 1), min(first, second))
            num_digits = np.frexp(totals)[1]
            shares.append(float((pairs * np.bitwise_count(totals) / (num_digits + 1)).sum()) / (first * second))
        return fmean(shares)
