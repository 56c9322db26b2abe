"""Tomita's seven languages over two symbols."""

from typing import Annotated

import torch
from jaxtyping import Bool, Int64
from pydantic import Field, model_validator
from torch import Tensor

from lengthwise.automata import DFA, library
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.chi2023 import Chi2023Task
from lengthwise.tasks.regular.recognition import IN


@TASKS.register("tomita")
class Tomita(Chi2023Task):
    """Recognition of Tomita's language of the given `index`, over the symbols 0 and 1.

    1. ``1*``
    2. ``(10)*``
    3. no run of 1s of odd length is immediately followed by a run of 0s of odd length (runs are maximal)
    4. ``000`` occurs nowhere
    5. the number of 0s and the number of 1s are both even
    6. the number of 0s minus the number of 1s is a multiple of 3
    7. ``0*1*0*1*``

    Raises:
        ValueError: `index` is not in 1 ... 7; or `sampling` is unknown, or is ``"chi2023"`` for index 2.

    Example:
        >>> task = Tomita(index=4)
        >>> task.solve(task.encode("1001000")[None]).tolist()
        [[1, 1, 1, 1, 1, 1, 0]]

    Source: Tomita, "Dynamic construction of finite automata from examples using hill-climbing" (Cognitive Science
        Society, 1982); used by Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural
        Language Length Extrapolation" (arXiv 2305.03796), section 5, which uses languages 3 to 6.
    Differs from the source: the default sampling is ours. ``"chi2023"`` follows the code of Chi et al. That code has no
        language 2. Its language 1 is ``0*``; this task exchanges the two symbols. In the code's samples of language 1,
        a string is drawn uniformly with probability 1/2, and from the language otherwise. Strings in languages 5 and 6
        are uniform, and languages 3, 4 and 7 have separate generators. Up to length 4, all samples of language 7 are in
        the language.
    """

    index: Annotated[int, Field(ge=1, le=7)] = 4

    @model_validator(mode="after")
    def _has_sampler(self) -> "Tomita":
        if self.index == 2 and self.sampling == "chi2023":
            raise ValueError(
                "sampling: expected 'near-miss' for index 2, got 'chi2023'; choose 'near-miss', because "
                "the code of Chi et al. has no language 2"
            )
        return self

    @property
    def language(self) -> DFA:
        """Return the minimal automaton of the language."""
        return library.tomita(self.index)

    def is_balanced_length(self, length: int) -> bool:
        """Return whether strings of both classes are drawn at this length."""
        if self.sampling == "chi2023" and self.index == 7:
            return length > 4
        return super().is_balanced_length(length)

    def baseline(self, length: int) -> float:
        """Return one half, or 1 if all strings of this length are of one class.

        For language 1 with sampling ``"chi2023"``, return ``(1 + 2^-T) / 2`` at length T.
        """
        if self.sampling == "chi2023" and self.index == 1:
            return (1 + 0.5**length) / 2
        return super().baseline(length)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return whether each prefix is in the language, by the language's definition with sums over the prefix."""
        return _DEFINITIONS[self.index](inputs).to(torch.int64)

    def draw_chi2023(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """Draw strings of the language as the code of Chi et al. does."""
        if self.index in _CHI2023:
            return _CHI2023[self.index](count, length, generator)
        return self._draw(torch.full((count,), IN), length, generator)

    def _draw_batch_chi2023(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        if self.index != 1:
            return super()._draw_batch_chi2023(batch_size, length, generator)
        uniform = torch.randint(2, (batch_size, length), generator=generator)
        return uniform | torch.randint(2, (batch_size, 1), generator=generator)


def _only_ones(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    return (1 - inputs).cumsum(dim=1) == 0


def _repeats_10(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    odd = torch.arange(inputs.shape[1]) % 2
    return ((inputs == odd).cumsum(dim=1) == 0) & (odd == 1)


def _no_odd_run_after_odd_run(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    position = torch.arange(inputs.shape[1]).expand_as(inputs)
    starts_run = torch.ones_like(inputs, dtype=torch.bool)
    starts_run[:, 1:] = inputs[:, 1:] != inputs[:, :-1]
    start = torch.where(starts_run, position, 0).cummax(dim=1).values
    odd = (position - start) % 2 == 0
    before = (start - 1).clamp(min=0)
    follows_odd_ones = (start > 0) & odd.gather(1, before)
    open_fault = (inputs == 0) & odd & follows_odd_ones
    # An odd run of 0s that still grows may become even again. Once a 1 ends the run, the string is outside for good.
    closed_fault = torch.zeros_like(open_fault)
    closed_fault[:, 1:] = open_fault[:, :-1] & (inputs[:, 1:] == 1)
    return ~open_fault & (closed_fault.cumsum(dim=1) == 0)


def _no_000(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    ends_000 = torch.zeros_like(inputs, dtype=torch.bool)
    ends_000[:, 2:] = (inputs[:, 2:] | inputs[:, 1:-1] | inputs[:, :-2]) == 0
    return ends_000.cumsum(dim=1) == 0


def _even_counts(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    return (inputs.cumsum(dim=1) % 2 == 0) & ((1 - inputs).cumsum(dim=1) % 2 == 0)


def _difference_by_three(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    return (1 - 2 * inputs).cumsum(dim=1) % 3 == 0


def _three_changes_or_fewer(inputs: Int64[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    changes = inputs.clone()
    changes[:, 1:] = inputs[:, 1:] ^ inputs[:, :-1]
    return changes.cumsum(dim=1) <= 3


_DEFINITIONS = {
    1: _only_ones,
    2: _repeats_10,
    3: _no_odd_run_after_odd_run,
    4: _no_000,
    5: _even_counts,
    6: _difference_by_three,
    7: _three_changes_or_fewer,
}


def _chi2023_tomita_3(count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
    """Append runs of a random symbol with uniform lengths; a run of 0s after an odd run of 1s has an even length."""
    position = torch.arange(length)
    strings = torch.zeros(count, length, dtype=torch.int64)
    filled = torch.zeros(count, 1, dtype=torch.int64)
    last = torch.full((count, 1), -1)
    ones = torch.zeros(count, 1, dtype=torch.int64)
    while (filled < length).any():
        symbol = torch.randint(2, (count, 1), generator=generator)
        unit = torch.where((symbol == 0) & (ones % 2 == 1), 2, 1)
        uniforms = torch.rand(count, 1, generator=generator, dtype=torch.float64)
        run = (uniforms * ((length - filled) // unit + 1)).to(torch.int64) * unit
        strings[(position >= filled) & (position < filled + run) & (symbol == 1)] = 1
        filled = filled + run
        # The last run of 1s grows if the string still ends in 1s; after 0s a new run of 1s begins.
        ones = torch.where((symbol == 1) & (run > 0), run + torch.where(last == 0, 0, ones), ones)
        last = torch.where(run > 0, symbol, last)
    return strings


def _chi2023_tomita_4(count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
    """Flip fair coins, but append a 1 after two 0s."""
    columns = torch.randint(2, (length, count), generator=generator)
    for position in range(2, length):
        columns[position] |= (columns[position - 1] | columns[position - 2]) == 0
    return columns.T.contiguous()


def _chi2023_tomita_7(count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
    """Append runs of 0s, 1s and 0s, each with a uniform length up to the end of the string, and 1s for the rest."""
    position = torch.arange(length)
    strings = torch.zeros(count, length, dtype=torch.int64)
    end = torch.zeros(count, 1, dtype=torch.int64)
    for _ in range(3):
        uniforms = torch.rand(count, 1, generator=generator, dtype=torch.float64)
        end = end + (uniforms * (length - end + 1)).to(torch.int64)
        # Every boundary flips all symbols after it.
        strings ^= position >= end
    return strings


_CHI2023 = {3: _chi2023_tomita_3, 4: _chi2023_tomita_4, 7: _chi2023_tomita_7}
