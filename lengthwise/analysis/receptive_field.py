"""The symbols on which an answer depends: by gradients, as published, and by replacing symbols."""

from collections.abc import Callable, Iterable
from numbers import Real
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.conventions import IGNORE
from lengthwise.devices import one_thread
from lengthwise.evaluation.interval import wilson_interval
from lengthwise.evaluation.length_curve import final_answers
from lengthwise.models.base import SequenceModel
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.shapes import check_axes, check_tensors
from lengthwise.ops.tree_attention import last_state
from lengthwise.tasks.base import OracleTask
from lengthwise.validation import check_kind

Answer = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B Y"]]
"""A function that returns the logits at the last position of strings of embeddings."""

MAX_SYMBOLS_PER_CHUNK = 1 << 15
"""The largest number of symbols in the strings whose gradients are computed together, unless one string has more."""


def tree_answer(model: RegularGPT) -> Answer:
    """Return the model's answer as a function of the embedding at each position."""
    check_kind("model", model, RegularGPT, "a regular-gpt")

    def answer(embedded: Float[Tensor, "B T D"]) -> Float[Tensor, "B Y"]:
        # Each position gets its own symbol id, so that equal symbols at two positions have separate gradients.
        tree = model.tree
        leaves = torch.cat([tree.leaves[:1], embedded.flatten(0, 1)])
        ids = torch.arange(1, len(leaves)).reshape(embedded.shape[:2])
        logits: Tensor = model.readout(last_state(ids, tree._replace(leaves=leaves), table_rows=0))
        return logits

    return answer


