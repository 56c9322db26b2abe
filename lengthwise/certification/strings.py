"""The strings on which a model is tested before anything is certified."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.randomness import generator_for
from lengthwise.tasks.base import SymbolTask

TESTED_LENGTHS = (40, 500, 10_000)
NUM_STRINGS = 1_000


def tested_strings(task: SymbolTask, length: int, num_strings: int, seed: int) -> Int64[Tensor, "B T"] | None:
    """Up to two fifths structured strings, of all families alike, each once, and for the rest samples of the task.

    Where the task has no strings of this length they have a symbol less or more; None where these do not exist either.
    """
    legal = [n for n in (length, length - 1, length + 1) if task.is_legal_length(n)]
    if not legal:
        return None
    of_a_family = num_strings * 2 // 5 // len(STRUCTURED)
    structured = torch.cat(
        [
            draw(len(task.symbols), of_a_family, legal[0], generator_for(seed, "tested", family, length))
            for family, draw in STRUCTURED.items()
        ]
    ).unique(dim=0)
    sampled = task.sample(num_strings - len(structured), legal[0], generator_for(seed, "tested", length))
    return torch.cat([sampled.inputs, structured])
