"""Cycle navigation: the position at which a walk on a cycle ends."""

from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS, UniformTask


@TASKS.register("cycle-navigation")
class CycleNavigation(UniformTask):
    """The position on a cycle of `size` positions after moves 0 (stay), 1 (up) and 2 (down) from position 0.

    ``answer_t = (number of 1 - number of 2 among symbols 1 ... t) mod size``; the classes are the positions. The moves
    are independent and uniform.

    Raises:
        ValueError: `size` is not in 1 ... 1,000.

    Example:
        >>> task = CycleNavigation(size=5)
        >>> task.solve(task.encode("12022")[None]).tolist()
        [[1, 0, 0, 4, 3]]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (arXiv 2207.02098), Cycle Navigation; used by
        Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length
        Extrapolation" (arXiv 2305.03796), section 5.
    Differs from the source: the field `size` (5 there). In the code of both papers, a symbol moves by symbol - 1. In
        the text of Chi et al. and in this task, 0 stays, 1 goes up and 2 goes down.
    """

    size: Annotated[int, Field(ge=1, le=1_000)] = 5

    symbols: ClassVar[tuple[str, ...]] = ("0", "1", "2")  # stay, up, down

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the positions on the cycle."""
        return tuple(str(position) for position in range(self.size))

    @property
    def transducer(self) -> Transducer:
        """Return the machine whose states are the positions; the answer is the state."""
        return library.cycle(self.size)

    def is_balanced_length(self, length: int) -> bool:
        """Return whether this number of moves can reach every position of the cycle."""
        return length >= 1 and 2 * length + 1 >= self.size

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return for each prefix the sum of its moves modulo `size`; the move down counts as -1."""
        return torch.where(inputs == 2, -1, inputs).cumsum(dim=1) % self.size

    def baseline(self, length: int) -> float:
        """Return the probability of the likeliest position after `length` uniform moves.

        A power of the transition matrix contains the probabilities of all positions.
        """
        chain = self.transducer.semiautomaton.transition_matrix(np.full(3, 1 / 3))
        return float(np.linalg.matrix_power(chain, length)[0].max())
