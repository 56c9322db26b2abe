"""The pairs of strings on which a model that reads two strings is tested."""

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.certification.grids import NUM_LETTERS, NUM_PAIRS, problems_of
from lengthwise.randomness import generator_for


def tested_pairs(num_letters: int, seed: int) -> list[Int64[Tensor, "B T"]]:
    """Problems of two strings of each of a few lengths: unrelated, equal, moved, edited, periodic, of one letter."""
    return [_problems(num_letters, length, generator_for(seed, "tested", length)) for length in NUM_LETTERS]


def _problems(num_letters: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    shape = (NUM_PAIRS, length)
    first, second = (torch.randint(num_letters, shape, generator=generator) for _ in range(2))
    uniform = torch.rand(shape, generator=generator)
    kind, row = torch.arange(NUM_PAIRS) % 8, torch.arange(NUM_PAIRS)
    first[kind == 5] = first[kind == 5].gather(1, (torch.arange(length) % (1 + row[kind == 5, None] % 5)))
    first[kind == 6] = first[kind == 6, :1]
    second[kind == 6] = second[kind == 6, :1]
    second[kind == 7] = first[kind == 7, :1]
    related = torch.stack([first, first.roll(1, 1), torch.where(uniform < 0.8, first, second), first.flip(1)])
    for index, made in enumerate(related, start=1):
        second[kind == index] = made[kind == index]
    return torch.from_numpy(problems_of(first.numpy(), second.numpy()))
