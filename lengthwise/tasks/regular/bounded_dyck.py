"""Bounded Dyck languages: balanced brackets, nested no deeper than n."""

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

    Let ``h_t`` be the number of `(` minus the number of `)` among symbols 1 ... t. A string is in D_n if ``h_T = 0``
    and ``0 <= h_t <= depth`` for all t. Equivalently, D_0 contains the empty string alone and
    ``D_n = (( D_(n-1) ))*``. Unlike the Dyck language itself, D_n is regular, and star-free. No string of odd length is
    in D_n.

    With ``"near-miss"`` sampling (`RecognitionTask`), the profiles are the languages of exact depth 1, ..., n. The
    neighbor is the language of exact depth n + 1, so the bound on the depth decides the answer. The samples of
    Chi et al. (``"chi2023"``) hardly test this bound.

    Raises:
        ValueError: `depth` is below 1, or `sampling` is unknown.

    Example:
        >>> task = BoundedDyck(depth=2)
        >>> task.solve(task.encode("(())(((")[None]).tolist()
        [[0, 0, 0, 1, 0, 0, 0]]

    Source: Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length
        Extrapolation" (arXiv 2305.03796), section 5 (D_2, D_3, D_4, D_12), after Bhattamishra et al., "On the Ability
        and Limitations of Transformers to Recognize Formal Languages" (arXiv 2009.11264).
    Differs from the source: in Bhattamishra et al. the answer is the set of legal next symbols; here, as in Chi et al.,
        it is membership. The default sampling is ours. ``"chi2023"`` draws strings in D_n as the code of Chi et al.
        does. It fills a block of level k with blocks of level k - 1, each in brackets. Let m symbols of the block be
        left after the next pair of brackets. The length between these brackets is a normal number with mean 3m/4 and
        standard deviation 3m/40, rounded down to an even number, and at most m. A number below 0, ten standard
        deviations away, counts as 0.
    """

    depth: Annotated[int, Field(ge=1, le=50)] = 2

    @property
    def language(self) -> DFA:
        """Return the automaton of D_n for n = `depth`; its state is the number of open brackets."""
        return library.bounded_dyck(self.depth)

    @property
    def profiles(self) -> tuple[DFA, ...]:
        """Return for each n in 1, ..., `depth` the language of the balanced strings of depth exactly n."""
        return tuple(library.exact_depth_dyck(depth) for depth in range(1, self.depth + 1))

    @property
    def neighbor(self) -> DFA:
        """Return the language of the balanced strings of depth exactly `depth` + 1."""
        return library.exact_depth_dyck(self.depth + 1)

    def solve(self, inputs: Int64[Tensor, "B T"]) -> Int64[Tensor, "B T"]:
        """Return 1 for balanced prefixes whose number of open brackets stays between 0 and `depth`, else 0."""
        heights = (1 - 2 * inputs).cumsum(dim=1)
        legal = (heights.cummin(dim=1).values >= 0) & (heights.cummax(dim=1).values <= self.depth)
        return (legal & (heights == 0)).to(torch.int64)

    def draw_chi2023(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """Draw strings in D_n as the recursive code of Chi et al. does, but in one pass.

        A stack contains, for each open block, the number of symbols that the block still has to get.
        """
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
            # Blocks of the deepest level contain nothing.
            inner = torch.where(level + 1 < self.depth, torch.minimum(inner, left - 2).clamp(min=0), 0)
            remaining[rows, level] = torch.where(opens, left - 2 - inner, left)
            level = torch.where(opens, level + 1, level - 1)
            remaining[rows, level] = torch.where(opens, inner, remaining[rows, level])
            strings[position] = ~opens
        return strings.T.contiguous()
