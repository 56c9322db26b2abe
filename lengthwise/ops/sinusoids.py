"""Fixed sinusoidal encodings of positions in a string, and of the loops of a looped model."""

from numbers import Integral
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.ops.shapes import check_axes, check_tensors
from lengthwise.validation import check_choice, check_kind, check_sizes

Time = Literal["index", "fraction"]
"""The time that encodes a loop: the loop's number r = 0 ... R - 1, or the fraction r / R of all R loops."""


def position_sinusoids(length: int, width: int) -> Float[Tensor, "T D"]:
    """Return the encoding of positions t = 0 ... T - 1, for any T.

    For width D, PE(t)_{2i} = sin(t / 10000^{2i/D}) and PE(t)_{2i+1} = cos(t / 10000^{2i/D}), in float32.

    Example:
        >>> position_sinusoids(2, 3)
        tensor([[0.0000, 1.0000, 0.0000],
                [0.8415, 0.5403, 0.0022]])

    Source: Vaswani et al., "Attention is all you need" (NeurIPS 2017), section 3.5.
    Differs from the source: for an odd D, the last cosine is left out.
    """
    check_count("length", length)
    return sinusoids_at(torch.arange(length), width)


def sinusoids_at(positions: Int64[Tensor, " T"], width: int) -> Float[Tensor, "T D"]:
    """Return `position_sinusoids` at any positions.

    Example:
        >>> torch.equal(sinusoids_at(torch.tensor([2, 5]), 4), position_sinusoids(6, 4)[[2, 5]])
        True

    Source: Vaswani et al., "Attention is all you need" (NeurIPS 2017), section 3.5.
    Differs from the source: for an odd D, the last cosine is left out.
    """
    check_tensors(positions=positions)
    check_axes("positions", positions, "T")
    check_sizes(width=width)
    # For an odd width, the cosine of the last angle is cut off.
    angles = _angles(positions, (width + 1) // 2, 2.0 / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width].float()


def distance_sinusoids(length: int, width: int) -> Float[Tensor, "T D"]:
    """Return the encoding of distances n = 0 ... T - 1, in float64.

    For width D and m = 0 ... ceil(D/2) - 1, all sin(n 10000^{-2m/D}) come first, then all cos(n 10000^{-2m/D}).

    Example:
        >>> distance_sinusoids(2, 4).float()
        tensor([[0.0000, 0.0000, 1.0000, 1.0000],
                [0.8415, 0.0100, 0.5403, 0.9999]])

    Source: the code of Dai et al., "Transformer-XL" (ACL 2019).
    Differs from the source: for an odd D, the last cosine is left out.
    """
    angles = position_angles(length, width)
    return torch.cat([angles.sin(), angles.cos()], -1)[:, :width]


def position_angles(length: int, width: int) -> Float[Tensor, "T F"]:
    """Return t 10000^{-2m/D} for width D, positions t = 0 ... T - 1 and m = 0 ... ceil(D/2) - 1, in float64.

    Example:
        >>> position_angles(3, 4)
        tensor([[0.0000, 0.0000],
                [1.0000, 0.0100],
                [2.0000, 0.0200]], dtype=torch.float64)

    Source: Vaswani et al., "Attention is all you need" (NeurIPS 2017), section 3.5.
    Differs from the source: no difference.
    """
    check_count("length", length)
    check_sizes(width=width)
    return _angles(torch.arange(length), (width + 1) // 2, 2.0 / width)


def timestep_sinusoids(num_loops: int, width: int = 256, time: Time = "index") -> Float[Tensor, "R F"]:
    """Return the encoding of loops r = 0 ... R - 1, in float32.

    With F = `width` and f_i = 10000^{-2i/F}, all cos(r f_i) come first, then all sin(r f_i). For an odd F, the result
    has F - 1 columns. If `time` is `"fraction"`, r / R replaces r.

    Example:
        >>> timestep_sinusoids(2, 4)
        tensor([[1.0000, 1.0000, 0.0000, 0.0000],
                [0.5403, 0.9999, 0.8415, 0.0100]])
        >>> bool((timestep_sinusoids(2, 4, "fraction") == timestep_sinusoids(200, 4, "fraction")[::100]).all())
        True

    Source: the code of Xu and Sato (2024), which took it from Peebles and Xie, "Scalable diffusion models with
        transformers" (ICCV 2023).
    Differs from the source: time `"fraction"` is ours, and for an odd F, the last column is left out.
    """
    check_count("num_loops", num_loops)
    check_sizes(width=width)
    check_choice("time", time, get_args(Time))
    angles = _angles(torch.arange(num_loops), width // 2, 2.0 / width)
    if time == "fraction":
        angles = angles / num_loops
    return torch.cat([angles.cos(), angles.sin()], -1).float()


def check_count(argument: str, count: int) -> None:
    """Raise a ValueError, which names the argument, unless a number of rows is a whole number of at least 0."""
    check_kind(argument, count, (Integral, torch.SymInt), "a whole number")  # exports have symbols instead of numbers
    if count < 0:
        raise ValueError(f"{argument}: expected at least 0, got {count}; give the number of rows")


def _angles(numbers: Int64[Tensor, " N"], num_frequencies: int, exponent: float) -> Float[Tensor, "N F"]:
    """Return n 10000^{-i e} for each n of `numbers` and i = 0 ... F - 1, with e = `exponent`.

    The result is float64, because float32 would lose digits of large angles.
    """
    frequencies = 10_000.0 ** (-exponent * torch.arange(num_frequencies, dtype=torch.float64))
    return numbers.double()[:, None] * frequencies
