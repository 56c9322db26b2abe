"""A function of two tokens in [0, 1] whose moduli of continuity are known, and the errors of networks for it."""

from fractions import Fraction
from math import pi, sin

import torch

from lengthwise.constructions.looped import LoopedApproximation, evaluate_exactly


def mixed(x: torch.Tensor) -> torch.Tensor:
    """Return each token's bump plus half of the other token's bump."""
    bump = (1 - torch.cos(2 * pi * x)) / 2
    return bump + 0.5 * bump.flip(1)


def token_modulus(t: float) -> float:
    return sin(pi * min(t, 0.5))


def contextual_modulus(t: float) -> float:
    return 0.5 * token_modulus(t)


def sequence_modulus(t: float, p: float = 2.0) -> float:
    """At most this: the 2-norm's, 1.5 sqrt(2) sin(pi t / sqrt 2), by what p-norms of two numbers are to it."""
    return 1.5 * 2 ** (1 / min(p, 2.0)) * token_modulus(t / 2**0.5)


def values_of(made: LoopedApproximation) -> torch.Tensor:
    """The outputs in each cube of the grid of two tokens, in exact arithmetic, which takes long."""
    n = made.grid.num_bins
    centers = [[[Fraction(2 * i + 1, 2 * n)], [Fraction(2 * j + 1, 2 * n)]] for i in range(n) for j in range(n)]
    return torch.from_numpy(evaluate_exactly(made.network, centers).astype(float))


def error(values: torch.Tensor, n: int, p: float, resolution: int = 48) -> float:
    """Definition 3.3: (the integral of the p-th power of the p-norm of the error) ^ (1/p), by midpoints."""
    fine = (torch.arange(resolution, dtype=torch.float64) + 0.5) / resolution
    x = torch.cartesian_prod(fine, fine)[..., None]
    indices = (x[..., 0] * n).floor().long() @ torch.tensor([n, 1])
    return float((mixed(x) - values[indices]).abs().pow(p).sum((1, 2)).mean() ** (1 / p))
