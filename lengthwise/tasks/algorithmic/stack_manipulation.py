"""Stack manipulation: what is on a stack after some actions?"""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.tasks.algorithmic.string_answer import StringAnswerTask
from lengthwise.tasks.base import TASKS

POP, PUSH_A, PUSH_B = 2, 3, 4
"""Letters; 0 and 1 are those on the stack, a and b."""

END = 2
"""The class of what follows the bottom of the stack."""

MAX_EXACT_LENGTH = 1_000


@TASKS.register("stack-manipulation")
class StackManipulation(StringAnswerTask):
    """The stack after some actions, from the top, then ``end``, queried one by one (`StringAnswerTask`).

    A string is the stack at first, bottom first, as letters a and b, then actions: ``-`` takes the top away, if there
    is one, ``A`` and ``B`` push a letter. Stacks of 1 ... `length` - 1 letters are equally likely, and so are actions.

    Example:
        >>> task = StackManipulation()
        >>> [task.classes[answer] for answer in task.solve(task.encode("ab-B???")[None])[0, 4:]]
        ['b', 'a', 'end']

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Stack Manipulation.
    Differs from the source: as `StringAnswerTask` says.
    """

    @property
    def letters(self) -> tuple[str, ...]:
        """What is on the stack, and the actions: take away, push a, push b."""
        return ("a", "b", "-", "A", "B")

    @property
    def classes(self) -> tuple[str, ...]:
        """The letters on the stack, and the end."""
        return ("a", "b", "end")

    def is_legal_length(self, length: int) -> bool:
        """One letter and one action at least."""
        return length >= 2

    def draw_strings(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N n"]:
        """A stack, then actions."""
        sizes = torch.randint(1, length, (count, 1), generator=generator)
        on_stack = torch.randint(2, (count, length), generator=generator)
        actions = torch.randint(POP, PUSH_B + 1, (count, length), generator=generator)
        return torch.where(torch.arange(length) < sizes, on_stack, actions)

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """At most one symbol more than the string has.

        The letter at height h in the end is the last one that was pushed to height h. Heights h_t are those of a walk
        that is reflected at 0: ``h_t = s_t - min(0, s_1, ..., s_t)`` for the sums s_t of the steps.
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
        """That of ``end``, which is one of h + 1 symbols of a stack of height h, or of one of two equal letters.

        Of more than 1,000 letters it is 1/2, less at most 0.001.
        """
        self.check_length(length)
        if length > MAX_EXACT_LENGTH:
            return 0.5
        chance = np.zeros(length + 1)
        for size in range(1, length):  # one action more than the smaller ones have still to come
            chance[size] += 1 / (length - 1)
            pushed = np.concatenate([[0.0], chance[:-1]]) * 2 / 3
            popped = np.concatenate([chance[1:], [0.0]]) / 3
            popped[0] += chance[0] / 3
            chance = pushed + popped
        of_end = float((chance / np.arange(1, length + 2)).sum())
        return max(of_end, (1 - of_end) / 2)
