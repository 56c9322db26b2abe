"""Grading of all prefixes of strings at once: which answers are wrong, and the logit margins of all answers."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.ops.answers import answers_of


class GradedPrefixes(NamedTuple):
    """The grades of answers to prefixes: logit margins, a mask of the wrong answers, and the prefixes' lengths.

    A margin is infinite if the prefix has no right answer (`IGNORE`). Otherwise, it is -inf if a logit is not finite.
    """

    margins: Float[Tensor, "B N"]
    wrong: Bool[Tensor, "B N"]
    lengths: Int64[Tensor, "B N"]

    @property
    def num_answers(self) -> int:
        """Return the number of answers that are compared with a right answer."""
        return int((self.margins < torch.inf).sum())


class Weakest(NamedTuple):
    """The smallest logit margin in each row of graded prefixes, and its index in the row."""

    margins: Float[Tensor, " B"]
    indices: Int64[Tensor, " B"]


def grade_logits(
    logits: Float[Tensor, "B N Y"], expected: Int64[Tensor, "B N"], lengths: Int64[Tensor, "B N"]
) -> GradedPrefixes:
    """Return the grades of answers to prefixes; an answer is the class that `answers_of` names.

    Example:
        >>> logits, lengths = torch.tensor([[[0.0, 2.0], [1.0, 0.5]]]), torch.tensor([[1, 2]])
        >>> grade_logits(logits, torch.tensor([[1, 1]]), lengths).wrong.tolist()
        [[False, True]]
    """
    wrong = (expected != IGNORE) & (answers_of(logits) != expected)
    return GradedPrefixes(margins_of(logits, expected), wrong, lengths)


def margins_of(logits: Float[Tensor, "*N Y"], expected: Int64[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Return the logit margin: the right logit minus the largest other logit.

    The margin is infinite for a string without a right answer, and -inf if a logit is not finite.

    Example:
        >>> margins_of(torch.tensor([[0.0, 2.0], [0.0, torch.nan]]), torch.tensor([0, 1])).tolist()
        [-2.0, -inf]
    """
    right = expected.clamp(min=0)[..., None]
    others = logits.scatter(-1, right, -torch.inf).amax(-1)
    margins = (logits.gather(-1, right)[..., 0] - others).masked_fill(~logits.isfinite().all(-1), -torch.inf)
    # If the task has a single answer, no other logit exists, so the margin is infinite.
    return margins.masked_fill(expected == IGNORE, torch.inf)


def weakest(graded: GradedPrefixes, min_length: int) -> Weakest:
    """Return the smallest logit margin in each row of graded prefixes; prefixes below `min_length` do not count."""
    margins = graded.margins.masked_fill(graded.lengths < min_length, torch.inf)
    return Weakest(*margins.min(1))
