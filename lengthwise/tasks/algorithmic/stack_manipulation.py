"""Stack manipulation: the content of a stack after some actions."""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS

POP, PUSH_A, PUSH_B = 2, 3, 4
"""The ids of the actions; ids 0 and 1 are the letters a and b on the stack."""

END = 2
"""The class that follows the bottom of the stack."""

MAX_EXACT_LENGTH = 1_000
"""The length, in letters, of the longest strings whose baseline is exact."""


@TASKS.register("stack-manipulation")
class StackManipulation(StringAnswerTask):
    """The letters of a stack after some actions, from the top, then ``end``, queried one by one (`StringAnswerTask`).

    A string is the initial stack, bottom first, as letters a and b, followed by actions. ``-`` removes the top, if
    there is one, and ``A`` and ``B`` push a letter. Initial stacks of 1 ... `length` - 1 letters are equally likely,
    and so are the actions.

    Example:
        >>> task = StackManipulation()
        >>> [task.classes[answer] for answer in task.solve(task.encode("ab-B???")[None])[0, 4:]]
        ['b', 'a', 'end']

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Stack Manipulation.
    Differs from the source: in the ways that `StringAnswerTask` lists.
    """

    letters: ClassVar[tuple[str, ...]] = ("a", "b", "-", "A", "B")  # letters, then remove, push a, push b
    classes: ClassVar[tuple[str, ...]] = ("a", "b", "end")

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length has room for one letter and one action."""
        return length >= 2

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """Draw strings of `length` symbols: each is an initial stack, followed by uniform actions."""
        sizes = torch.randint(1, length, (count, 1), generator=generator)
        on_stack = torch.randint(2, (count, length), generator=generator)
        actions = torch.randint(POP, PUSH_B + 1, (count, length), generator=generator)
        return torch.where(torch.arange(length) < sizes, on_stack, actions)

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the letters on each stack from the top, followed by ``end``.

        An answer has at most one symbol more than its string.

        The final letter at height h is the last letter that was pushed to height h. The heights h_t are a walk
        reflected at 0: ``h_t = s_t - min(0, s_1, ..., s_t)`` where s_t is the sum of the first t steps, each 1 or -1.
        """
        count, length = strings.shape
        is_pop = strings == POP
        sums = torch.where(is_pop, -1, 1).cumsum(1)
        heights = sums - sums.cummin(1).values.clamp(max=0)
        times = torch.arange(length).expand(count, length)
        pushed_at = torch.full((count, length + 1), -1).scatter_reduce(
            1, torch.where(is_pop, 0, heights), times, reduce="amax"
        )
        height = heights[:, -1:]
        from_top = height - torch.arange(length + 1)
        last = pushed_at.gather(1, from_top.clamp(min=0))
        letters = strings.gather(1, last.clamp(min=0))
        answers = torch.where(letters >= PUSH_A, letters - PUSH_A, letters)
        answers = torch.where(from_top == 0, END, answers).masked_fill(from_top < 0, IGNORE)
        is_action = strings >= POP
        acts_before = ((is_action[:, :-1]) & ~is_action[:, 1:]).any(1, keepdim=True)
        return answers.masked_fill(acts_before, IGNORE)

    def baseline(self, length: int) -> float:
        """Return the score of the better constant answer: ``end``, or one of the two equally likely letters.

        For a stack of height h, h + 1 symbols are queried, and one of them is ``end``. For strings of more than 1,000
        symbols, the returned score is 1/2, which is too high by at most 0.001.
        """
        if length > MAX_EXACT_LENGTH:
            return 0.5
        chance = np.zeros(length + 1)
        # `chance` is the distribution of heights. In each round, strings with an initial stack of `size` letters join,
        # and then all strings so far read one action.
        for size in range(1, length):
            chance[size] += 1 / (length - 1)
            pushed = np.concatenate([[0.0], chance[:-1]]) * 2 / 3
            popped = np.concatenate([chance[1:], [0.0]]) / 3
            popped[0] += chance[0] / 3
            chance = pushed + popped
        of_end = float((chance / np.arange(1, length + 2)).sum())
        return max(of_end, (1 - of_end) / 2)
