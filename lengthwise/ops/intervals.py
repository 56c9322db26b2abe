"""Interval arithmetic: values between two ends, sound for the results of float32 arithmetic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

UNIT = 2.0**-23
"""Twice the unit roundoff of float32, a bound on the relative error of one operation of the network."""

SMALLEST = 1e-25
"""The size below which errors count as absolute: float32 loses digits far below it, and at last whole numbers."""

LARGEST = 1e15
"""The largest size about which anything is claimed. The sum of squares of larger numbers may overflow in float32, and
kernels then continue with finite wrong numbers (LayerNorm returns its bias if the variance is infinite)."""

ULPS = 8
"""The largest error, in units, that an elementwise function of PyTorch (tanh, erf, exp, rsqrt) is assumed to have."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """All values between `low` and `high`, number by number.

    Proofs keep the ends in float64, training measures in the model's precision. Every operation returns intervals that
    contain its result for any member: the exact result, and the float32 result in any order of summation. For this the
    ends are moved outwards by twice the largest error of float32. That also covers the rounding of the bounds in
    float64, which is a billion times smaller.

    Numbers that float32 could not square have infinite ends. Results of these have infinite or undefined ends, for
    which no comparison holds, so that no proof can use them.

    Source: Moore, "Interval Analysis" (1966). Differs from the source: ends are moved outwards by an error bound, and
        not by directed rounding.
    """

    low: Float[Tensor, "*N D"]
    high: Float[Tensor, "*N D"]

    @classmethod
    def around(cls, values: Tensor, radius: float = 0.0) -> "Intervals":
        """Return values that are known up to `radius`."""
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
        """Return the intervals with slack for errors of `units` units of `size`, infinite slack above `LARGEST`."""
        # SMALLEST also covers results so small that their error is absolute, not relative.
        slack = torch.where(size < LARGEST, units * UNIT * (size + SMALLEST), torch.inf)
        return Intervals(self.low - slack, self.high + slack)

    def __getitem__(self, index: Any) -> "Intervals":
        return Intervals(self.low[index], self.high[index])

    def split(self, sizes: int | list[int]) -> "list[Intervals]":
        """Return parts of the last axis, of these sizes."""
        return [Intervals(*ends) for ends in zip(*(end.split(sizes, -1) for end in self._ends), strict=True)]

    @staticmethod
    def joined(parts: "Sequence[Intervals]") -> "Intervals":
        """Return the parts one after another along the last axis."""
        return Intervals(*(torch.cat([part._ends[end] for part in parts], -1) for end in (0, 1)))

    def __add__(self, other: "Intervals") -> "Intervals":
        total = Intervals(self.low + other.low, self.high + other.high)
        # The size of the terms, not of the sum: if they cancel, the error of the terms remains.
        size = self.size + other.size
        return total if self.is_sum_exact(size, self, other) else total.rounded(size)

    def __mul__(self, other: "Intervals") -> "Intervals":
        corners = torch.stack([one * another for one in self._ends for another in other._ends])
        # A product is linear in each factor, so its extremes over a box are at corners.
        return Intervals(corners.amin(0), corners.amax(0)).rounded(self.size * other.size)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> "Intervals":
        """Return ``weight @ x + bias``."""
        return self.total((self, weight), *([] if bias is None else [(Intervals.around(bias), None)]))

    @staticmethod
    def total(*products: "tuple[Intervals, Tensor | None]") -> "Intervals":
        """Return the sum of ``weight @ x``, or of x where the weight is None, for any order of the terms.

        This is weaker than a sum of sums that are each rounded: 1e6 - 1e6 + x is x, or x without its last digits.
        """
        center = radius = size = products[0][0].low.new_zeros(())
        # Whatever the order, each term passes through at most one rounding per term. So the error is at most `units`
        # roundoffs of the sum of sizes, and UNIT, twice the roundoff, also covers products of these errors.
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
        """Return whether float32 makes no error in sums, or sums of products, of known numbers, given their size.

        Then all partial sums, in any order, are multiples of one power of two and less than 2^24 times that power, so
        float32 represents each of them exactly.
        """
        digits = 0
        for term in terms:
            if not torch.equal(term.low, term.high) or (own := binary_digits(term.low)) is None:
                return False
            digits += own
        return is_size_exact(size, digits)

    def monotone(self, f: Callable[[Tensor], Tensor]) -> "Intervals":
        """Return the image under an elementwise function of PyTorch that does not fall; undefined for infinite ends.

        At an infinite end, float32 may compute inf - inf, whose tanh is NaN, and no bound on tanh contains NaN.
        """
        # A function that does not fall maps an interval between the images of its ends.
        image = Intervals(f(self.low), f(self.high))
        image, is_known = image.rounded(image.size, ULPS), self.low.isfinite() & self.high.isfinite()
        return Intervals(*(torch.where(is_known, end, torch.nan) for end in image._ends))

    def tanh(self) -> "Intervals":
        return self.monotone(torch.tanh)

    def sigmoid(self) -> "Intervals":
        return self.monotone(torch.sigmoid)

    def relu(self) -> "Intervals":
        """Return max(0, x), which float32 computes exactly, so that it needs no slack."""
        return Intervals(self.low.clamp(min=0), self.high.clamp(min=0))

    def mixed(self, other: "Intervals", share: "Intervals") -> "Intervals":
        """Return (1 - s) x + s y for x in these intervals, y in the others and s in the shares, which are in [0, 1].

        The result does not fall in x and y and is linear in s, so its extremes are at ends.
        """
        # Exact shares are in [0, 1], even if their bounds with slack are not.
        ends = [s.clamp(0, 1) for s in share._ends]
        low = torch.minimum(*((1 - s) * self.low + s * other.low for s in ends))
        high = torch.maximum(*((1 - s) * self.high + s * other.high for s in ends))
        # Kernels differ in the order of operations, as in n + s (h - n). Rounded shares may lie outside of [0, 1].
        return Intervals(low, high).rounded(self.size + other.size, 4 + ULPS)

    def layer_norm(self, epsilon: float) -> "Intervals":
        """Return (x - mean) / sqrt(variance + epsilon) over the last axis."""
        width = self.low.shape[-1]
        center, radius = self.center, self.radius
        # The kernel may subtract after it has scaled, so the rounding error is relative to x, not to its deviation.
        largest = self.size.amax(-1, keepdim=True)
        middle = center - center.mean(-1, keepdim=True)
        # x_i has weight 1 - 1/n in its own deviation, and 1/n in every other. Bounding mean and x apart would be wider.
        spread = (1 - 2 / width) * radius + radius.mean(-1, keepdim=True)
        deviation = Intervals(middle - spread, middle + spread).rounded(largest, width + ULPS)
        # The square of an interval around 0 begins at 0, not at the smaller of its ends' squares.
        least = torch.where(
            (deviation.low <= 0) & (deviation.high >= 0),
            0.0,
            torch.minimum(deviation.low.abs(), deviation.high.abs()),
        )
        variance = Intervals(*((end**2).mean(-1, keepdim=True) for end in (least, deviation.size)))
        variance = variance.rounded(variance.size, width + ULPS)
        # A variance is never negative, but after the slack its lower bound may be.
        low, high = (end.clamp(min=0) + epsilon for end in variance._ends)
        scale = Intervals(high**-0.5, low**-0.5)
        return deviation * scale.rounded(scale.size, ULPS)

    def normed(self, norm: nn.LayerNorm) -> "Intervals":
        """Return the image under a LayerNorm with its weights and biases."""
        weight, bias = (Intervals.around(parameter.to(self.low.dtype)) for parameter in (norm.weight, norm.bias))
        return self.layer_norm(norm.eps) * weight + bias


MAX_DIGITS = 12
"""The largest number of binary digits after the point at which sums are tested for exactness."""


def is_size_exact(size: Tensor, digits: int) -> bool:
    """Return whether float32 makes no error in sums of numbers with these binary digits, given their size."""
    # 2^22 instead of float32's 2^24 leaves space for a second such sum, which may be added before rounding.
    return bool((size * 2.0**digits < 2**22).all())


def binary_digits(numbers: Tensor) -> int | None:
    """Return the number of binary digits after the point that these numbers need, None above `MAX_DIGITS`."""
    for digits in range(MAX_DIGITS + 1):
        scaled = numbers * 2.0**digits
        if torch.equal(scaled, scaled.round()):
            return digits
    return None
