"""Even pairs: whether the first and last symbol agree."""

from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata import Transducer, library
from lengthwise.tasks.base import TASKS, UniformTask


@TASKS.register("even-pairs")
class EvenPairs(UniformTask):
    """The number of occurrences of `ab` and `ba` together, modulo 2, over independent fair symbols.

    ``answer_t = #{1 < s <= t : symbol_s is not symbol_(s-1)} mod 2``, which is 0 exactly if symbol t equals the first
    symbol. The classes are the two remainders.

    Example:
        >>> task = EvenPairs()
        >>> task.solve(task.encode("aabba")[None]).tolist()
        [[0, 0, 1, 1, 0]]

    Source: Delétang et al., "Neural Networks and the Chomsky Hierarchy" (arXiv 2207.02098), Even Pairs; used by Chi et
        al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation"
        (arXiv 2305.03796), section 5.
    Differs from the source: no difference. (Fan et al., arXiv 2309.07412, call a different task over five symbols
        EvenPair(5).)
    """

    symbols: ClassVar[tuple[str, ...]] = ("a", "b")
    classes: ClassVar[tuple[str, ...]] = ("0", "1")  # even, odd

    @property
    def transducer(self) -> Transducer:
        """Return a machine whose state is the last symbol and the answer so far."""
        return library.even_pairs()

    def is_balanced_length(self, length: int) -> bool:
        """Return whether the length is at least 2. A single symbol has no pairs, so its answer is always 0."""
        return length >= 2

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return 1 for each symbol that differs from the first symbol of its string, else 0."""
        return (inputs != inputs[:, :1]).to(torch.int64)

    def baseline(self, length: int) -> float:
        """Return 1 at length 1, where every answer is 0, and else 1/2, because both answers are equally likely."""
        return 0.5 if self.is_balanced_length(length) else 1.0
