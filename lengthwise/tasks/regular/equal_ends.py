"""Equal ends: whether the last symbol equals the first one."""

from typing import Annotated, ClassVar

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS, UniformTask


@TASKS.register("equal-ends")
class EqualEnds(UniformTask):
    """Whether symbol t equals symbol 1, over independent uniform digits below `num_digits`; EvenPair(M) of Fan et al.

    ``answer_t = 1 if symbol_t = symbol_1, else 0``, which is always 1 at t = 1. The classes are 0 (the symbols differ)
    and 1. With five digits, a constant answer is right 4 times out of 5. With two digits, this is `even-pairs` with its
    classes exchanged.

    Raises:
        ValueError: `num_digits` is not in 2 ... 10 (digits are single symbols).

    Example:
        >>> task = EqualEnds(num_digits=5)
        >>> task.solve(task.encode("0320")[None]).tolist()
        [[1, 0, 0, 1]]

    Source: Fan et al., "Advancing Regular Language Reasoning in Linear Recurrent Neural Networks" (arXiv 2309.07412),
        section 4.1, EvenPair(M).
    Differs from the source: the name. Other benchmarks use the source's name for a task over two symbols with the
        classes exchanged.
    """

    num_digits: Annotated[int, Field(ge=2, le=10)] = 5

    @property
    def symbols(self) -> tuple[str, ...]:
        """Return the digits below `num_digits`."""
        return tuple(map(str, range(self.num_digits)))

    classes: ClassVar[tuple[str, ...]] = ("0", "1")  # first and last symbol differ, are equal

    @property
    def transducer(self) -> Transducer:
        """Return a machine whose state is the first symbol, and whether the last symbol equals the first symbol."""
        return library.equal_ends(self.num_digits)

    def is_balanced_length(self, length: int) -> bool:
        """Return whether the length is at least 2. A single symbol equals itself, so its answer is always 1."""
        return length >= 2

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return 1 for each symbol that equals the first symbol of its string, else 0."""
        return (inputs == inputs[:, :1]).to(torch.int64)

    def baseline(self, length: int) -> float:
        """Return 1 at length 1, else ``1 - 1 / num_digits``, the probability that the first and last digit differ."""
        return 1.0 if length == 1 else 1 - 1 / self.num_digits
