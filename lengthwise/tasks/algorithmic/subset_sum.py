"""Subset sum: whether some of the given integers sum to the target."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.conventions import NUM_SPECIAL
from lengthwise.tasks.algorithmic.single_answer import SingleAnswerTask, check_positive, join_parts
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.base_rates import Problems

Sampling = Literal["published", "hard"]

Drawn = tuple[Int64[Tensor, "N n"], Int64[Tensor, " N"], Int64[Tensor, " N"]]
"""Items, targets, and whether each target can be reached."""

WORD = 64
"""The number of bits in the words that hold sets of sums."""

MAX_SUMS_PER_CHUNK = 1 << 22
"""The largest total number of sums in problems that are drawn at a time; about as many sums fit into a cache."""

MIN_HARD_ITEMS = 6
MIN_HARD_VALUE = 64
MAX_SUBSETS_PER_VALUE = 20
"""The largest ratio of the number of subsets to `max_value`. With more subsets, hardly any sum is unreachable."""


@TASKS.register("subset-sum")
class SubsetSum(SingleAnswerTask):
    """Whether some of `length` integers in 1 ... `max_value`, each used at most once, sum to a target.

    A problem reads ``5 3 9 | 14 <sep>``; the classes are 0 (no) and 1 (yes). With ``"published"`` sampling, items are
    uniform and the target is uniform in 1 ... their sum. Most targets can be reached, and the unreachable ones are near
    1 or near the sum. A threshold on ``|target / sum - 1/2|`` therefore answers 82 % of the problems of 10 items
    correctly.

    With ``"hard"`` sampling, the answer is a fair coin. Targets with either answer are between 1/4 and 3/4 of the sum
    of all items, and larger than any item. To find the unreachable target, a uniform number is drawn, and a fair coin
    chooses a direction. The target is the first unreachable number from the drawn number on in this direction. The
    reachable target is close to the unreachable target. Neither the reachable target nor its difference from the sum of
    all items is a sum of two items. A greedy choice, which always takes the largest item that still fits, reaches
    neither the reachable target nor this difference.

    The items then carry no information about the answer, and the target's location carries hardly any. Sums of three
    items carry more information: trying all of them answers 79 % of the problems of 10 items correctly, and all
    problems of 6 items. Hard problems have at least 6 items, with ``2^length`` at most ``20 max_value``, and
    `max_value` at least 64.

    Raises:
        ValueError: a field is out of its range, `num_range` is too small, or `max_value` is too small for ``"hard"``
            sampling.

    Example:
        >>> task = SubsetSum(max_length=4)
        >>> task.decode(task.sample(1, 4, torch.Generator().manual_seed(0)).inputs[0])
        '99 19 57 70 | 113 <sep>'

    Source: Xu and Sato, "On Expressive Power of Looped Transformers: Theoretical Analysis and Enhancement via Timestep
        Encoding" (arXiv 2410.01405), appendix C.1.1.
    Differs from the source: ``"hard"`` sampling is ours; see `SingleAnswerTask` for scoring.
    """

    max_length: Annotated[int, Field(ge=1, le=1_000)] = 10
    max_value: Annotated[int, Field(ge=1, le=1_000)] = 99
    sampling: Sampling = "published"

    @model_validator(mode="after")
    def _has_values_for_hard_problems(self) -> "SubsetSum":
        if self.sampling == "hard" and self.max_value < MIN_HARD_VALUE:
            raise ValueError(
                f"max_value: expected at least {MIN_HARD_VALUE} for sampling 'hard', got {self.max_value}; raise "
                "max_value, or choose sampling 'published'"
            )
        return self

    @property
    def largest_number(self) -> int:
        """Return the largest possible sum of all items in a problem."""
        return self.max_length * self.max_value

    classes: ClassVar[tuple[str, ...]] = ("0", "1")  # no, yes

    @property
    def shortest_length(self) -> int:
        """Return the smallest number of items of a problem: 1, or 6 for hard problems."""
        return MIN_HARD_ITEMS if self.sampling == "hard" else 1

    def is_legal_length(self, length: int) -> bool:
        """Return whether the length is in range and, for hard problems, ``2^length`` is at most ``20 max_value``."""
        is_short = super().is_legal_length(length)
        return is_short and (self.sampling != "hard" or 2**length <= MAX_SUBSETS_PER_VALUE * self.max_value)

    def answer(self, parts: Sequence[Sequence[int]]) -> int | None:
        """Return 1 if some of the items sum to the target, else 0."""
        if [len(part) for part in parts[1:]] != [1] or 0 in parts[0]:
            return None
        reached, target = reachable_sums(torch.tensor(parts[:1]))[0], parts[1][0]
        return int(target < len(reached) and bool(reached[target]))

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw items and targets, and return them with their answers: whether each target can be reached."""
        at_once = max(1, MAX_SUMS_PER_CHUNK // (length * self.max_value))
        draw = _draw_hard if self.sampling == "hard" else _draw_published
        sizes = [min(at_once, count - done) for done in range(0, count, at_once)]
        parts = [draw(size, length, self.max_value, generator) for size in sizes]
        items, targets, answers = (torch.cat(part) for part in zip(*parts, strict=True))
        return join_parts(items, targets[:, None]), answers

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return features of problems by name.

        The features are the location of the target between 0 and the sum of all items, the parity of the target
        together with the number of odd items, the number of items that are at most the target, and the rest of greedy
        choices. The rest is the smaller of two numbers: what greedy choices leave of the target, and what they leave of
        the total minus the target.
        """
        items, target = inputs[:, :-3] - NUM_SPECIAL, inputs[:, -2] - NUM_SPECIAL
        total = items.sum(1)
        return {
            "|target/sum - 1/2|": (2 * target - total).abs() * 32 // total,
            "target/sum": target * 64 // total,
            "parity of target and items": 2 * (items % 2).sum(1) + target % 2,
            "items up to the target": (items <= target[:, None]).sum(1),
            "rest of greedy choices": torch.minimum(greedy_rest(items, target), greedy_rest(items, total - target)),
        }


def _draw_published(count: int, length: int, max_value: int, generator: torch.Generator) -> Drawn:
    items = torch.randint(1, max_value + 1, (count, length), generator=generator)
    uniforms = torch.rand(count, generator=generator, dtype=torch.float64)
    targets = 1 + (uniforms * items.sum(1)).to(torch.int64)
    return items, targets, reachable_sums(items).gather(1, targets[:, None])[:, 0].to(torch.int64)


def _draw_hard(count: int, length: int, max_value: int, generator: torch.Generator) -> Drawn:
    kept, missing = [], count
    while missing > 0:
        # More problems than are missing are drawn, because some items have no usable pair of targets.
        drawn = torch.randint(1, max_value + 1, (2 * missing + 8, length), generator=generator)
        both, usable = _near_misses(drawn, generator)
        kept.append((drawn[usable], both[usable]))
        missing -= int(usable.sum())
    items, targets = (torch.cat(part)[:count] for part in zip(*kept, strict=True))
    # Answers are drawn after the items were accepted, so that items carry no information about the answer.
    answers = torch.randint(2, (count,), generator=generator)
    return items, targets.gather(1, answers[:, None])[:, 0], answers


def _near_misses(
    items: Int64[Tensor, "N n"], generator: torch.Generator
) -> tuple[Int64[Tensor, "N 2"], Bool[Tensor, " N"]]:
    """Return, for each row, an unreachable target, a reachable target close to it, and whether the pair can be used."""
    reached, total = reachable_sums(items), items.sum(1, keepdim=True)
    sums = torch.arange(reached.shape[1])
    lowest = torch.maximum(total // 4, items.max(1, keepdim=True).values + 1)
    allowed = (sums >= lowest) & (sums <= total - lowest)
    not_by_two = allowed.clone()
    one, other = torch.triu_indices(items.shape[1], items.shape[1], 1)
    of_two = items[:, one] + items[:, other]
    # Sums of two items, and the total minus such sums, are excluded: a net could find them by trying all pairs.
    not_by_two.scatter_(1, of_two, False).scatter_(1, total - of_two, False)
    uniforms = torch.rand(len(items), 1, generator=generator, dtype=torch.float64)
    position = lowest + (uniforms * (total - 2 * lowest + 1)).to(torch.int64)
    upwards = torch.randint(2, (2, len(items)), generator=generator) == 1
    miss, missed = _nearest(allowed & ~reached, position, upwards[0])
    hit, exists = _nearest(not_by_two & reached, miss[:, None], upwards[1])
    not_greedy = torch.minimum(greedy_rest(items, hit), greedy_rest(items, total[:, 0] - hit)) > 0
    return torch.stack([miss, hit], 1), missed & exists & not_greedy


def _nearest(
    allowed: Bool[Tensor, "N S"], position: Int64[Tensor, "N 1"], upwards: Bool[Tensor, " N"]
) -> tuple[Int64[Tensor, " N"], Bool[Tensor, " N"]]:
    """Return the allowed sum nearest to `position` (upwards or downwards), and whether any sum is allowed.

    If no sum is allowed in the chosen direction, the nearest one in the other direction is returned.
    """
    beyond = torch.arange(allowed.shape[1]) >= position
    above, below = (allowed & beyond).numpy(), (allowed & ~beyond).numpy()[:, ::-1]
    nearest_above, nearest_below = (torch.from_numpy(side.argmax(1)) for side in (above, below))
    has_above, has_below = (torch.from_numpy(side.any(1)) for side in (above, below))
    nearest = torch.where(has_above & (upwards | ~has_below), nearest_above, allowed.shape[1] - 1 - nearest_below)
    return nearest, has_above | has_below


def greedy_rest(items: Int64[Tensor, "N n"], targets: Int64[Tensor, " N"]) -> Int64[Tensor, " N"]:
    """Return what is left of each target after repeatedly subtracting the largest item that still fits."""
    left = targets.clone()
    for item in items.sort(dim=1, descending=True).values.T:
        left -= torch.where(item <= left, item, 0)
    return left


def reachable_sums(items: Int64[Tensor, "N n"]) -> Bool[Tensor, "N S"]:
    """Return whether some of a row's positive items sum to s, for s = 0 ... the largest sum of any row.

    Each row's sums are stored as bits of words. An item x adds all earlier sums again, shifted by x bits.

    Raises:
        ValueError: an item is below 1.
    """
    check_positive(items=items)
    largest = int(items.sum(1).max())
    num_words = largest // WORD + 1
    rows, positions = np.arange(len(items)), np.arange(num_words)[:, None]
    sums = np.zeros((num_words + 1, len(items)), dtype=np.uint64)  # the first word stays 0: it is shifted in
    sums[1] = 1
    for item in items.T.numpy():
        words, bits = np.divmod(item, WORD)
        bits = bits.astype(np.uint64)
        moved, below = (sums[np.maximum(positions + first - words, 0), rows] for first in (1, 0))
        # The lower word (`below`) is shifted in two steps, because a shift by 64 bits is undefined.
        sums[1:] |= (moved << bits) | (below >> np.uint64(1) >> (np.uint64(WORD - 1) - bits))
    unpacked = np.unpackbits(np.ascontiguousarray(sums[1:].T).astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return torch.from_numpy(unpacked[:, : largest + 1].view(np.bool_))


def reachable_sums_by_definition(items: Int64[Tensor, "N n"]) -> Bool[Tensor, "N S"]:
    """Return the same array as `reachable_sums`, computed sum by sum."""
    reached = torch.zeros(len(items), int(items.sum(1).max()) + 1, dtype=torch.bool)
    for row, values in enumerate(items.tolist()):
        sums = {0}
        for value in values:
            sums |= {s + value for s in sums}
        reached[row, list(sums)] = True
    return reached
