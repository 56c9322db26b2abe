"""Explicit random number generators, each named by a seed and a purpose."""

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import torch

from lengthwise.validation import truncate


def generator_for(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a generator that depends only on the seed and the purpose, not on any other draw.

    Seed and purpose are hashed to 32 bits, because torch's CPU generator uses only the low 32 bits of its seed. So only
    2^32 generators exist, and in a run of 100,000 steps about one pair of steps shares a generator.

    Raises:
        ValueError: the seed is not a whole number of at least 0.

    Example:
        >>> first, again = (generator_for(0, "data", 7).initial_seed() for _ in range(2))
        >>> first == again != generator_for(0, "data", 8).initial_seed()
        True
    """
    digest = blake2b(repr((whole_seed(seed), *purpose)).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little"))


def whole_seed(seed: object, maximum: int | None = None) -> int:
    """Return a seed of any whole-number type as an int, so that equal seeds act the same.

    Raises:
        ValueError: the seed is not a whole number, is negative, or is above the maximum.

    Example:
        >>> whole_seed(-1)
        Traceback (most recent call last):
        ValueError: seed: expected a whole number of at least 0, got -1; give a number such as 0
    """
    try:
        number = operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0 or (maximum is not None and number > maximum):
        limits = "of at least 0" if maximum is None else f"from 0 to {maximum:,}"
        raise ValueError(f"seed: expected a whole number {limits}, got {truncate(repr(seed))}; give a number such as 0")
    return number


@contextmanager
def draws_without_generator(device: torch.device, seed: int, *purpose: str | int) -> Iterator[None]:
    """Seed torch's default generators inside the context, so that draws depend only on the seed and the purpose.

    Dropout, for example, draws from these generators. The context works on a CPU or an NVIDIA GPU. Afterwards, torch
    continues as if nothing was drawn inside.
    """
    generators = [torch.default_generator]
    if device.type == "cuda":
        generators.append(torch.cuda.default_generators[device.index or 0])
    states = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(generator_for(seed, "without generator", *purpose).initial_seed())
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
