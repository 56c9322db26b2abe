"""A loss for real numbers that are rounded to integers."""

import math
from numbers import Real

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lengthwise.ops.shapes import check_shapes

NEIGHBORS = 3
"""The sum of exp(-s (k - y)^2) over integers k includes the integer nearest to y, and this many integers on each side
of it. With sharpness s, every other integer contributes less than exp(-9 s) of the sum."""


@check_shapes
def integer_loss(
    numbers: Float[Tensor, " N"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"], *, sharpness: float
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy of integer answers, minus its smallest possible value.

    A number y gives each integer k the weight exp(-s (k - y)^2), where s is the sharpness. Let z(y) be the logarithm of
    the sum of these weights over all k. Then

        loss = s (y - t)^2 + z(y) - z(0),

    which is 0 if y is the target t. Numbers within 1/2 of their target cost little. Farther away, the loss grows
    roughly with the square of the distance.

    Raises:
        ValueError: `numbers` is empty, the sharpness is not above 0, or shapes do not match.

    Example:
        >>> targets = torch.tensor([3, 3])
        >>> [round(float(integer_loss(torch.tensor([y, y]), targets, sharpness=4.0)), 2) for y in (3.0, 3.2, 4.0, 5.0)]
        [0.0, 0.05, 4.0, 16.0]

    Source: ours.
    """
    _check(numbers, sharpness)
    offsets = torch.arange(-NEIGHBORS, NEIGHBORS + 1, dtype=numbers.dtype, device=numbers.device)
    # The large terms of z(y) are near y, so few neighbors of y suffice, however far the target is.
    distances = (numbers.detach().round() - numbers)[:, None] + offsets
    log_sums = (-sharpness * distances.square()).logsumexp(1)
    lowest = (-sharpness * offsets.square()).logsumexp(0)
    return (sharpness * (numbers - targets).square() + log_sums).mean() - lowest


def _check(numbers: Tensor, sharpness: float) -> None:
    if not len(numbers):
        raise ValueError(
            "numbers: expected at least 1 number, got 0; give a number, because the mean of an empty list does not "
            "exist"
        )
    check_sharpness(sharpness)


def check_sharpness(sharpness: float) -> None:
    """Raise a ValueError unless the sharpness is a finite number above 0."""
    if not isinstance(sharpness, Real) or not 0 < sharpness < math.inf:
        raise ValueError(f"sharpness: expected a number above 0, got {sharpness!r}; choose 4.0, for example")


@check_shapes
def integer_loss_by_definition(
    numbers: Float[Tensor, " N"], targets: Int64[Tensor, " N"] | Float[Tensor, " N"], *, sharpness: float
) -> Float[Tensor, ""]:
    """Return the loss of `integer_loss`, computed as a cross-entropy over many integers."""
    _check(numbers, sharpness)
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
