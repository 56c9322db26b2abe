"""Bucket sort: the symbols of a string in order."""

from typing import Annotated

from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.tasks.algorithmic.string_answer import UniformStringTask
from lengthwise.tasks.base import TASKS


@TASKS.register("bucket-sort")
class BucketSort(UniformStringTask):
    """The digits of a string in ascending order, queried one by one (`StringAnswerTask`).

    The position in the answer determines most symbols: among 500 digits of five kinds, the k-th lowest is known from k
    alone in 93 of 100 cases. `base_rates` measures this fraction at each length.

    Raises:
        ValueError: `num_digits` is not in 2 ... 9.

    Example:
        >>> task = BucketSort()
        >>> task.decode(task.encode("3122????")), task.solve(task.encode("3122????")[None])[0, 4:].tolist()
        ('3122????', [0, 1, 1, 2])

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (ICLR 2023), Bucket Sort.
    Differs from the source: the field `num_digits` (5 there), and the ways that `StringAnswerTask` lists.
    """

    num_digits: Annotated[int, Field(ge=2, le=9)] = 5

    @property
    def letters(self) -> tuple[str, ...]:
        """Return the digits 1 ... `num_digits`."""
        return tuple(str(digit) for digit in range(1, self.num_digits + 1))

    def answer(self, strings: Int64[Tensor, "N n"]) -> Int64[Tensor, "N M"]:
        """Return the sorted letters of each string."""
        return strings.sort(dim=1).values
