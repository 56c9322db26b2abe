"""Structured strings, which random sampling almost never draws. Nets with high accuracy often fail on these strings."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from jaxtyping import Int64
from torch import Tensor

Family = Callable[[int, int, int, torch.Generator], Int64[Tensor, "B T"]]
"""A function that draws strings from (num_symbols, batch_size, length, generator)."""


def constant(num_symbols: int, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Return constant strings; the symbols take turns from one string of the batch to the next."""
    return (torch.arange(batch_size) % num_symbols)[:, None].expand(-1, length).clone()


def alternating(num_symbols: int, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Draw strings in which two different symbols take turns."""
    first = torch.randint(num_symbols, (batch_size, 1), generator=generator)
    step = torch.randint(1, max(2, num_symbols), (batch_size, 1), generator=generator)
    return (first + step * (torch.arange(length) % 2)) % num_symbols


def periodic(num_symbols: int, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Draw strings that repeat a random word of 3 to 16 symbols."""
    words = torch.randint(num_symbols, (batch_size, 16), generator=generator)
    periods = torch.randint(3, 17, (batch_size, 1), generator=generator)
    return words.gather(1, torch.arange(length) % periods)


def few_runs(num_symbols: int, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Draw strings of at most five runs of equal symbols, with uniformly drawn ends."""
    ends = torch.randint(length + 1, (batch_size, 4, 1), generator=generator)
    run = (torch.arange(length) >= ends).sum(1)
    symbols = torch.randint(num_symbols, (batch_size, 5), generator=generator)
    return symbols.gather(1, run)


def sparse(num_symbols: int, batch_size: int, length: int, generator: torch.Generator) -> Int64[Tensor, "B T"]:
    """Draw strings that repeat one symbol, except at up to four positions."""
    strings = torch.randint(num_symbols, (batch_size, 1), generator=generator).repeat(1, length)
    positions = torch.randint(length, (batch_size, 4), generator=generator)
    others = torch.randint(num_symbols, (batch_size, 4), generator=generator)
    return strings.scatter(1, positions, others)


STRUCTURED: Mapping[str, Family] = MappingProxyType(
    {
        "constant": constant,
        "alternating": alternating,
        "periodic": periodic,
        "few-runs": few_runs,
        "sparse": sparse,
    }
)
"""The families of structured strings, by name."""
