"""Applying a function of a batch to a few strings at a time, so that intermediate results stay small."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lengthwise.validation import check_function

NUMBERS_PER_PART = 1 << 20
"""The largest number of elements in a part, unless one string alone has more. A part consists of the strings that are
processed together. The allocator reuses the memory of small parts. For larger parts, the allocator would request new
memory every time, and the operating system would clear this memory first."""


def through_parts(
    function: Callable[..., tuple[Tensor, Tensor]], given: Sequence[Tensor | None], numbers_of_a_string: int
) -> tuple[Tensor, Tensor]:
    """Return the results of a function of a batch, computed for a few strings at a time.

    The tensors in `given` have one entry for each string, and the function must treat each string by itself. If the
    function computes `numbers_of_a_string` numbers for each string, a part has at most `NUMBERS_PER_PART` /
    `numbers_of_a_string` strings, but at least one.

    Example:
        >>> through_parts(lambda numbers: (2 * numbers, -numbers), [torch.arange(3)], NUMBERS_PER_PART)
        (tensor([0, 2, 4]), tensor([ 0, -1, -2]))
    """
    check_function("function", function)
    if all(each is None for each in given):
        raise ValueError("given: expected at least one tensor, got none; give the tensors of the batch")
    num_strings = max(len(each) for each in given if each is not None)
    # Strings are independent, so splitting the batch does not change any result.
    count = max(1, NUMBERS_PER_PART // max(1, numbers_of_a_string))
    if num_strings <= count:
        return function(*given)
    split = [[None] * -(-num_strings // count) if each is None else each.split(count) for each in given]
    first, second = zip(*(function(*part) for part in zip(*split, strict=True)), strict=True)
    return torch.cat(first), torch.cat(second)
