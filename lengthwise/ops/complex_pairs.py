"""Complex numbers as pairs of real numbers, for exported graphs: their file formats have no complex numbers."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.ops.shapes import check_broadcast, check_tensors


def times_pairs(a: Float[Tensor, "*N 2"], x: Float[Tensor, "*M 2"]) -> Float[Tensor, "*K 2"]:
    """Return the products of complex numbers that are given as pairs of real numbers.

    Example:
        >>> times_pairs(torch.tensor([0.0, 1.0]), torch.tensor([[1.0, 2.0]]))
        tensor([[-2.,  1.]])
    """
    for name, pairs in (("a", a), ("x", x)):
        check_tensors(**{name: pairs})
        if not pairs.ndim or pairs.shape[-1] != 2:
            raise ValueError(f"{name}: expected pairs [..., 2], got shape {list(pairs.shape)}; give pairs of numbers")
    if not torch.compiler.is_exporting():  # in an export, sizes may be symbols instead of numbers
        check_broadcast("x", x, "a", a)
    real = a[..., 0] * x[..., 0] - a[..., 1] * x[..., 1]
    imaginary = a[..., 0] * x[..., 1] + a[..., 1] * x[..., 0]
    return torch.stack([real, imaginary], -1)
