"""Interval arithmetic, with ends that are sound for float32 arithmetic."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lengthwise.ops.shapes import check_broadcast, check_shape, check_tensors
from lengthwise.validation import check_kind, narrow, truncate

UNIT = 2.0**-23
"""Twice the unit roundoff of float32. The unit roundoff bounds the relative error of one float32 operation."""

SMALLEST = 1e-25
"""The absolute value below which a number's rounding error counts as absolute instead of relative. Numbers far below
this value lose digits in float32, and even smaller numbers become 0."""

LARGEST = 1e15
"""The largest absolute value for which intervals have finite ends. The sum of squares of larger numbers may overflow in
float32, and kernels may then return finite but wrong numbers (LayerNorm returns its bias if the variance is
infinite)."""

ULPS = 8
"""The largest relative error, in multiples of `UNIT`, that proofs assume for an elementwise function of PyTorch (tanh,
erf, exp, rsqrt)."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """A tensor of intervals, which contains all values between `low` and `high`, elementwise.

    Proofs keep the ends in float64. Training only estimates how intervals grow, so it keeps the ends in the model's
    precision. Every operation returns intervals that contain its result for all values in the given intervals: the
    exact result, and the float32 result for any order of summation. For this, the ends are moved outwards by twice the
    largest error of float32. The factor 2 also covers the rounding of the ends in float64, which is far smaller.

    Results above `LARGEST` have infinite ends. Operations on intervals with infinite ends return intervals with an
    infinite or NaN end. No comparison that a proof needs is true for an infinite or NaN end, so no proof can use these
    intervals.

    Source: Moore, "Interval Analysis" (1966).
    Differs from the source: ends are moved outwards by an error bound instead of directed rounding.
    """

    low: Float[Tensor, "*N D"]
    high: Float[Tensor, "*N D"]

    def __post_init__(self) -> None:
        check_tensors(low=self.low, high=self.high)
        check_shape("high", self.high, self.low.shape, "give both ends of every interval")
        # low <= high is not checked. A kernel may be off by its last digit, so it may swap the images of two nearly
        # equal ends, until `rounded` moves them apart. Each method that applies a function calls `rounded` afterwards.

    @classmethod
    def around(cls, values: Tensor, radius: float = 0.0) -> "Intervals":
        """Return the interval [value - `radius`, value + `radius`] around each value."""
        check_tensors(values=values)
        if not isinstance(radius, Real) or not radius >= 0:
            raise ValueError(
                f"radius: expected a number of at least 0, got {radius!r}; give half the width of the interval"
            )
        return cls(values - radius, values + radius)

    @property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self.low, self.high

    def _check_fits(self, name: str, other: object) -> None:
        check_kind(name, other, Intervals, "Intervals")
        check_broadcast(name, narrow(other, Intervals).low, "the first Intervals", self.low)

    @property
    def center(self) -> Float[Tensor, "*N D"]:
        return (self.low + self.high) / 2

    @property
    def radius(self) -> Float[Tensor, "*N D"]:
        return (self.high - self.low) / 2

    @property
    def size(self) -> Float[Tensor, "*N D"]:
        """Return the largest absolute value in each interval."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def rounded(self, size: Tensor, units: int = 1) -> "Intervals":
        """Widen the intervals by `units` times `UNIT` times `size`; sizes of `LARGEST` or more give infinite ends."""
        # SMALLEST covers results that are so small that their error is absolute, not relative.
        slack = torch.where(size < LARGEST, units * UNIT * (size + SMALLEST), torch.inf)
        return Intervals(self.low - slack, self.high + slack)

    def __getitem__(self, index: Any) -> "Intervals":
        return Intervals(self.low[index], self.high[index])

    def split(self, sizes: int | list[int]) -> "list[Intervals]":
        """Split the last axis into parts of the given sizes."""
        return [Intervals(*ends) for ends in zip(*(end.split(sizes, -1) for end in self._ends), strict=True)]

    @staticmethod
    def joined(parts: "Sequence[Intervals]") -> "Intervals":
        """Concatenate several tensors of intervals along the last axis."""
        _check_parts(parts)
        return Intervals(*(torch.cat([part._ends[end] for part in parts], -1) for end in (0, 1)))

    @staticmethod
    def stacked(parts: "Sequence[Intervals]") -> "Intervals":
        """Stack several tensors of intervals along a new first axis."""
        _check_parts(parts)
        return Intervals(*(torch.stack([part._ends[end] for part in parts]) for end in (0, 1)))

    def __add__(self, other: "Intervals") -> "Intervals":
        self._check_fits("other", other)
        total = Intervals(self.low + other.low, self.high + other.high)
        # The slack depends on the size of the terms, not of the sum: if terms cancel, their errors remain.
        size = self.size + other.size
        return total if self.is_sum_exact(size, self, other) else total.rounded(size)

    def __mul__(self, other: "Intervals") -> "Intervals":
        self._check_fits("other", other)
        corners = torch.stack([one * another for one in self._ends for another in other._ends])
        # A product is linear in each factor, so its extremes over a pair of intervals are at their ends.
        return Intervals(corners.amin(0), corners.amax(0)).rounded(self.size * other.size)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> "Intervals":
        """Return intervals that contain ``weight @ x + bias`` for all x in these intervals."""
        check_tensors(weight=weight)
        if weight.ndim != 2 or weight.shape[1] != self.low.shape[-1]:
            got = list(weight.shape)
            raise ValueError(
                f"weight: expected shape [_, {self.low.shape[-1]}], got {got}; give one column for each interval"
            )
        return self.total((self, weight), *([] if bias is None else [(Intervals.around(bias), None)]))

    @staticmethod
    def total(*products: "tuple[Intervals, Tensor | None]") -> "Intervals":
        """Return bounds on the sum of ``weight @ x`` over all pairs (x, weight), for any order of summation.

        A pair (x, None) contributes x. The bounds may be wider than bounds on a sum that is rounded term by term in one
        order. For example, 1e6 - 1e6 + x may be x, or x without its last digits, depending on the order.
        """
        center = radius = size = products[0][0].low.new_zeros(())
        # In any order, the number of roundings that a term passes through is at most the number of terms. So the error
        # is at most the sum of sizes times `units` unit roundoffs. UNIT is twice the roundoff, which also covers the
        # products of these errors.
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
        """Return whether float32 makes no error in a sum, or in a sum of products, of exactly known numbers.

        `size` is the sum of the terms' absolute values. If the result is True, all partial sums, in any order, are
        multiples of one power of two and less than 2^24 times this power. So float32 represents each partial sum
        exactly.
        """
        digits = 0
        for term in terms:
            if not torch.equal(term.low, term.high) or (own := binary_digits(term.low)) is None:
                return False
            digits += own
        return is_size_exact(size, digits)

    def monotone(self, f: Callable[[Tensor], Tensor]) -> "Intervals":
        """Return the intervals' image under a nondecreasing elementwise function of PyTorch; infinite ends become NaN.

        If an end is infinite, the number in the interval may be NaN in float32, for example after inf - inf. The tanh
        of NaN is also NaN, which no finite bound contains.
        """
        # A nondecreasing function maps an interval between the images of its ends.
        image = Intervals(f(self.low), f(self.high))
        image = image.rounded(image.size, ULPS)
        is_known = self.low.isfinite() & self.high.isfinite()
        return Intervals(*(torch.where(is_known, end, torch.nan) for end in image._ends))

    def tanh(self) -> "Intervals":
        return self.monotone(torch.tanh)

    def sigmoid(self) -> "Intervals":
        return self.monotone(torch.sigmoid)

    def relu(self) -> "Intervals":
        """Return the intervals of max(0, x); their ends are not widened, because float32 computes max(0, x) exactly."""
        return Intervals(self.low.clamp(min=0), self.high.clamp(min=0))

    def mixed(self, other: "Intervals", share: "Intervals") -> "Intervals":
        """Return (1 - s) x + s y for x in these intervals, y in `other` and s in `share`, with all s in [0, 1].

        The result is nondecreasing in x and y and linear in s, so its extremes are at the ends of the intervals.
        """
        self._check_fits("other", other)
        self._check_fits("share", share)
        # Exact shares are in [0, 1], even if the ends with slack are not.
        ends = [s.clamp(0, 1) for s in share._ends]
        low = torch.minimum(*((1 - s) * self.low + s * other.low for s in ends))
        high = torch.maximum(*((1 - s) * self.high + s * other.high for s in ends))
        # The slack covers other orders of operations, as in x + s (y - x), and rounded shares outside of [0, 1].
        return Intervals(low, high).rounded(self.size + other.size, 4 + ULPS)

    def layer_norm(self, epsilon: float) -> "Intervals":
        """Return (x - mean) / sqrt(variance + epsilon) over the last axis."""
        width = self.low.shape[-1]
        center, radius = self.center, self.radius
        # A kernel may scale x before it subtracts the mean. So the rounding error is relative to x, not to x - mean.
        largest = self.size.amax(-1, keepdim=True)
        middle = center - center.mean(-1, keepdim=True)
        # x_i has weight 1 - 1/n in its own deviation, and -1/n in all others. Separate bounds on x and mean would be
        # wider.
        spread = (1 - 2 / width) * radius + radius.mean(-1, keepdim=True)
        deviation = Intervals(middle - spread, middle + spread).rounded(largest, width + ULPS)
        # The smallest square in an interval around 0 is 0, not the square of an end.
        least = torch.where(
            (deviation.low <= 0) & (deviation.high >= 0),
            0.0,
            torch.minimum(deviation.low.abs(), deviation.high.abs()),
        )
        variance = Intervals(*((end**2).mean(-1, keepdim=True) for end in (least, deviation.size)))
        variance = variance.rounded(variance.size, width + ULPS)
        # A variance is never negative, but its lower bound may be negative after the slack is subtracted.
        low, high = (end.clamp(min=0) + epsilon for end in variance._ends)
        scale = Intervals(high**-0.5, low**-0.5)
        return deviation * scale.rounded(scale.size, ULPS)

    def normed(self, norm: nn.LayerNorm) -> "Intervals":
        """Return the image of the intervals under a LayerNorm, including the LayerNorm's weights and biases."""
        weight, bias = (Intervals.around(parameter.to(self.low.dtype)) for parameter in (norm.weight, norm.bias))
        return self.layer_norm(norm.eps) * weight + bias


def _check_parts(parts: "Sequence[Intervals]") -> None:
    """Raise a ValueError unless there is at least one tensor of intervals, and nothing else."""
    if not parts or not all(isinstance(part, Intervals) for part in parts):
        got = truncate(repr(parts))
        raise ValueError(f"parts: expected a list of one or more Intervals, got {got}; put Intervals into a list")


MAX_DIGITS = 12
"""The largest number of binary digits after the point for which sums are tested for exactness."""


def is_size_exact(size: Tensor, digits: int) -> bool:
    """Return whether float32 makes no error in sums of numbers with `digits` binary digits after the point.

    `size` is the sum of the numbers' absolute values.
    """
    # The bound is 2^22 instead of float32's 2^24, because another sum of this kind may be added before rounding.
    return bool((size * 2.0**digits < 2**22).all())


def binary_digits(numbers: Tensor) -> int | None:
    """Return how many binary digits after the point these numbers need, or None for more than `MAX_DIGITS` digits."""
    for digits in range(MAX_DIGITS + 1):
        scaled = numbers * 2.0**digits
        if torch.equal(scaled, scaled.round()):
            return digits
    return None
