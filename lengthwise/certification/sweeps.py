"""Points at which kernels are measured, and errors against a reference of higher precision."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lengthwise.ops.intervals import LARGEST, SMALLEST

Array = np.ndarray[Any, np.dtype[Any]]

UNITS = {torch.float32: 2.0**-23, torch.float64: 2.0**-52}
"""The units of errors, each twice the unit roundoff of its type."""

NUM_POINTS = {torch.float32: 6_000, torch.float64: 600}
"""The number of evenly spaced points of a sweep, which also has as many random points, and `EXTREMES`."""

SMALLEST_SIZE = 1e-30
"""The smallest absolute value of a point other than 0. Every bound of a proof covers errors at smaller numbers."""

EXTREMES = (0.0, 1.0, -1.0, 1e3, -1e3, LARGEST, -LARGEST)
"""The numbers that are always among the points."""


class MeasuredError(NamedTuple):
    """The largest error of a kernel at the points of a sweep, and the largest error that proofs assume.

    Both errors are numbers of units (`UNITS`). For kernels that must be exact, both errors are absolute differences.
    """

    measured: float
    assumed: float

    @property
    def ratio(self) -> float:
        """Return the ratio of the measured error to the assumed error; an assumed error of 0 counts as 1 / LARGEST."""
        return self.measured / self.assumed if self.assumed else self.measured * LARGEST


def generator() -> np.random.Generator:
    """Return a random generator with a fixed seed, which draws the same numbers in every sweep."""
    return np.random.default_rng(0)


def wide(tensor: Tensor) -> Array:
    """Return a tensor's numbers in a higher precision; float64 stays float64 if NumPy has no higher precision."""
    numbers: Array = tensor.detach().numpy().astype(np.float64 if tensor.dtype == torch.float32 else np.longdouble)
    return numbers


def error(got: Tensor, exact: Array, size: Array) -> float:
    """Return the largest distance of `got` from `exact`, in rounding units of `size`; `LARGEST` if it is not finite."""
    # `SMALLEST` is in the denominator because bounds add it to each size, and so already allow for the errors of tiny
    # results.
    units = np.abs(wide(got) - exact) / (UNITS[got.dtype] * (size + SMALLEST))
    return float(np.nan_to_num(units, nan=LARGEST, posinf=LARGEST).max())


def difference(got: Tensor, exact: Tensor) -> float:
    """Return the largest distance of `got` from `exact`, for kernels that must be exact; `LARGEST` if not finite."""
    return float((got - exact).abs().nan_to_num(LARGEST, LARGEST).max())


def points(top: float, dtype: torch.dtype) -> Tensor:
    """Return test points in random order: a grid over [-top, top], numbers with random exponents, and `EXTREMES`."""
    drawn, count = generator(), NUM_POINTS[dtype]
    exponents = drawn.uniform(np.log2(SMALLEST_SIZE), np.log2(top), count // 2)
    near_one = drawn.uniform(-4, np.log2(top), count // 2)
    sizes = 2 ** np.concatenate([exponents, near_one])
    signed = sizes * drawn.choice([-1.0, 1.0], len(sizes))
    numbers = np.concatenate([np.linspace(-top, top, count), signed, EXTREMES])
    return torch.from_numpy(drawn.permutation(numbers)).to(dtype)


def layouts(numbers: Tensor) -> Iterator[Tensor]:
    """Yield all numbers contiguously, all numbers with a stride of 2, and the first 153 numbers a few at a time.

    Torch may run a different kernel for each of these layouts.
    """
    yield numbers
    yield numbers.repeat_interleave(2)[::2]
    yield from numbers[: 17 * 9].split(list(range(1, 18)))


class Products(NamedTuple):
    """Vectors x, rows of a matrix W and biases b, with the sums x W^T + b and the sizes |x| |W|^T + |b|."""

    vectors: Tensor
    rows: Tensor
    bias: Tensor
    sums: Array
    sizes: Array

    @property
    def assumed(self) -> float:
        """Return the error that proofs assume for sums of n products and a bias: (n + 2) / 2 units of `sizes`."""
        return (self.vectors.shape[1] + 2) / 2

    def scaled(self, largest: float) -> "Products":
        """Return the products of the same rows with scaled vectors and biases, so that no size exceeds `largest`.

        The vectors and biases are multiplied by a power of two, which does not change their digits.
        """
        factor = 2.0 ** math.floor(math.log2(largest / self.sizes.max()))
        return Products(self.vectors * factor, self.rows, self.bias * factor, self.sums * factor, self.sizes * factor)


def cancelling_products(num_vectors: int, num_rows: int, count: int, dtype: torch.dtype) -> Products:
    """Return sums of products of very different sizes. Half of the products nearly cancel the other half."""
    drawn, half = generator(), count // 2

    def numbers(*shape: int) -> Array:
        return np.asarray(drawn.uniform(-2, 2, shape) * 2.0 ** drawn.integers(-10, 10, shape))

    left = numbers(num_vectors, count)
    right = numbers(num_rows, count)
    factors = drawn.uniform(1, 2, half)
    # The factors of the second half have other digits than the factors of the first half. So rounding errors do not
    # cancel along with the products.
    left[:, half : 2 * half] = -left[:, :half] * factors
    right[:, half : 2 * half] = right[:, :half] / factors
    order = drawn.permutation(count)
    vectors, rows, bias = (
        torch.from_numpy(one).to(dtype) for one in (left[:, order], right[:, order], numbers(num_rows))
    )
    sums, sizes = _correctly_rounded(*(one.double().numpy() for one in (vectors, rows, bias)))
    return Products(vectors, rows, bias, sums, sizes)


def _correctly_rounded(vectors: Array, rows: Array, bias: Array) -> tuple[Array, Array]:
    """Return the sums of products and a bias, and the sums of the absolute values of their terms.

    If all numbers are float32 numbers, the sums of products are correctly rounded. Otherwise, see `_parts`. The sums of
    absolute values are ordinary float64 sums.
    """
    terms = [one[:, None] * another for one in _parts(vectors) for another in _parts(rows)]
    terms.append(np.broadcast_to(bias[:, None], (len(vectors), len(bias), 1)))
    sums = np.array([[math.fsum(row) for row in matrix] for matrix in np.concatenate(terms, -1).tolist()])
    return sums, np.asarray(np.abs(vectors) @ np.abs(rows).T + np.abs(bias))


def _parts(numbers: Array) -> list[Array]:
    """Return the numbers rounded to float32, and the remainders if any remainder is not 0.

    A product of two such parts is exact in float64, unless both are remainders. The error of a product of two
    remainders is at most 2^-101 of the whole product.
    """
    high = numbers.astype(np.float32).astype(np.float64)
    low = numbers - high
    return [high, low] if low.any() else [high]


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x), without overflow for large |x|."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, small) / (1 + small))