def gradient_norms(
    answer: Answer, embedded: Float[Tensor, "B T D"], targets: Int64[Tensor, " B"]
) -> Float[Tensor, "B T"]:
    """Return the norms of the gradients of the target's log-odds with respect to the embedding at each position.

    With logits z and target y, the log-odds are ``m = z_y - log sum_{k != y} exp z_k``.

    The loss ``-log p_y`` has the gradient ``-(1 - p_y) dm``, where dm is the gradient of m. The factor ``1 - p_y`` is
    one number for each string. So the factor would cancel in `cumulative_field`, but it may round to 0 if the model is
    confident.

    Raises:
        ValueError: there is only one class.
    """
    num_strings = max(1, MAX_SYMBOLS_PER_CHUNK // embedded.shape[1])
    parts = zip(embedded.split(num_strings), targets.split(num_strings), strict=True)
    return torch.cat([_gradient_norms(answer, *part) for part in parts])


def _gradient_norms(
    answer: Answer, embedded: Float[Tensor, "B T D"], targets: Int64[Tensor, " B"]
) -> Float[Tensor, "B T"]:
    embedded = embedded.detach().requires_grad_()
    logits = answer(embedded)
    if logits.shape[1] < 2:
        raise ValueError("answer: expected logits of at least 2 classes, got 1; choose a model with more classes")
    is_target = F.one_hot(targets, logits.shape[1]).bool()
    log_odds = logits[is_target] - logits.masked_fill(is_target, -torch.inf).logsumexp(1)
    (gradient,) = torch.autograd.grad(log_odds.sum(), embedded)
    norms: Tensor = gradient.norm(dim=2)
    return norms


def cumulative_field(norms: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Return the fraction of the gradient at position m or later: ``c_m = sum_{n >= m} |g_n| / sum_n |g_n|``.

    Here ``|g_n|`` is the norm of the gradient at position n. If all T norms are equal, the result falls linearly from 1
    at the oldest symbol to 1 / T at the newest.

    Raises:
        ValueError: the gradient of a string is 0 everywhere, or not finite.

    Example:
        >>> cumulative_field(torch.tensor([[1.0, 0.0, 1.0, 2.0]])).tolist()
        [[1.0, 0.75, 0.75, 0.5]]

    Source: Chi et al., "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis" (arXiv
        2212.10356); used by Chi et al. (2023), section 7.4 and Figure 4.
    Differs from the source: `gradient_norms` returns gradients of the log-odds, not of the loss.
    """
    check_tensors(norms=norms)
    check_axes("norms", norms, "B, T")
    later = norms.flip(1).cumsum(1).flip(1)
    total = later[:, :1]
    usable = (total[:, 0] > 0) & total[:, 0].isfinite()
    if not usable.all():
        row = int(usable.int().argmin())
        raise ValueError(
            f"norms: expected a positive, finite sum of gradient norms in every string, got {float(total[row])} in "
            f"string {row}; compute the gradients in float64, or leave the string out"
        )
    return later / total


def receptive_window(cumulative: Float[Tensor, "B T"], share: float = 0.99) -> Int64[Tensor, " B"]:
    """Return the empirical receptive field: the smallest number of newest symbols with over `share` of the gradient.

    `cumulative` is the result of `cumulative_field`.

    Example:
        >>> receptive_window(torch.tensor([[1.0, 0.995, 0.75, 0.5]])).tolist()
        [3]
    """
    check_tensors(cumulative=cumulative)
    check_axes("cumulative", cumulative, "B, T")
    check_kind("share", share, Real, "a number")
    if not 0 <= share < 1:
        raise ValueError(f"share: expected a fraction of at least 0 and below 1, got {share}; choose for example 0.99")
    return 1 + (cumulative.flip(1) > share).int().argmax(1)


class FlipPoint(NamedTuple):
    """The number of answers that change if the symbol `distance` positions before the last symbol is replaced.

    The model's answer changed for `num_changed` of `num_strings` strings, and the correct answer for `num_expected`.
    """

    distance: int
    num_strings: int
    num_changed: int
    num_expected: int

    @property
    def changed(self) -> float:
        """Return the fraction of strings for which the model's answer changed."""
        return self.num_changed / self.num_strings

    @property
    def expected(self) -> float:
        """Return the fraction of strings for which the correct answer changed."""
        return self.num_expected / self.num_strings

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % confidence interval of the fraction `changed`."""
        return wilson_interval(self.num_changed, self.num_strings)


@one_thread()
@torch.no_grad()
def flip_test(
    model: SequenceModel,
    task: OracleTask,
    inputs: Int64[Tensor, "B T"],
    distances: Iterable[int],
    generator: torch.Generator,
) -> list[FlipPoint]:
    """Replace one symbol by another, drawn uniformly, and test whether the answer to the whole string changes.

    A distance is the number of symbols after the replaced symbol. If the task's monoid is a group, a replacement by a
    symbol with another group element changes the element of the whole string, at any distance. Gradients need not show
    this dependence. A pair of a string and its replacement counts only if both have an answer. Distances without such a
    pair are left out.

    Raises:
        ValueError: a distance is outside 0 ... T-1, or the task has a single symbol.
    """
    num_symbols, length = len(task.symbols), inputs.shape[1]
    if num_symbols < 2:
        raise ValueError(
            f"task: expected at least two symbols, got task {task.name} with one; choose a task with more symbols"
        )
    original_targets, answers = task.solve(inputs)[:, -1], final_answers(model, inputs)
    points = []
    for distance in distances:
        if not 0 <= distance < length:
            raise ValueError(
                f"distances: expected 0 (the last symbol) to {length - 1}, got {distance}; leave out "
                "this distance, or give longer strings"
            )
        replaced = inputs.clone()
        position = length - 1 - distance
        replaced[:, position] += torch.randint(1, num_symbols, (len(inputs),), generator=generator)
        replaced[:, position] %= num_symbols
        targets = task.solve(replaced)[:, -1]
        # A replacement may make a string malformed; then it has no right answer.
        supervised = (original_targets != IGNORE) & (targets != IGNORE)
        if supervised.any():
            changed = (final_answers(model, replaced) != answers)[supervised]
            expected = (targets != original_targets)[supervised]
            points.append(FlipPoint(distance, len(changed), int(changed.sum()), int(expected.sum())))
    return points
