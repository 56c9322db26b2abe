"""Bounded Dyck languages: are the brackets balanced, and nested no deeper than n?"""

from typing import Annotated

import torch
from jaxtyping import Int64
from pydantic import Field
from torch import Tensor

from lengthwise.automata import DFA, library
from lengthwise.tasks.base import TASKS
from lengthwise.tasks.regular.chi2023 import Chi2023Task


@TASKS.register("bounded-dyck")
class BoundedDyck(Chi2023Task):
    """Recognition of D_n, the balanced strings of one kind of bracket nested at most n = `depth` deep.

    With ``h_t`` the number of `(` less the number of `)` among symbols 1 ... t, a string is in D_n when ``h_T = 0`` and
    ``0 <= h_t <= depth`` throughout; equivalently D_0 holds the empty string alone and ``D_n = (( D_(n-1) ))*``. The
    star-free D_n is regular, unlike the Dyck language itself. Odd lengths have no string inside.

    Under ``"near-miss"`` sampling the profiles are the exact depths 1 ... n and the neighbor is depth n + 1, so that
    the bound decides; the paper's samples hardly exercise it.

    Raises:
        ValueError: `depth` is below 1, or `sampling` is none of the two.

    Example:
        >>> task = BoundedDyck(depth=2)
        >>> task.solve(task.encode("(())(((")[None]).tolist()
        [[0, 0, 0, 1, 0, 0, 0]]

    Source: Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length
        Extrapolation" (arXiv 2305.03796), section 5 (D_2, D_3, D_4, D_12), after Bhattamishra et al., "On the Ability
        and Limitations of Transformers to Recognize Formal Languages" (arXiv 2009.11264).
    Differs from the source: Bhattamishra et al. ask for the set of legal next symbols; here, as in Chi et al., the
        question is membership. The default sampling is ours. ``"chi2023"`` draws strings inside as the code does: a
        block of level k is filled by brackets around blocks of level k - 1 whose length is a normal number with mean
        3/4 and standard deviation 3/40 of the room left, rounded down to an even number and at most that room; one
        below 0, ten standard deviations away, is taken as 0.
    """

    depth: Annotated[int, Field(ge=1, le=50)] = 2

    @property
    def language(self) -> DFA:
        """D_n; the state is the number of open brackets."""
        return library.bounded_dyck(self.depth)

    @property
    def profiles(self) -> tuple[DFA, ...]:
        """The strings of depth exactly 1, ..., exactly n."""
        return tuple(library.exact_depth_dyck(depth) for depth in range(1, self.depth + 1))

    @property
    def neighbor(self) -> DFA:
        """The balanced strings of depth exactly n + 1."""
        return library.exact_depth_dyck(self.depth + 1)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Balanced so far, and never below 0 or above the bound."""
        heights = (1 - 2 * inputs).cumsum(dim=1)
        legal = (heights.cummin(dim=1).values >= 0) & (heights.cummax(dim=1).values <= self.depth)
        return (legal & (heights == 0)).to(torch.int64)

    def draw_chi2023(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """The recursive generator of the code, as one pass with a stack of the room left in every open block."""
        rows = torch.arange(count)
        remaining = torch.zeros(count, self.depth + 1, dtype=torch.int64)
        remaining[:, 0] = length
        level = torch.zeros(count, dtype=torch.int64)
        normals = torch.randn(length, count, generator=generator, dtype=torch.float64)
        strings = torch.empty(length, count, dtype=torch.int64)
        for position in range(length):
            left = remaining[rows, level]
            opens = left > 0
            inner = ((left - 2) * (0.75 + 0.075 * normals[position])).to(torch.int64) // 2 * 2
            inner = torch.where(level + 1 < self.depth, torch.minimum(inner, left - 2).clamp(min=0), 0)
            remaining[rows, level] = torch.where(opens, left - 2 - inner, left)
            level = torch.where(opens, level + 1, level - 1)
            remaining[rows, level] = torch.where(opens, inner, remaining[rows, level])
            strings[position] = ~opens
        return strings.T.contiguous()
