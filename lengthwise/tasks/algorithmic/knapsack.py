"""Knapsack: the largest total value of items whose total weight is at most a capacity."""

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.conventions import NUM_SPECIAL
from lengthwise.tasks.algorithmic.single_answer import SingleAnswerTask, check_positive, join_parts
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.base_rates import Problems

Items = Int64[Tensor, "N n"]

MAX_CELLS_PER_CHUNK = 1 << 17
"""The number of table cells that are computed at a time, which is about as many as fit into a cache."""


@TASKS.register("knapsack")
class Knapsack(SingleAnswerTask):
    """The largest sum of values of items, each used at most once, whose weights sum to at most a capacity.

    A problem reads ``3 4 2 | 7 9 1 | 6 <sep>``: weights, values and capacity, all of which are uniform, from 1 to their
    maximum. `length` is the number of items, and the classes are the integers.

    Raises:
        ValueError: a field is out of its range (weights, values and capacities are positive), or `num_range` is too
            small.

    Example:
        >>> weights, values = torch.tensor([[3, 4, 2]]), torch.tensor([[7, 9, 1]])
        >>> best_value(weights, values, torch.tensor([6])).tolist()
        [10]

    Source: Xu and Sato, "On Expressive Power of Looped Transformers: Theoretical Analysis and Enhancement via Timestep
        Encoding" (arXiv 2410.01405), appendix C.1.1.
    Differs from the source: the source's text puts values first, but its example has the printed answer, 52, only if
        weights come first. The ranges are taken from that example. See `SingleAnswerTask` for scoring.
    """

    max_length: Annotated[int, Field(ge=1, le=1_000)] = 20
    max_weight: Annotated[int, Field(ge=1, le=10_000)] = 20
    max_value: Annotated[int, Field(ge=1, le=10_000)] = 10
    max_capacity: Annotated[int, Field(ge=1, le=10_000)] = 50

    @property
    def largest_number(self) -> int:
        """Return the largest possible weight, capacity or total value of items that fit, whichever is largest."""
        max_items = min(self.max_length, self.max_capacity)
        return max(self.max_weight, self.max_capacity, max_items * self.max_value)

    def answer(self, parts: Sequence[Sequence[int]]) -> int | None:
        """Return the largest total value of items that fit into the capacity."""
        if len(parts) != 3 or len(parts[0]) != len(parts[1]) or len(parts[2]) != 1 or any(0 in part for part in parts):
            return None
        weights, values, capacity = (torch.tensor([part]) for part in parts)
        return int(best_value(weights, values, capacity[0]))

    def draw(self, count: int, length: int, generator: torch.Generator) -> Problems:
        """Draw uniform weights, values and capacities, all of at least 1."""
        weights = torch.randint(1, self.max_weight + 1, (count, length), generator=generator)
        values = torch.randint(1, self.max_value + 1, (count, length), generator=generator)
        capacities = torch.randint(1, self.max_capacity + 1, (count, 1), generator=generator)
        return join_parts(weights, values, capacities), best_value(weights, values, capacities[:, 0])

    def shallow_features(self, inputs: Int64[Tensor, "N T"]) -> dict[str, Int64[Tensor, " N"]]:
        """Return features by name: the capacity, the values of two greedy choices, and both values in one integer.

        Both choices go through the items from the highest to the lowest value per weight. One choice takes every item
        that still fits. The other choice ends at the first item that does not fit, and takes a part of this item.
        """
        length = (inputs.shape[1] - 4) // 2
        weights, values = inputs[:, :length] - NUM_SPECIAL, inputs[:, length + 1 : -3] - NUM_SPECIAL
        capacities = inputs[:, -2] - NUM_SPECIAL
        order = (values / weights).argsort(dim=1, descending=True, stable=True)
        left, remaining = capacities.clone(), capacities.to(torch.float64)
        greedy, bound = torch.zeros_like(left), torch.zeros_like(remaining)
        for weight, value in zip(weights.gather(1, order).T, values.gather(1, order).T, strict=True):
            fits = weight <= left
            left, greedy = left - weight * fits, greedy + value * fits
            # A part of the last item makes this an upper bound on the best value.
            bound += value * (remaining / weight).clamp(0, 1)
            remaining = (remaining - weight).clamp(min=0)
        fractional = bound.to(torch.int64)
        return {
            "capacity": capacities,
            "greedy value": greedy,
            "fractional value": fractional,
            "greedy and fractional value": greedy * (self.largest_number + 1) + fractional,
        }


def best_value(weights: Items, values: Items, capacities: Int64[Tensor, " N"]) -> Int64[Tensor, " N"]:
    """Return, for each row, the largest value of items whose positive weights sum to at most the row's capacity.

    The best value for every capacity is computed item by item: an item of weight w and value v changes the best value
    for capacity c to ``best(c) = max(best(c), best(c - w) + v)``.

    Raises:
        ValueError: a weight, value or capacity is below 1.
    """
    check_positive(weights=weights, values=values, capacities=capacities)
    at_once = max(1, MAX_CELLS_PER_CHUNK // (int(capacities.max()) + 1))
    parts = zip(weights.split(at_once), values.split(at_once), capacities.split(at_once), strict=True)
    return torch.cat([_best_value(*part) for part in parts])


def _best_value(weights: Items, values: Items, capacities: Int64[Tensor, " N"]) -> Int64[Tensor, " N"]:
    capacity = torch.arange(int(capacities.max()) + 1)[:, None]
    best = torch.zeros(len(capacity), len(weights), dtype=torch.int32)
    for weight, value in zip(weights.T, values.T.to(torch.int32), strict=True):
        left = capacity - weight
        # All capacities are updated from the same old values, so that no item is taken twice.
        best = torch.maximum(best, torch.where(left >= 0, best.gather(0, left.clamp(min=0)) + value, 0))
    return best.gather(0, capacities[None])[0].to(torch.int64)


def best_value_by_definition(weights: Items, values: Items, capacities: Int64[Tensor, " N"]) -> Int64[Tensor, " N"]:
    """Return the same values as `best_value`, computed by trying every choice of items."""
    chosen = torch.cartesian_prod(*[torch.arange(2)] * weights.shape[1]).view(-1, weights.shape[1])
    fits = chosen @ weights.T <= capacities
    return torch.where(fits, chosen @ values.T, 0).max(0).values
