"""Complex numbers as pairs of real numbers, for exported graphs: their file formats have no complex numbers."""

import torch
from jaxtyping import Float
from torch import Tensor


def times_pairs(a: Float[Tensor, "*N 2"], x: Float[Tensor, "*M 2"]) -> Float[Tensor, "*K 2"]:
    """Return the products of complex numbers that are given as pairs of real numbers.

    Example:
        >>> times_pairs(torch.tensor([0.0, 1.0]), torch.tensor([[1.0, 2.0]]))
        tensor([[-2.,  1.]])
    """
    real = a[..., 0] * x[..., 0] - a[..., 1] * x[..., 1]
    imaginary = a[..., 0] * x[..., 1] + a[..., 1] * x[..., 0]
    return torch.stack([real, imaginary], -1)
