"""Functions of a batch of strings, applied to some strings at a time, so that intermediate results stay small."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

NUMBERS_PER_PART = 1 << 20
"""The largest number of elements of strings that are read together. The memory of small parts is used again; larger
blocks are taken from the system, and cleared by it, every time."""


def through_parts(
    function: Callable[..., tuple[Tensor, Tensor]], given: Sequence[Tensor | None], numbers_of_a_string: int
) -> tuple[Tensor, Tensor]:
    """Return the results of a function of batches that treats strings alike, computed for some strings at a time.

    Example:
        >>> through_parts(lambda numbers: (2 * numbers, -numbers), [torch.arange(3)], NUMBERS_PER_PART)
        (tensor([0, 2, 4]), tensor([ 0, -1, -2]))
    """
    num_strings = max(len(each) for each in given if each is not None)
    # Strings are independent, so that splitting the batch does not change any result.
    count = max(1, NUMBERS_PER_PART // max(1, numbers_of_a_string))
    if num_strings <= count:
        return function(*given)
    split = [[None] * -(-num_strings // count) if each is None else each.split(count) for each in given]
    first, second = zip(*(function(*part) for part in zip(*split, strict=True)), strict=True)
    return torch.cat(first), torch.cat(second)
