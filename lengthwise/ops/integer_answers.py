"""The loss of real numbers that stand for integers."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

NEIGHBORS = 3
"""Integers beyond this many neighbors on each side are left out: their share is below exp(-9 s)."""


def integer_loss(
    numbers: Float[Tensor, " N"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"], *, sharpness: float
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy, less its minimum, if y answers k in proportion to exp(-s (k - y)^2).

    With z(y) = log of the sum over all integers k of exp(-s (k - y)^2),

        loss = s (y - t)^2 + z(y) - z(0),

    which is 0 if y is the target t. Numbers within 1/2 of their target cost little. Farther numbers cost about in
    proportion to their distance.

    Example:
        >>> targets = torch.tensor([3, 3])
        >>> [round(float(integer_loss(torch.tensor([y, y]), targets, sharpness=4.0)), 2) for y in (3.0, 3.2, 4.0, 5.0)]
        [0.0, 0.05, 4.0, 16.0]

    Source: ours.
    """
    offsets = torch.arange(-NEIGHBORS, NEIGHBORS + 1, dtype=numbers.dtype, device=numbers.device)
    # The large terms of z(y) are near y, so few neighbors of y suffice, however far the target is.
    distances = (numbers.detach().round() - numbers)[:, None] + offsets
    log_sums = (-sharpness * distances.square()).logsumexp(1)
    lowest = (-sharpness * offsets.square()).logsumexp(0)
    return (sharpness * (numbers - targets).square() + log_sums).mean() - lowest


def integer_loss_by_definition(
    numbers: Float[Tensor, " N"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"], *, sharpness: float
) -> Float[Tensor, ""]:
    """Return the same, by the cross-entropy over many integers."""
    low, high = int(numbers.min()) - 20, int(numbers.max()) + 20
    low, high = min(low, int(targets.min())), max(high, int(targets.max()))
    integers = torch.arange(low, high + 1, dtype=numbers.dtype, device=numbers.device)
    entropies = [
        torch.nn.functional.cross_entropy(
            -sharpness * (integers - values[:, None]).square(), (targets - integers[0]).long(), reduction="none"
        )
        for values in (numbers, targets.to(numbers.dtype))
    ]
    return (entropies[0] - entropies[1]).mean()
