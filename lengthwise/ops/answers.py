"""The rule that turns logits into answers. Measurement, extraction and proofs all use this rule."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.ops.shapes import check_tensors


def answers_of(logits: Float[Tensor, "*N Y"]) -> Int64[Tensor, "*N"]:
    """Return the index of the largest logit, or of the first of several equally large logits.

    If any logit is not finite, return -1, which is always wrong.

    Example:
        >>> answers_of(torch.tensor([[0.0, 2.0], [1.0, 1.0], [0.0, torch.inf]])).tolist()
        [1, 0, -1]
    """
    check_tensors(logits=logits)
    if not logits.ndim or not logits.shape[-1]:
        got = list(logits.shape)
        raise ValueError(
            f"logits: expected shape [..., Y] with Y of at least 1, got {got}; give one logit for each answer"
        )
    # argmax alone would return some class even for NaN, so an overflow would count as an answer.
    return torch.where(logits.isfinite().all(-1), logits.argmax(-1), -1)


def finite_answers_of(logits: Float[Tensor, "*N Y"]) -> Int64[Tensor, "*N"]:
    """Return the answers like `answers_of`, or raise an error for infinite or NaN logits, which give no answer.

    Raises:
        ValueError: a logit is not finite.
    """
    answers = answers_of(logits)
    if bool((answers < 0).any()):
        raise ValueError("model: expected finite logits, got NaN or infinity; give a net whose states do not overflow")
    return answers
