"""The one reading of logits as answers: what is measured, extracted and proved means the same by it."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor


def answers_of(logits: Float[Tensor, "*N Y"]) -> Int64[Tensor, "*N"]:
    """The index of the largest logit, of several the first; -1, which is wrong, where not all of them are finite.

    Example:
        >>> answers_of(torch.tensor([[0.0, 2.0], [1.0, 1.0], [0.0, torch.inf]])).tolist()
        [1, 0, -1]
    """
    return torch.where(logits.isfinite().all(-1), logits.argmax(-1), -1)


def finite_answers_of(logits: Float[Tensor, "*N Y"]) -> Int64[Tensor, "*N"]:
    """The same of a model that has to have an answer to every string, as a machine that is read off it does.

    Raises:
        ValueError: a logit is not finite.
    """
    answers = answers_of(logits)
    if bool((answers < 0).any()):
        raise ValueError("model: expected finite logits, got others; give a net whose states do not overflow")
    return answers
