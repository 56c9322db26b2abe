"""Fixed sinusoids: of positions in a string, and of loops."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Time = Literal["index", "fraction"]
"""A loop's number r = 0 ... R - 1, or r / R."""


def position_sinusoids(length: int, width: int) -> Float[Tensor, "T D"]:
    """The encoding of positions t = 0 ... T - 1, for any T.

    PE(t)_{2i} = sin(t / 10000^{2i/D}), PE(t)_{2i+1} = cos(t / 10000^{2i/D}); in float32.

    Example:
        >>> position_sinusoids(2, 3)
        tensor([[0.0000, 1.0000, 0.0000],
                [0.8415, 0.5403, 0.0022]])

    Source: Vaswani et al., "Attention is all you need" (NeurIPS 2017), section 3.5.
    Differs from the source: in nothing; for an odd D the last cosine is left out.
    """
    angles = _angles(length, (width + 1) // 2, 2.0 / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width].float()


def timestep_sinusoids(num_loops: int, width: int = 256, time: Time = "index") -> Float[Tensor, "R F"]:
    """The frequency embedding of loops r = 0 ... R - 1: with F = `width` and f_i = 10000^{-2i/F}, all cos(r f_i), then
    all sin(r f_i); in float32. With time `"fraction"`, r / R stands for r.

    Example:
        >>> timestep_sinusoids(2, 4)
        tensor([[1.0000, 1.0000, 0.0000, 0.0000],
                [0.5403, 0.9999, 0.8415, 0.0100]])
        >>> bool((timestep_sinusoids(2, 4, "fraction") == timestep_sinusoids(200, 4, "fraction")[::100]).all())
        True

    Source: the code of Xu and Sato (2024), which took it from Peebles and Xie, "Scalable diffusion models with
        transformers" (ICCV 2023).
    Differs from the source: in time `"fraction"`. Section 4.2 of the paper writes sines and cosines in turn and D of
        them; its code has 256, whatever D.
    """
    angles = _angles(num_loops, width // 2, 2.0 / width)
    if time == "fraction":
        angles = angles / num_loops
    return torch.cat([angles.cos(), angles.sin()], -1).float()


def _angles(count: int, num_frequencies: int, exponent: float) -> Float[Tensor, "N F"]:
    """n 10000^{-i e} for n = 0 ... N - 1 and i = 0 ... F - 1, in float64: large angles lose digits in float32."""
    frequencies = 10_000.0 ** (-exponent * torch.arange(num_frequencies, dtype=torch.float64))
    return torch.arange(count, dtype=torch.float64)[:, None] * frequencies
