"""Parity: whether the number of `b` is even or odd."""

from typing import Annotated, ClassVar

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS, Batch, RegularTask


@TASKS.register("parity")
class Parity(RegularTask):
    """The number of `b` modulo 2, over independent symbols that are `b` with probability `p`.

    ``answer_t = (number of b among symbols 1 ... t) mod 2``; the classes are the two remainders.

    Raises:
        ValueError: `p` is not strictly between 0 and 1.

    Example:
        >>> task = Parity()
        >>> task.solve(task.encode("abba")[None]).tolist()
        [[0, 1, 0, 0]]

    Source: Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length
        Extrapolation" (arXiv 2305.03796), section 5 and Table 2 (`p`); Delétang et al., "Neural Networks and the
        Chomsky Hierarchy" (arXiv 2207.02098), Parity Check.
    Differs from the source: no difference.
    """

    prefix_exchangeable: ClassVar[bool] = True

    p: Annotated[float, Field(gt=0, lt=1)] = 0.5

    symbols: ClassVar[tuple[str, ...]] = ("a", "b")
    classes: ClassVar[tuple[str, ...]] = ("0", "1")  # even, odd

    @property
    def transducer(self) -> Transducer:
        """Return a machine with two states; `b` leads from each state to the other state."""
        return library.parity()

    def sample(self, batch_size: int, length: int, generator: torch.Generator) -> Batch:
        """Draw independent symbols; every prefix is supervised."""
        uniforms = torch.rand(batch_size, length, generator=generator, dtype=torch.float64)
        inputs = (uniforms < self.p).to(torch.int64)
        return Batch(inputs, self.solve(inputs))

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return for each prefix the number of `b` modulo 2."""
        return inputs.cumsum(dim=1) % 2

    def baseline(self, length: int) -> float:
        """Return ``(1 + |1 - 2p|^T) / 2``, the probability of the likelier remainder at length T."""
        return (1 + abs(1 - 2 * self.p) ** length) / 2
