"""The base class of recognition tasks whose strings are drawn by published code, or as near misses."""

from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.tasks.regular.recognition import OUT, RecognitionTask


class Chi2023Task(RecognitionTask):
    """Recognition of a language for which the code of Chi et al. has a sampler.

    `sampling` names the way in which strings are drawn:

    - ``"near-miss"``: as in every `RecognitionTask`.
    - ``"chi2023"``: by the samplers of Chi et al., so that the tables of their paper can be measured again. Strings are
      not shuffled: the first half is in the language and the second half is outside. An odd batch has one more string
      outside. Strings outside are uniform.

    Source: Chi et al., "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length
        Extrapolation" (arXiv 2305.03796), the code of section 5.
    Differs from the source: only in the ways that each task documents.
    """

    sampling: Literal["near-miss", "chi2023"] = "near-miss"

    @abstractmethod
    def draw_chi2023(self, count: int, length: int, generator: torch.Generator) -> Int64[Tensor, "N T"]:
        """Draw strings of the language as the code of Chi et al. does."""

    def _draw_batch(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        draw = {"near-miss": super()._draw_batch, "chi2023": self._draw_batch_chi2023}[self.sampling]
        return draw(batch_size, length, generator)

    def _draw_batch_chi2023(self, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
        if self.is_balanced_length(length):
            num_inside = batch_size // 2
        else:
            num_inside = batch_size if self._has_inside(length) else 0
        outside = torch.full((batch_size - num_inside,), OUT)
        return torch.cat([self.draw_chi2023(num_inside, length, generator), self._draw(outside, length, generator)])
