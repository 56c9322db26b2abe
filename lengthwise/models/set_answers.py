"""Answers that are sets of the symbols that may come next, computed from symbols' scores and a threshold."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from lengthwise.models.token_ids import MAX_TOKEN, check_tokens
from lengthwise.validation import check_choice

Score = Literal["logit", "sigmoid", "softmax"]
"""The kind of score of a symbol that is compared with the threshold: the symbol's logit, or a probability."""

MAX_LOGIT = float(np.finfo(np.float32).max)
"""The largest accepted threshold for logits."""


@runtime_checkable
class AnswersSets(Protocol):
    """The attributes of a task that `SetAnswers` needs: answers are sets of symbols, as in task `next-symbols`."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def members(self) -> Bool[np.ndarray, "S M"]:
        """Return a table: entry [s, m] is True if the set of class s contains symbol m.

        If sets can contain the end of the string, the last column is for the end.
        """


class SetAnswers(nn.Module):
    """A layer for a net that scores each symbol by itself and answers with the set of symbols above a threshold.

    The layer turns scores into logits of sets. Members of sets are symbols and the end of the string. Member m is in
    the net's set if its score is above the threshold. The distance of member m is d_m = score_m - above. The logit of a
    set S is the smallest of d_m for m in S and -d_m for all other m. This logit is positive only for the net's own set.
    The last class represents all sets that are not the answer to any string, and has logit 0. If the net's own set is a
    class of the task, its logit is the largest. Otherwise, the last class has the largest logit, and this answer counts
    as wrong. The margin of a right answer is the smallest distance of a score from the threshold.

    If a score equals the threshold, the symbol is not in the set, and logits of 0 could be tied. The logit of the net's
    own set, or of the last class if the task lacks this set, is then the smallest positive normal number.

    Args:
        task: a task ``next-symbols`` with ``with_other=True``, which adds the last class.
        score: ``"logit"``, ``"sigmoid"`` of the logit, or ``"softmax"``, the probability among all outputs of the net.
        above: the threshold, in the score's units; for example 0 for ``"logit"`` and 0.5 for ``"sigmoid"``.
        tokens: the index of the net's output for each symbol and then, with ``with_end``, for the end. By default,
            output m is the logit of member m, and the net has no other outputs.

    Raises:
        ValueError: the task has no sets or no class for other sets, or an argument is out of range; when the module is
            called, the net has a wrong number of outputs.

    Example:
        >>> from lengthwise import make_task
        >>> task = make_task("next-symbols", base={"name": "tomita", "index": 2}, with_end=True, with_other=True)
        >>> task.symbols, task.classes
        (('0', '1'), ('0', '1 or end', 'another set'))
        >>> answers = SetAnswers(task, above=0.0)
        >>> answers(torch.tensor([[2.0, -1.0, -3.0], [-1.0, 4.0, 0.5], [5.0, 5.0, 5.0]])).tolist()
        [[1.0, -3.0, 0.0], [-4.0, 0.5, 0.0], [-5.0, -5.0, 0.0]]

    Source: Bhattamishra et al., "On the Ability and Limitations of Transformers to Recognize Formal Languages" (arXiv
        2009.11264), section 4: the sets, by sigmoids above 0.5.
    Differs from the source: the logits of classes are ours; they do not change the net's set.
    """

    signs: Tensor
    columns: Tensor

    def __init__(
        self, task: AnswersSets, *, above: float, score: Score = "logit", tokens: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        _check_rule(task, score, above)
        num_members = task.members.shape[1]
        given = list(range(num_members)) if tokens is None else check_tokens("tokens", tokens, MAX_TOKEN + 1)
        if len(given) != num_members or len(set(given)) < num_members:
            raise ValueError(
                f"tokens: expected the indices of {num_members} different outputs, one for each symbol"
                f"{' and one for the end' * (num_members > len(task.symbols))}, got {given}; give {num_members} "
                "indices in the order of the task's symbols"
            )
        self.classes = task.classes
        self.score, self.above = score, float(above)
        self.listed = given  # a copy that can be read without waiting for a device
        self.num_outputs = None if tokens is not None else num_members
        # The task and `describe` determine these numbers, so they are not stored with the weights.
        self.register_buffer("signs", torch.from_numpy(np.where(task.members, 1.0, -1.0)).float(), persistent=False)
        self.register_buffer("columns", torch.tensor(given), persistent=False)

    def describe(self) -> str:
        """Return a text that identifies the rule by which a net's outputs become a set."""
        return f"{self.score} above {self.above!r} of outputs {', '.join(map(str, self.listed))}"

    def forward(self, outputs: Float[Tensor, "*N O"]) -> Float[Tensor, "*N Y"]:
        """Return the logits of the task's classes, computed from the outputs of the net."""
        needed = max(self.listed) + 1 if self.num_outputs is None else self.num_outputs
        count = outputs.shape[-1]
        if count < needed or (self.num_outputs is not None and count > needed):
            way_out = (
                "pass tokens=, the index of each symbol's output, to SetAnswers"
                if self.num_outputs is not None
                else f"pass only tokens below {count} to SetAnswers"
            )
            raise ValueError(
                f"outputs: expected {'at least ' * (self.num_outputs is None)}{needed} outputs of the net, got "
                f"{count}; {way_out}, or use a net with {needed} outputs"
            )
        if self.score == "softmax":
            outputs = outputs.softmax(-1)
        scores = outputs[..., self.columns]
        if self.score == "sigmoid":
            scores = scores.sigmoid()
        distances = scores - self.above
        signs = self.signs.to(distances)
        by_set = (distances[..., None, :] * signs).amin(-1)
        is_own = ((scores > self.above)[..., None, :] == (signs > 0)).all(-1)
        # At a distance of 0, logits would be tied, and the first class would be the answer instead of the net's own
        # set.
        least = torch.finfo(by_set.dtype).tiny
        by_set = torch.where(is_own, by_set.clamp(min=least), by_set)
        is_tied = ~is_own.any(-1, keepdim=True) & (by_set.amax(-1, keepdim=True) == 0)
        return torch.cat([by_set, by_set.new_full((), least) * is_tied], -1)


def _check_rule(task: AnswersSets, score: Score, above: float) -> None:
    """Raise a ValueError unless the task has a class for other sets, and the threshold is a value of this score."""
    if not isinstance(task, AnswersSets) or len(task.classes) != len(task.members) + 1:
        raise ValueError(
            "task: expected the task next-symbols with with_other=True, which has a class for all sets that are not "
            f"the answer to any string, got {getattr(task, 'name', type(task).__name__)}; "
            'make_task("next-symbols", base=..., with_end=True, with_other=True) makes one'
        )
    check_choice("score", score, get_args(Score))
    low, high = (-MAX_LOGIT, MAX_LOGIT) if score == "logit" else (0.0, 1.0)
    if isinstance(above, bool) or not isinstance(above, int | float) or not low <= above <= high:
        limits = "a number" if score == "logit" else "a probability from 0 to 1"
        raise ValueError(
            f"above: expected {limits} as the threshold for score={score!r}, got {above!r}; choose "
            f"{(low + high) / 2}, for example"
        )


def set_answers_in(part: nn.Module) -> SetAnswers | None:
    """Return the `SetAnswers` module in a part of a net, or None if the part has no such module."""
    return next((inner for inner in part.modules() if isinstance(inner, SetAnswers)), None)


def classes_of(model: Any) -> tuple[str, ...] | None:
    """Return the classes of a model whose answers are sets, or None for other models."""
    answers = set_answers_in(model)
    return None if answers is None else answers.classes
