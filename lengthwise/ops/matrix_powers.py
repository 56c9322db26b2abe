"""Products of a vector with the powers of a matrix."""

import torch
from jaxtyping import Float
from torch import Tensor

from lengthwise.ops.shapes import check_shapes
from lengthwise.validation import check_sizes


@check_shapes
def powers_times_by_definition(
    matrices: Float[Tensor, "D P P"], vectors: Float[Tensor, "D P"], count: int
) -> Float[Tensor, "D P T"]:
    """Return A^t v for t = 0 ... count - 1, one after another.

    Example:
        >>> powers_times_by_definition(torch.tensor([[[2.0]]]), torch.ones(1, 1), 3)
        tensor([[[1., 2., 4.]]])
    """
    check_sizes(count=count)
    products = [vectors]
    for _ in range(count - 1):
        products.append((matrices @ products[-1][..., None])[..., 0])
    return torch.stack(products, -1)


@check_shapes
def powers_times(matrices: Float[Tensor, "D P P"], vectors: Float[Tensor, "D P"], count: int) -> Float[Tensor, "D P T"]:
    """Return A^t v for t = 0 ... count - 1; each product of matrices doubles the number of results.

    Raises:
        ValueError: `count` is below 1, or shapes do not match.

    Example:
        >>> powers_times(torch.tensor([[[2.0]]]), torch.ones(1, 1), 5)
        tensor([[[ 1.,  2.,  4.,  8., 16.]]])
    """
    check_sizes(count=count)
    # A^(n + t) v = A^n (A^t v), so one product with A^n doubles the number of results, and log T products suffice.
    products, power = vectors[..., None], matrices
    while products.shape[-1] < count:
        products = torch.cat([products, power @ products[..., : count - products.shape[-1]]], -1)
        power = power @ power if products.shape[-1] < count else power
    return products
