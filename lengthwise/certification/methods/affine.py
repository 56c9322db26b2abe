"""Affine arithmetic: sets of values with a linear term and a bounded remainder, sound for float32 computations.

A set of this kind is called an affine form. Its linear term depends on inputs: unknown numbers in [-1, 1], which
several forms may share.

Source: de Figueiredo & Stolfi, "Affine arithmetic: concepts and applications" (2004).
Differs from the source: an affine form has one remainder for each value, which covers float32 rounding in any order of
    summation.
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
"""The unit roundoff of float32, 2^-24, enlarged by 0.2 % to cover float64 rounding and products of rounding errors."""


class Inputs:
    """A counter of the inputs of one computation, which gives the next index to each new input.

    An input is an unknown number in [-1, 1], called a noise symbol in affine arithmetic.
    """

    def __init__(self, count: int) -> None:
        self.count = count


@dataclass(frozen=True, eq=False)
class Affine:
    """All values ``center + slope @ d + e`` with ``|d_p| <= 1`` for every input p and ``|e| <= remainder``.

    Slopes are float32, which halves the computing time; centers and remainders are float64. Each operation returns a
    set that contains two results for each of the values: the result in real numbers, and the float32 result in any
    order of summation. The remainder covers the rounding of the net and the rounding of the slopes. The remainder is
    infinite for numbers whose squares may overflow in float32.

    The radius of a number is its largest distance from the center. A smooth function adds Lagrange's remainder: half
    the largest second derivative, times the squared radius. If the function is convex or concave within the radius, a
    shifted center halves this remainder. A product adds the product of the radii to its remainder. A later matrix
    multiplies the remainder by the absolute values of its entries, so remainders never cancel.
    `with_remainder_as_inputs` turns each number of the remainder into an input. Terms of the same input can cancel in
    later matrices. If two forms have different numbers of inputs, the shorter slope is padded with zeros: a form does
    not depend on an input that it lacks.

    Example:
        >>> x = Affine(torch.zeros(1).double(), torch.ones(1, 1), torch.zeros(1).double())  # all numbers in [-1, 1]
        >>> float((x - x).radius) < 1e-6  # intervals would give [-2, 2]
        True
    """

    center: Float64[Tensor, "*N D"]
    slope: Float32[Tensor, "*N D P"]
    remainder: Float64[Tensor, "*N D"]

    @cached_property
    def reach(self) -> Float64[Tensor, "*N D"]:
        """An upper bound on |slope @ d| for |d_p| <= 1: the sum of |slope|, or a bound that an operation stored."""
        reach: Tensor = self.slope.abs().sum(-1).double()
        # The float32 sum of P numbers may be too small by P roundings, or lose denormal numbers. So twice as many
        # roundings and SMALLEST are added.
        return reach * (1 + 2 * self.slope.shape[-1] * ROUNDING) + SMALLEST

    @property
    def radius(self) -> Float64[Tensor, "*N D"]:
        """The largest distance of a value from the center."""
        return self.reach + self.remainder

    def rounded(self, size: Tensor, units: int = 1) -> "Affine":
        """Return the form with a remainder that covers `units` more roundings of numbers up to `size`.

        If `size` is `LARGEST` or more, the remainder is infinite.
        """
        # No comparison with NaN holds, so a size that is NaN also gets infinite slack.
        slack = torch.where(size < LARGEST, units * ROUNDING * (size + SMALLEST), torch.inf)
        return self._moved(self.center, self.remainder + slack)

    def _moved(self, center: Tensor, remainder: Tensor) -> "Affine":
        """Return a form with the same slope, and another center and remainder."""
        moved = Affine(center, self.slope, remainder)
        if "reach" in vars(self):
            vars(moved)["reach"] = self.reach
        return moved

    def with_remainder_as_inputs(self, inputs: Inputs) -> "Affine":
        """Return a form with new inputs in place of the remainder, one for each index of axis D.

        The new form contains all values of this form.
        """
        width, known = self.center.shape[-1], self.slope.shape[-1]
        slope = self.slope.new_zeros(*self.slope.shape[:-1], inputs.count + width)
        slope[..., :known] = self.slope
        remainder = self.remainder * (1 + 2 * ROUNDING)  # so that its float32 copy is not smaller than the remainder
        # Each number of the remainder gets a new input d. Then |d| <= 1 gives the same range as |e| <= remainder.
        slope[..., inputs.count :].diagonal(dim1=-2, dim2=-1).copy_(remainder)
        inputs.count += width
        # The new reach follows from the old reach, so no sum over all inputs is needed.
        whole = Affine(self.center, slope, torch.zeros_like(self.remainder))
        vars(whole)["reach"] = self.reach + remainder
        return whole

    def __add__(self, other: "Affine") -> "Affine":
        own_slope, other_slope = _aligned(self.slope, other.slope)
        total = Affine(self.center + other.center, own_slope + other_slope, self.remainder + other.remainder)
        # The net rounds one sum of size |center| + radius. Each slope is also a rounded sum. The sizes of the slopes
        # add up to `reach`.
        return total.rounded(total.center.abs() + total.radius + total.reach)

    def __sub__(self, other: "Affine") -> "Affine":
        # A change of sign rounds nothing, so a difference rounds like a sum.
        return self + Affine(-other.center, -other.slope, other.remainder)

    def __mul__(self, other: "Affine") -> "Affine":
        center = self.center * other.center
        own_slope, other_slope = _aligned(self.slope, other.slope)
        factor, other_factor = (form.center.float().unsqueeze(-1) for form in (self, other))
        slope = torch.addcmul(factor * other_slope, other_factor, own_slope)
        size, other_size = self.center.abs(), other.center.abs()
        # With centers c, c' and deviations v, v': (c + v)(c' + v') = c c' + c v' + c' v + v v'. The new slope contains
        # the linear terms of c v' and c' v. The new remainder contains their remainders, and the product of the radii,
        # which bounds |v v'|.
        remainder = size * other.remainder + other_size * self.remainder + self.radius * other.radius
        slope_size = 3 * (size * other.reach + other_size * self.reach)  # three roundings a term: factor, product, sum
        return Affine(center, slope, remainder).rounded((size + self.radius) * (other_size + other.radius) + slope_size)

    def scaled(self, factor: Tensor) -> "Affine":
        """Return the form of ``factor * x``, where x has the values of this form; `factor` has no error."""
        # The slope is rounded twice: the factor is rounded to float32, and then the product. So two roundings of the
        # reach are added.
        slope = self.slope * factor.float().unsqueeze(-1)
        scaled = Affine(self.center * factor, slope, self.remainder * factor.abs())
        # The scaled reach replaces a sum over all inputs. 4 ROUNDING cover the two roundings of each slope.
        vars(scaled)["reach"] = self.reach * factor.abs() * (1 + 4 * ROUNDING)
        return scaled.rounded(scaled.center.abs() + scaled.radius + 2 * scaled.reach)

    def shifted(self, by: Tensor | float) -> "Affine":
        """Return the form of ``x + by``, where x has the values of this form; `by` has no error."""
        shifted = self._moved(self.center + by, self.remainder)  # the slope stays, so only the net rounds
        return shifted.rounded(shifted.center.abs() + shifted.radius)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> "Affine":
        """Return the form of ``weight @ x + bias``, where x has the values of this form."""
        # A sum of D products and a bias rounds at most D + 2 times, in any order. The size contains `reach`
        # twice: as a part of the radius, for the net's own sum, and once more for the slopes' float32 product.
        slope, weight = weight.float() @ self.slope, weight.double()
        center = self.center @ weight.T
        remainder = self.remainder @ weight.abs().T
        size = (self.center.abs() + self.radius + self.reach) @ weight.abs().T
        if bias is not None:
            center, size = center + bias.double(), size + bias.double().abs()
        return Affine(center, slope, remainder).rounded(size, weight.shape[1] + 2)

    def unflatten(self, sizes: tuple[int, ...]) -> "Affine":
        """Return the form with its last axis D split into several axes."""
        center, remainder = (a.unflatten(-1, sizes) for a in (self.center, self.remainder))
        return Affine(center, self.slope.unflatten(-2, sizes), remainder)

    def flatten(self) -> "Affine":
        """Return the form with its last two axes joined."""
        return Affine(self.center.flatten(-2), self.slope.flatten(-3, -2), self.remainder.flatten(-2))

    def sum(self, dim: int) -> "Affine":
        """Return the form of the sum over axis `dim` < 0 of the center; the result keeps this axis, with length 1."""
        center, remainder = (a.sum(dim, keepdim=True) for a in (self.center, self.remainder))
        total = Affine(center, self.slope.sum(dim - 1, keepdim=True), remainder)
        # As in `linear`, `reach` is in the size twice, because the slopes are summed in float32 as well.
        size = (self.center.abs() + self.radius + self.reach).sum(dim, keepdim=True)
        return total.rounded(size, self.center.shape[dim] + 1)

    def squared_norm(self) -> "Affine":
        """Return the sum of squares over the last axis; this axis is kept with length 1.

        Let c be the center and v the deviation from it. In ``|c + v|^2 = |c|^2 + 2 c.v + |v|^2``, the last term is
        between 0 and the sum of the squared radii of v. So half of that sum is added to the center, and the other half
        to the remainder.
        """
        half = self.radius.square().sum(-1, keepdim=True) / 2
        center = self.center.square().sum(-1, keepdim=True) + half
        slope = 2 * (self.center.float().unsqueeze(-2) @ self.slope)
        remainder = 2 * (self.center.abs() * self.remainder).sum(-1, keepdim=True) + half
        size = (self.center.abs() + self.radius).square().sum(-1, keepdim=True)
        # A kernel for the variance may round more often than a sum, so the count of roundings is doubled. This costs
        # little: other steps widen bounds far more.
        return Affine(center, slope, remainder).rounded(size, 2 * self.center.shape[-1] + 4)

    def smooth(
        self,
        f: Callable[[Tensor], Tensor],
        derivative: Callable[[Tensor], Tensor],
        max_curvature: Callable[[Tensor, Tensor], Tensor],
        bend: Callable[[Tensor, Tensor], Tensor | float],
    ) -> "Affine":
        """Return the form of f(x), where x has the values of this form, given f' and two facts about f''.

        The function f is applied to each number, and f' is its derivative.

        `max_curvature` returns a bound on |f''| over the interval [low, high]. `bend` returns 1 if f'' is nowhere
        negative in this interval, -1 if f'' is nowhere positive in it, and otherwise 0.
        """
        radius = self.radius
        slope_here = derivative(self.center)
        low, high = self.center - radius, self.center + radius
        # Taylor: f(c + v) = f(c) + f'(c) v + f''(x) v^2 / 2 for some x between c and c + v, so the size of the last
        # term is at most `off`. If f'' has one sign, the term is in [0, off] or [-off, 0], within off / 2 of a shifted
        # center.
        off = 0.5 * max_curvature(low, high) * radius**2
        side = bend(low, high) * off / 2
        remainder = slope_here.abs() * self.remainder + off - side.abs()
        # The new slope is f'(c) times the slope. The old remainder is not part of the slope, so |f'(c)| multiplies it.
        image = Affine(f(self.center) + side, slope_here.float().unsqueeze(-1) * self.slope, remainder)
        vars(image)["reach"] = slope_here.abs() * self.reach * (1 + 4 * ROUNDING)
        # Torch's f may err by `ULPS` times `UNIT`, which are 2 `ULPS` roundings. The slope rounds twice: the derivative
        # is rounded to float32, and then the product.
        return image.rounded(image.center.abs() + image.radius, 2 * ULPS + 2)

    def tanh(self) -> "Affine":
        """Return t = tanh x; |tanh''| = 2 |t| (1 - t^2) is at most 4 / (3 sqrt 3), and falls beyond |x| = 0.66."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            t = nearest.tanh()
            return torch.where(nearest < 0.66, 4 / (3 * math.sqrt(3)), 2 * t * (1 - t**2))

        return self.smooth(torch.tanh, lambda x: 1 - x.tanh() ** 2, max_curvature, _towards_zero)

    def gelu(self) -> "Affine":
        """Return x Phi(x), with the standard normal distribution function Phi and its density phi.

        The second derivative is (2 - x^2) phi(x). Beyond |x| = 1.41, its absolute value is smaller than 0.11.
        """

        def density(x: Tensor) -> Tensor:
            return torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)

        def slope(x: Tensor) -> Tensor:
            return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density(x)

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            # |2 - x^2| is at most 2 below |x| = 2, and at most x^2 beyond, where x^2 phi(x) falls.
            nearest = _nearest_to_zero(low, high)
            return torch.where(nearest < 2, (2 * density(nearest)).clamp(min=0.11), nearest**2 * density(nearest))

        def bend(low: Tensor, high: Tensor) -> Tensor:
            # The sign changes at sqrt 2. Between 1.4142 and 1.4143, neither sign is claimed.
            farthest = torch.maximum(low.abs(), high.abs())
            return (farthest <= 1.4142).double() - (_nearest_to_zero(low, high) >= 1.4143).double()

        # 1 + erf cancels for negative x, so the error is relative to x and not to the small result.
        image = self.smooth(torch.nn.functional.gelu, slope, max_curvature, bend)
        return image.rounded(self.center.abs() + self.radius, 2 * ULPS)

    def tanh_gelu(self) -> "Affine":
        """Return x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3).

        With t = tanh u, the second derivative is (1 - t^2) (u' + x u'' / 2 - x t u'^2). Its size is largest at 0, where
        it is sqrt(2 / pi) < 0.798.
        """
        scale, cubic = math.sqrt(2 / math.pi), 0.044715

        def f(x: Tensor) -> Tensor:
            return 0.5 * x * (1 + torch.tanh(scale * (x + cubic * x**3)))

        def slope(x: Tensor) -> Tensor:
            t = torch.tanh(scale * (x + cubic * x**3))
            return 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * scale * (1 + 3 * cubic * x**2)

        image = self.smooth(f, slope, lambda low, _: torch.full_like(low, 0.798), lambda low, high: 0.0)
        # 1 + tanh cancels for negative x, so the error is relative to x and not to the small result.
        return image.rounded(self.center.abs() + self.radius, 2 * ULPS)

    def relu(self) -> "Affine":
        """Return max(0, x) as an affine form without slope, whose remainder covers the whole range of max(0, x).

        Float32 computes max(0, x) without error, because each value is a copy of x or 0.
        """
        # Both ends of the range are mapped, because max(0, x) never falls.
        low, high = ((self.center + sign * self.radius).clamp(min=0) for sign in (-1, 1))
        return Affine((low + high) / 2, torch.zeros_like(self.slope), (high - low) / 2)

    def sigmoid(self) -> "Affine":
        """Return s = 1 / (1 + e^-x); |s''| = s (1 - s) |1 - 2 s| is at most 0.0963, and falls beyond |x| = 1.32."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            s = (-nearest).sigmoid()  # the smaller of s and 1 - s, because the larger may round to 1
            return torch.where(nearest < 1.32, 0.0963, s * (1 - s) * (1 - 2 * s))

        return self.smooth(torch.sigmoid, lambda x: x.sigmoid() * (-x).sigmoid(), max_curvature, _towards_zero)

    def softplus(self) -> "Affine":
        """Return log(1 + e^x). Its second derivative is s (1 - s) with s = 1 / (1 + e^-x), and falls with |x|."""

        def max_curvature(low: Tensor, high: Tensor) -> Tensor:
            nearest = _nearest_to_zero(low, high)
            return nearest.sigmoid() * (-nearest).sigmoid()

        def f(x: Tensor) -> Tensor:
            return torch.logaddexp(x, torch.zeros_like(x))

        return self.smooth(f, torch.sigmoid, max_curvature, lambda low, high: 1.0)

    def power(self, exponent: float) -> "Affine":
        """Return x^p for a negative exponent p; unless all x are positive, the remainder is infinite or NaN."""

        def max_curvature(low: Tensor, _: Tensor) -> Tensor:
            # |f''| = |p (p - 1)| x^(p - 2) falls with x, so it is largest at the low end.
            # Without positive numbers there is no bound. The clamp keeps NaN out of the branch that `where` drops.
            positive = low.clamp(min=1e-300)
            bound = abs(exponent * (exponent - 1)) * positive ** (exponent - 2)
            return torch.where(low > 0, bound, torch.inf)

        return self.smooth(
            lambda x: x**exponent, lambda x: exponent * x ** (exponent - 1), max_curvature, lambda low, high: 1.0
        )

    def layer_norm(self, epsilon: float = 1e-5) -> "Affine":
        """Return (x - mean) / sqrt(variance + epsilon) over the last axis."""
        size = torch.tensor(1.0 / self.center.shape[-1], dtype=torch.float64)
        # The kernel may scale before it subtracts. Then rounding is relative to x, and not to x - mean.
        largest = (self.center.abs() + self.radius).amax(-1, keepdim=True)
        # This is a difference of forms, because x and its mean share inputs. Intervals would count the shared part
        # twice.
        deviation = (self - self.sum(-1).scaled(size)).rounded(largest, 2 * ULPS)
        # If the bounds allow a variance plus epsilon of 0 or less, the power is infinite or NaN. Then no comparison
        # holds, so no proof succeeds.
        variance = deviation.squared_norm().scaled(size)
        return deviation * variance.shifted(epsilon).power(-0.5)


def _nearest_to_zero(low: Tensor, high: Tensor) -> Tensor:
    """Return the smallest |x| for x in [low, high]."""
    return torch.where((low <= 0) & (high >= 0), 0.0, torch.minimum(low.abs(), high.abs()))


def _towards_zero(low: Tensor, high: Tensor) -> Tensor:
    """Return the sign of f'' on [low, high] for f like tanh: -1 if all x >= 0, 1 if all x <= 0, and otherwise 0."""
    return (high <= 0).double() - (low >= 0).double()


def _padded(slope: Tensor, count: int) -> Tensor:
    missing = count - slope.shape[-1]
    return torch.nn.functional.pad(slope, (0, missing)) if missing else slope


def _aligned(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    count = max(first.shape[-1], second.shape[-1])
    return _padded(first, count), _padded(second, count)
