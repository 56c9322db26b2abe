"""Interval arithmetic: values known between two ends, sound for what float32 computes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

UNIT = 2.0**-23
"""Twice the unit roundoff of float32: what one operation of the network may be wrong by, relative to its result."""

SMALLEST = 1e-25
"""Numbers of this size are rounded no finer: far below it float32 has no digits left, and then nothing but zero."""

LARGEST = 1e15
"""Of larger numbers nothing is claimed: their squares, added up, may leave float32's range, and kernels then go on with
finite numbers that are wrong (a variance that is infinite makes LayerNorm return its bias)."""

ULPS = 8
"""The largest error, in units, that an elementwise function of PyTorch (tanh, erf, exp, rsqrt) is taken to have."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """All values between `low` and `high`, number by number.

    For proofs the ends are held in float64; training measures with those of a model's own precision. Every operation
    returns intervals that hold what the operation makes of any member in real numbers and what float32 arithmetic makes
    of it, in any order of summation: the ends are moved outwards by twice the error that float32 can make, which covers
    the rounding of bounds in float64, a billion times smaller. Numbers that float32 could not square have infinite
    ends, and what is made of these has infinite ends or ends that are no numbers, which no comparison holds for.

    Source: Moore, "Interval Analysis" (1966). Differs from the source: ends are moved outwards by an error bound, and
        not by directed rounding.
    """

    low: Float[Tensor, "*N D"]
    high: Float[Tensor, "*N D"]

    @classmethod
    def around(cls, values: Tensor, radius: float = 0.0) -> "Intervals":
        """Values that are known up to `radius`."""
        return cls(values - radius, values + radius)

    @property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self.low, self.high

    @property
    def center(self) -> Float[Tensor, "*N D"]:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Float[Tensor, "*N D"]:
        return (self.high - self.low) / 2

    @property
    def size(self) -> Float[Tensor, "*N D"]:
        """The largest absolute values."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def rounded(self, size: Tensor, units: int = 1) -> "Intervals":
        """The same with slack for rounding errors of `units` units of `size`; infinite slack above `LARGEST`."""
        slack = torch.where(size < LARGEST, units * UNIT * (size + SMALLEST), torch.inf)
        return Intervals(self.low - slack, self.high + slack)

    def __getitem__(self, index: Any) -> "Intervals":
        return Intervals(self.low[index], self.high[index])

    def split(self, sizes: int | list[int]) -> "list[Intervals]":
        """Parts of the last axis, of these sizes."""
        return [Intervals(*ends) for ends in zip(*(end.split(sizes, -1) for end in self._ends), strict=True)]

    @staticmethod
    def joined(parts: "Sequence[Intervals]") -> "Intervals":
        """One after another along the last axis."""
        return Intervals(*(torch.cat([part._ends[end] for part in parts], -1) for end in (0, 1)))

    def __add__(self, other: "Intervals") -> "Intervals":
        total = Intervals(self.low + other.low, self.high + other.high)
        size = self.size + other.size
        return total if self.is_sum_exact(size, self, other) else total.rounded(size)

    def __mul__(self, other: "Intervals") -> "Intervals":
        corners = torch.stack([one * another for one in self._ends for another in other._ends])
        return Intervals(corners.amin(0), corners.amax(0)).rounded(self.size * other.size)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> "Intervals":
        """``weight @ x + bias``."""
        return self.total((self, weight), *([] if bias is None else [(Intervals.around(bias), None)]))

    @staticmethod
    def total(*products: "tuple[Intervals, Tensor | None]") -> "Intervals":
        """The sum of ``weight @ x``, or of x where there is no weight, of which any terms may be added first.

        That is less known than a sum of sums that are each rounded: 1e6 - 1e6 + x is x, or x without its last digits.
        """
        center = radius = size = products[0][0].low.new_zeros(())
        terms, units = [], max(2, len(products))
        for values, weight in products:
            terms.append(values)
            one = values.center, values.radius, values.size
            if weight is not None:
                weight = weight.to(values.low.dtype)
                terms.append(Intervals.around(weight))
                one = one[0] @ weight.T, one[1] @ weight.abs().T, one[2] @ weight.abs().T
                units += weight.shape[1]
            center = center + one[0]
            radius = radius + one[1]
            size = size + one[2]
        image = Intervals(center - radius, center + radius)
        return image if Intervals.is_sum_exact(size, *terms) else image.rounded(size, units)

    @staticmethod
    def is_sum_exact(size: Tensor, *terms: "Intervals") -> bool:
        """Whether float32 makes no error in sums, or sums of products, of known numbers, given bounds on their size.

        All partial sums, in any order, are then multiples of one power of two, and fewer than 2^24 times that.
        """
        digits = 0
        for term in terms:
            if not torch.equal(term.low, term.high) or (own := binary_digits(term.low)) is None:
                return False
            digits += own
        return is_size_exact(size, digits)

    def monotone(self, f: Callable[[Tensor], Tensor]) -> "Intervals":
        """An elementwise function of PyTorch that does not fall; of infinite ends it makes none.

        Where an end is infinite float32 may compute inf - inf, whose tanh is no number, and no bound on tanh holds it.
        """
        image = Intervals(f(self.low), f(self.high))
        image, is_known = image.rounded(image.size, ULPS), self.low.isfinite() & self.high.isfinite()
        return Intervals(*(torch.where(is_known, end, torch.nan) for end in image._ends))

    def tanh(self) -> "Intervals":
        return self.monotone(torch.tanh)

    def sigmoid(self) -> "Intervals":
        return self.monotone(torch.sigmoid)

    def relu(self) -> "Intervals":
        """max(0, x), which is exact."""
        return Intervals(self.low.clamp(min=0), self.high.clamp(min=0))

    def mixed(self, other: "Intervals", share: "Intervals") -> "Intervals":
        """(1 - s) x + s y for x in these intervals, y in the others and shares s, all of which are in [0, 1].

        It does not fall in x and y and is linear in s, so that its extremes are at ends.
        """
        ends = [s.clamp(0, 1) for s in share._ends]
        low = torch.minimum(*((1 - s) * self.low + s * other.low for s in ends))
        high = torch.maximum(*((1 - s) * self.high + s * other.high for s in ends))
        # Kernels differ in the order of operations, as in n + s (h - n); shares that float32 rounds may leave [0, 1].
        return Intervals(low, high).rounded(self.size + other.size, 4 + ULPS)

    def layer_norm(self, epsilon: float) -> "Intervals":
        """(x - mean) / sqrt(variance + epsilon) over the last axis."""
        width = self.low.shape[-1]
        center, radius = self.center, self.radius
        # The kernel may subtract after it has scaled, so that rounding is relative to x, not to its deviation.
        largest = self.size.amax(-1, keepdim=True)
        middle = center - center.mean(-1, keepdim=True)
        # x_i has weight 1 - 1/n in its own deviation, and 1/n in every other.
        spread = (1 - 2 / width) * radius + radius.mean(-1, keepdim=True)
        deviation = Intervals(middle - spread, middle + spread).rounded(largest, width + ULPS)
        least = torch.where(
            (deviation.low <= 0) & (deviation.high >= 0),
            0.0,
            torch.minimum(deviation.low.abs(), deviation.high.abs()),
        )
        variance = Intervals(*((end**2).mean(-1, keepdim=True) for end in (least, deviation.size)))
        variance = variance.rounded(variance.size, width + ULPS)
        low, high = (end.clamp(min=0) + epsilon for end in variance._ends)
        scale = Intervals(high**-0.5, low**-0.5)
        return deviation * scale.rounded(scale.size, ULPS)

    def normed(self, norm: nn.LayerNorm) -> "Intervals":
        """What a LayerNorm makes of them, with its weights and biases."""
        weight, bias = (Intervals.around(parameter.to(self.low.dtype)) for parameter in (norm.weight, norm.bias))
        return self.layer_norm(norm.eps) * weight + bias


MAX_DIGITS = 12


def is_size_exact(size: Tensor, digits: int) -> bool:
    """Whether float32 makes no error in sums of numbers with these binary digits, given bounds on their size."""
    return bool((size * 2.0**digits < 2**22).all())  # another such sum may be added before it is rounded


def binary_digits(numbers: Tensor) -> int | None:
    """The number of binary digits that these numbers have after the point, None for more than `MAX_DIGITS`."""
    for digits in range(MAX_DIGITS + 1):
        scaled = numbers * 2.0**digits
        if torch.equal(scaled, scaled.round()):
            return digits
    return None
