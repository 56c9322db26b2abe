"""Affine arithmetic: values known up to a first-order term and a bounded remainder, sound for what float32 computes.

Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004). Differs from the source: the
remainder of a form is one number for each value, and holds the rounding of float32 in any order of summation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float32, Float64
from torch import Tensor

from lengthwise.ops.intervals import LARGEST, SMALLEST, ULPS, UNIT

ROUNDING = 0.501 * UNIT
"""The unit roundoff of float32, and a little for the rounding of float64 and for products of roundings."""


class Inputs:
    """Counts the inputs that the affine forms of one computation share, so that each new one is its own."""

    def __init__(self, count: int) -> None:
        self.count = count


@dataclass(frozen=True, eq=False)
class Affine:
    """All values ``center + slope @ d + e`` with ``|d_p| <= 1`` for every input p and ``|e| <= remainder``.

    Slopes are float32, which halves the time of a computation, the rest is float64. Every operation returns a set that
    holds what the operation makes of any member in real numbers and what float32 arithmetic makes of it, in any order
    of summation: rounding goes into the remainder, that of the network and that of the slopes. Numbers that float32
    could not square have no finite remainder.

    The remainder of a smooth function is Lagrange's, half the largest second derivative times the radius squared, and
    half of that, around another center, where the function bends one way only; that of a product is the product of the
    radii. A remainder grows with the absolute values of every later matrix; `with_remainder_as_inputs` gives each
    number of it an input of its own, which later matrices can cancel. Slopes are padded with zeros: an input that a
    form does not know does not move it.
    """

    center: Float64[Tensor, "*N D"]
    slope: Float32[Tensor, "*N D P"]
    remainder: Float64[Tensor, "*N D"]

    @cached_property
    def reach(self) -> Float64[Tensor, "*N D"]:
        """How far the slope leads from the center: the most costly sum, so that forms of one slope share it."""
        reach: Tensor = self.slope.abs().sum(-1).double()
        return reach * (1 + 2 * self.slope.shape[-1] * ROUNDING) + SMALLEST

    @property
    def radius(self) -> Float64[Tensor, "*N D"]:
        """How far a value can be from the center."""
        return self.reach + self.remainder

    def rounded(self, size: Tensor, units: int = 1) -> "Affine":
        """The same with slack for rounding errors of `units` units of `size`; infinite slack above `LARGEST`."""
        slack = torch.where(size < LARGEST, units * ROUNDING * (size + SMALLEST), torch.inf)
        return self._moved(self.center, self.remainder + slack)

    def _moved(self, center: Tensor, remainder: Tensor) -> "Affine":
        """The same slope around another center."""
        moved = Affine(center, self.slope, remainder)
        if "reach" in vars(self):
            vars(moved)["reach"] = self.reach
        return moved

    def with_remainder_as_inputs(self, inputs: Inputs) -> "Affine":
        """The same set, its remainder in the slope, for forms of one axis D."""
        width, known = self.center.shape[-1], self.slope.shape[-1]
        slope = self.slope.new_zeros(*self.slope.shape[:-1], inputs.count + width)
        slope[..., :known] = self.slope
        remainder = self.remainder * (1 + 2 * ROUNDING)  # as float32 no smaller than it is
        slope[..., inputs.count :].diagonal(dim1=-2, dim2=-1).copy_(remainder)
        inputs.count += width
        whole = Affine(self.center, slope, torch.zeros_like(self.remainder))
        vars(whole)["reach"] = self.reach + remainder
        return whole

    def __add__(self, other: "Affine") -> "Affine":
        own, others = _aligned(self.slope, other.slope)
        total = Affine(self.center + other.center, own + others, self.remainder + other.remainder)
        return total.rounded(total.center.abs() + total.radius + total.reach)

    def __sub__(self, other: "Affine") -> "Affine":
        return self + Affine(-other.center, -other.slope, other.remainder)

    def __mul__(self, other: "Affine") -> "Affine":
        center = self.center * other.center
        own, others = _aligned(self.slope, other.slope)
        slope = torch.addcmul(self.center.float().unsqueeze(-1) * others, other.center.float().unsqueeze(-1), own)
        one, another = self.center.abs(), other.center.abs()
        remainder = one * other.remainder + another * self.remainder + self.radius * other.radius
        of_slopes = 3 * (one * other.reach + another * self.reach)  # two factors, their product and a sum
        return Affine(center, slope, remainder).rounded((one + self.radius) * (another + other.radius) + of_slopes)

    def scaled(self, factor: Tensor) -> "Affine":
        """Each number times one that is known exactly."""
        slope = self.slope * factor.float().unsqueeze(-1)
        scaled = Affine(self.center * factor, slope, self.remainder * factor.abs())
        vars(scaled)["reach"] = self.reach * factor.abs() * (1 + 4 * ROUNDING)
        return scaled.rounded(scaled.center.abs() + scaled.radius + 2 * scaled.reach)

    def shifted(self, by: Tensor | float) -> "Affine":
        """Each number plus one that is known exactly."""
        shifted = self._moved(self.center + by, self.remainder)
        return shifted.rounded(shifted.center.abs() + shifted.radius)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> "Affine":
        """``weight @ x + bias``."""
        slope, weight = weight.float() @ self.slope, weight.double()
        center = self.center @ weight.T
        remainder = self.remainder @ weight.abs().T
        size = (self.center.abs() + self.radius + self.reach) @ weight.abs().T
        if bias is not None:
            center, size = center + bias.double(), size + bias.double().abs()
        return Affine(center, slope, remainder).rounded(size, weight.shape[1] + 2)

    def unflatten(self, sizes: tuple[int, ...]) -> "Affine":
        """The last axis D as several."""
        center, remainder = (a.unflatten(-1, sizes) for a in (self.center, self.remainder))
        return Affine(center, self.slope.unflatten(-2, sizes), remainder)

    def flatten(self) -> "Affine":
        """The last two axes as one."""
        return Affine(self.center.flatten(-2), self.slope.flatten(-3, -2), self.remainder.flatten(-2))

    def sum(self, dim: int) -> "Affine":
        """The sum over an axis of the center, counted from the end (-1 is D), which stays with length 1."""
        center, remainder = (a.sum(dim, keepdim=True) for a in (self.center, self.remainder))
        total = Affine(center, self.slope.sum(dim - 1, keepdim=True), remainder)
        size = (self.center.abs() + self.radius + self.reach).sum(dim, keepdim=True)
        return total.rounded(size, self.center.shape[dim] + 1)

    def squared_norm(self) -> "Affine":
        """The sum of the squares of the last axis, which stays with length 1.

        Of ``|c + v|^2 = |c|^2 + 2 c.v + |v|^2`` the last term is between 0 and the sum of the squares of the radii.
        """
        half = self.radius.square().sum(-1, keepdim=True) / 2
        center = self.center.square().sum(-1, keepdim=True) + half
        slope = 2 * (self.center.float().unsqueeze(-2) @ self.slope)
        remainder = 2 * (self.center.abs() * self.remainder).sum(-1, keepdim=True) + half
        size = (self.center.abs() + self.radius).square().sum(-1, keepdim=True)
        # Kernels of a variance have other orders than a sum's; nor is this the place where bounds are lost.
        return Affine(center, slope, remainder).rounded(size, 2 * self.center.shape[-1] + 4)

    def smooth(
        self,
        f: Callable[[Tensor], Tensor],
        derivative: Callable[[Tensor], Tensor],
        max_curvature: Callable[[Tensor, Tensor], Tensor],
        bend: Callable[[Tensor, Tensor], Tensor | float],
    ) -> "Affine":
        """An elementwise function, given its derivative and, over [low, high], a bound on |f''| and its sign.

        `bend` is 1 where f'' is nowhere negative, -1 where it is nowhere positive, else 0.
        """
        radius = self.radius
        slope_here = derivative(self.center)
        low, high = self.center - radius, self.center + radius
        off = 0.5 * max_curvature(low, high) * radius**2
        side = bend(low, high) * off / 2
        remainder = slope_here.abs() * self.remainder + off - side.abs()
        image = Affine(f(self.center) + side, slope_here.float().unsqueeze(-1) * self.slope, remainder)
        vars(image)["reach"] = slope_here.abs() * self.reach * (1 + 4 * ROUNDING)
        return image.rounded(image.center.abs() + image.radius, 2 * ULPS + 2)

    def tanh(self) -> "Affine":
        """|tanh''| = 2 |t| (1 - t^2), which is at most 4 / (3 sqrt 3) and falls beyond |x| = 0.66."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            t = nearest.tanh()
            return torch.where(nearest < 0.66, 4 / (3 * math.sqrt(3)), 2 * t * (1 - t**2))

        return self.smooth(torch.tanh, lambda x: 1 - x.tanh() ** 2, max_curvature, _towards_zero)

    def gelu(self) -> "Affine":
        """x Phi(x). Of (2 - x^2) phi(x), the second derivative, the size beyond |x| = 1.41 stays below 0.11."""

        def density(x: Tensor) -> Tensor:
            return torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)

        def slope(x: Tensor) -> Tensor:
            return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density(x)

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            return torch.where(nearest < 2, (2 * density(nearest)).clamp(min=0.11), nearest**2 * density(nearest))

        def bend(low: Tensor, high: Tensor) -> Tensor:
            farthest = torch.maximum(low.abs(), high.abs())
            return (farthest <= 1.4142).double() - (_nearest_to_zero(low, high) >= 1.4143).double()

        # 1 + erf cancels for negative x: the error is one of x, not of the small result.
        image = self.smooth(torch.nn.functional.gelu, slope, max_curvature, bend)
        return image.rounded(self.center.abs() + self.radius, 2 * ULPS)

    def relu(self) -> "Affine":
        """max(0, x), which is exact; what is left of the slope is in the remainder."""
        low, high = ((self.center + sign * self.radius).clamp(min=0) for sign in (-1, 1))
        return Affine((low + high) / 2, torch.zeros_like(self.slope), (high - low) / 2)

    def sigmoid(self) -> "Affine":
        """1 / (1 + e^-x). The second derivative's size s (1 - s) |1 - 2 s| is at most 0.0963 and falls beyond 1.32."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            s = (-nearest).sigmoid()  # of the two tails the one that is not 1 in float64
            return torch.where(nearest < 1.32, 0.0963, s * (1 - s) * (1 - 2 * s))

        return self.smooth(torch.sigmoid, lambda x: x.sigmoid() * (-x).sigmoid(), max_curvature, _towards_zero)

    def softplus(self) -> "Affine":
        """log(1 + e^x), whose second derivative, s (1 - s) with s = 1 / (1 + e^-x), falls with |x|."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            return nearest.sigmoid() * (-nearest).sigmoid()

        def f(x: Tensor) -> Tensor:
            return torch.logaddexp(x, torch.zeros_like(x))

        return self.smooth(f, torch.sigmoid, max_curvature, lambda low, high: 1.0)

    def power(self, exponent: float) -> "Affine":
        """x^p for a negative p; all x must be positive, else the bound is infinite."""

        def max_curvature(low: Tensor, _: Tensor) -> Tensor:
            positive = low.clamp(min=1e-300)
            bound = abs(exponent * (exponent - 1)) * positive ** (exponent - 2)
            return torch.where(low > 0, bound, torch.inf)

        return self.smooth(
            lambda x: x**exponent, lambda x: exponent * x ** (exponent - 1), max_curvature, lambda low, high: 1.0
        )

    def layer_norm(self, epsilon: float = 1e-5) -> "Affine":
        """(x - mean) / sqrt(variance + epsilon) over the last axis."""
        size = torch.tensor(1.0 / self.center.shape[-1], dtype=torch.float64)
        # The kernel may subtract after it has scaled, so that rounding is relative to x, not to its deviation.
        largest = (self.center.abs() + self.radius).amax(-1, keepdim=True)
        deviation = (self - self.sum(-1).scaled(size)).rounded(largest, 2 * ULPS)
        variance = deviation.squared_norm().scaled(size)
        return deviation * variance.shifted(epsilon).power(-0.5)


def _nearest_to_zero(low: Tensor, high: Tensor) -> Tensor:
    """The smallest |x| for x in [low, high]."""
    return torch.where((low <= 0) & (high >= 0), 0.0, torch.minimum(low.abs(), high.abs()))


def _towards_zero(low: Tensor, high: Tensor) -> Tensor:
    """The sign of f'' for an f that bends towards its tangent at zero, as tanh: -1 for x > 0, 1 for x < 0."""
    return (high <= 0).double() - (low >= 0).double()


def _padded(slope: Tensor, count: int) -> Tensor:
    missing = count - slope.shape[-1]
    return torch.nn.functional.pad(slope, (0, missing)) if missing else slope


def _aligned(one: Tensor, another: Tensor) -> tuple[Tensor, Tensor]:
    count = max(one.shape[-1], another.shape[-1])
    return _padded(one, count), _padded(another, count)
