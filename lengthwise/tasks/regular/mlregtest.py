"""Languages of MLRegTest, with the random strings and the pairs of similar strings of its test sets."""

from functools import lru_cache
from typing import Any, Literal

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import DFA
from lengthwise.automata.dfa import joint_sampler
from lengthwise.automata.sampling import StringSampler
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.dfa import DFALanguage
from lengthwise.tasks.regular.recognition import IN, OUT

RANDOM: Any = Field("random", exclude_if=lambda strings: strings == "random")
"""The default kind of strings, which run specifications leave out."""


@TASKS.register("mlregtest")
class MLRegTestLanguage(DFALanguage):
    """Recognition of a language of MLRegTest, whose automaton is given as for the task `dfa`.

    Half of the strings of a batch are in the language. `strings` selects the kind of strings:

    - ``"random"``: uniform strings in the language and uniform strings outside it, as in TestSR and TestLR.
    - ``"pairs"``: pairs of a string in the language and a string outside it that differ in one symbol, as in TestSA
      and TestLA.

    If a length has strings of one class only, all strings are uniform.

    Raises:
        ValueError: as for the task `dfa`, or `strings` is unknown.

    Example:
        >>> import torch
        >>> task = MLRegTestLanguage(strings="pairs")
        >>> batch = task.sample(2, 20, torch.Generator())
        >>> int((batch.inputs[0] != batch.inputs[1]).sum()), sorted(batch.targets[:, -1].tolist())
        (1, [0, 1])

    Source: van der Poel et al., "MLRegTest: A Benchmark for the Machine Learning of Regular Languages" (JMLR 25(283),
        2024), section 5.
    Differs from the source: a string may occur again in another batch. The strings of a pair have equal length. The
        symbols of a random string in the language are exchanged one by one, in random order, for the symbols of a
        random string outside. The pair consists of the strings before and after an exchange at which the string leaves
        the language. In the source, a random string is edited until it changes sides.
        `lengthwise.tasks.given.mlregtest_sampler` draws data sets exactly as the source does.
    """

    strings: Literal["random", "pairs"] = RANDOM

    @property
    def _sampler(self) -> StringSampler:
        """Return a sampler that draws only uniformly from complement and language, because this needs less memory."""
        return _uniform_sampler(self.language)

    def _draw_batch(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        if not self.is_balanced_length(length):
            origin = torch.full((batch_size,), IN if self._has_inside(length) else OUT)
            return self._draw(origin, length, generator)
        num_pairs = (batch_size + 1) // 2
        inside = self._draw(torch.full((num_pairs,), IN), length, generator)
        outside = self._draw(torch.full((num_pairs,), OUT), length, generator)
        if self.strings == "pairs":
            inside, outside = self._nearer(inside, outside, generator)
        # In an odd batch, chance decides which string is left out.
        order = torch.randperm(2 * num_pairs, generator=generator)[:batch_size]
        return torch.cat([inside, outside])[order]

    def _nearer(
        self, inside: Int64[Tensor, "N T"], outside: Int64[Tensor, "N T"], generator: torch.Generator
    ) -> tuple[Int64[Tensor, "N T"], Int64[Tensor, "N T"]]:
        """Replace each pair by a pair that differs in one symbol, on a path from the first string to the second.

        String k of a path has the symbols of the second string at k positions, which are drawn in random order. The
        path begins inside and ends outside, so membership changes at some step. Bisection finds such a step.
        """
        num_pairs, length = inside.shape
        rank = torch.rand(num_pairs, length, generator=generator).argsort(1)

        def on_path(step: Int64[Tensor, " N"]) -> Int64[Tensor, "N T"]:
            return torch.where(rank < step[:, None], outside, inside)

        last_inside = torch.zeros(num_pairs, dtype=torch.int64)
        first_outside = torch.full((num_pairs,), length)
        while (first_outside - last_inside > 1).any():
            middle = (last_inside + first_outside) // 2
            is_inside = self.solve(on_path(middle))[:, -1] == IN
            # If the two steps are neighbors, the middle is the first of them, which is inside. So nothing changes.
            last_inside = torch.where(is_inside, middle, last_inside)
            first_outside = torch.where(is_inside, first_outside, middle)
        return on_path(last_inside), on_path(first_outside)


@lru_cache(maxsize=8)
def _uniform_sampler(language: DFA) -> StringSampler:
    return joint_sampler([language.complement(), language], (1.0,))
