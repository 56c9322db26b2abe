"""The bounds of provers have slack for the worst rounding of each operation, which no kernel produces.

`U` is the largest relative error of one operation. A sum of n products and a bias is off by at most n + 1 operations,
each of which may round up. Affine forms compute their slopes in float32, so these rounding errors count also.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from lengthwise.certification.methods.affine import Affine, Inputs
from lengthwise.certification.methods.choices.prover import _softmax
from lengthwise.certification.methods.enclosures.prover import _Enclosures, _extents, _parts
from lengthwise.certification.methods.merges import _mixed, smallest_margin
from lengthwise.certification.methods.one_hot_states.prover import _lead, _slack, _smallest_margin
from lengthwise.certification.methods.steps import margin
from lengthwise.conventions import IGNORE
from lengthwise.ops.intervals import LARGEST, Intervals

pytestmark = pytest.mark.unchecked

U = 2.0**-24
FUNCTION = 16 * U
"""The assumed error of an elementwise function: eight units of 2^-23."""


def grown(num_operations: int) -> float:
    """The largest relative error of a chain of operations."""
    return (1 + U) ** num_operations - 1


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def line(center: Tensor, radius: Tensor, remainder: Tensor | None = None) -> Affine:
    """Numbers that each move with an input of their own."""
    return Affine(center, torch.diag(radius).float(), torch.zeros_like(center) if remainder is None else remainder)


CASES = [(1.5, 0.0, 1.25, 0.0), (0.0, 3.0, 0.0, 5.0), (1.5, 3.0, -1.25, 5.0)]
"""The center and radius of two numbers: without slopes, without centers, with both."""


@pytest.mark.parametrize(("c", "s", "d", "t"), CASES)
def test_operations_on_two_numbers(c: float, s: float, d: float, t: float) -> None:
    first, second = line(numbers(c), numbers(s)), line(numbers(d), numbers(t))
    needed = {
        # One operation of the net, and one for the slope.
        "sum": (first + second, U * (abs(c + d) + 2 * (s + t))),
        "difference": (first - second, U * (abs(c - d) + 2 * abs(s - t))),
        # The product of the slopes, one operation of the net, and three for the slope.
        "product": (
            first * second,
            s * t + U * (abs(c) + s) * (abs(d) + t) + 3 * U * (abs(c) * t + abs(d) * s),
        ),
        # One operation of the net; the slope's factor and its product round.
        "multiple": (first.scaled(numbers(0.3)), U * 0.3 * (abs(c) + 3 * s)),
        "shift": (first.shifted(0.75), U * (abs(c + 0.75) + s)),
    }
    for name, (bound, slack) in needed.items():
        assert float(bound.remainder) >= slack, name
        assert float(bound.radius) >= float(bound.slope.double().abs().sum() + slack), name


@pytest.mark.parametrize("count", [1, 2, 9, 100])
@pytest.mark.parametrize("is_sloped", [False, True])
def test_operations_on_many_numbers(count: int, is_sloped: bool) -> None:
    size, radius = (0.0, 3.0) if is_sloped else (1.5, 0.0)
    form = line(torch.full((count,), size).double(), torch.full((count,), radius).double())
    weight, bias = torch.full((2, count), 1.25), torch.full((2,), 0.75)
    total = size + radius
    # The net adds products, and then the bias. Slopes add products, of one input each here.
    linear = form.linear(weight, bias).remainder
    assert float(linear.min()) >= grown(count + 1) * (1.25 * total * count + 0.75) + U * 1.25 * radius * count
    assert float(form.linear(weight).remainder.min()) >= grown(count) * 1.25 * total * count
    assert float(form.sum(-1).remainder) >= grown(count - 1) * total * count
    # In the sum of squares, slopes have a copy of the center and a product. Half of the squared radii is in the center.
    squares = form.squared_norm()
    assert float(squares.remainder) >= grown(count) * total**2 * count + count * radius**2 / 2
    assert float(squares.center) == pytest.approx(count * (size**2 + radius**2 / 2), rel=1e-3)


def test_remainders_grow_with_every_operation() -> None:
    """A number that is off by r moves results by r times a derivative, and a product of two such also by r r'."""
    c, r, d, q = 1.5, 0.5, -3.0, 0.25
    first, second = (line(numbers(a), numbers(0), numbers(b)) for a, b in ((c, r), (d, q)))
    weight = torch.tensor([[2.0], [-4.0]])
    needed: list[tuple[Affine, float]] = [
        (first + second, r + q),
        (first - second, r + q),
        (first * second, c * q + abs(d) * r + r * q),
        (first.scaled(numbers(-2.0)), 2 * r),
        (first.shifted(7.0), r),
        (first.linear(weight), 2 * r),
        (first.sum(-1), r),
        (first.relu(), r),
        (first.unflatten((1, 1)).flatten(), r),
        (first.squared_norm(), 2 * c * r + r**2 / 2),
    ]
    for bound, slack in needed:
        assert slack <= float(bound.remainder.min()) < slack + 1e-4
    assert float(first.linear(weight).remainder[1]) >= 4 * r


def test_the_reach_covers_a_float32_sum() -> None:
    slope = torch.rand(3, 1000, generator=torch.Generator().manual_seed(0))
    form = Affine(torch.zeros(3).double(), slope, torch.zeros(3).double())
    assert bool((form.reach >= slope.double().sum(-1) * (1 + grown(999))).all())
    assert bool((line(numbers(1.0), numbers(0.0)).reach > 0).all()), "denormal slopes are lost"


def test_inputs_made_of_remainders_are_not_smaller() -> None:
    remainder = torch.rand(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    inputs = Inputs(50)
    form = line(torch.zeros(50).double(), torch.ones(50).double(), remainder)
    whole = form.with_remainder_as_inputs(inputs)
    known, new = whole.slope.double().split(50, -1)
    assert inputs.count == 100
    assert torch.equal(known.float(), form.slope)
    assert torch.equal(new, torch.diag(new.diagonal()))
    assert bool((new.diagonal() >= remainder).all())
    assert bool((whole.radius >= form.radius).all())
    assert not bool(whole.remainder.any())


@pytest.mark.parametrize("counts", [(5, 2), (2, 5), (4, 4)])
def test_inputs_that_a_form_lacks_do_not_move_it(counts: tuple[int, int]) -> None:
    """Slopes of rows of three numbers, with fewer and with more inputs than numbers."""
    generator = torch.Generator().manual_seed(0)
    slopes = [torch.randn(2, 3, count, generator=generator) for count in counts]
    first, second = (Affine(torch.ones(2, 3).double(), slope, torch.zeros(2, 3).double()) for slope in slopes)
    known = min(counts)
    expected = [slope[..., :known] for slope in slopes]
    longer = slopes[counts.index(max(counts))][..., known:]
    for bound, sign in ((first + second, 1), (first - second, -1), (first * second, 1)):
        assert torch.allclose(bound.slope[..., :known], expected[0] + sign * expected[1])
        is_negated = sign < 0 and counts[1] > counts[0]
        assert torch.allclose(bound.slope[..., known:], -longer if is_negated else longer)


def test_nothing_is_claimed_of_numbers_that_float32_could_not_square() -> None:
    form = line(numbers(0.0), numbers(0.0))
    for size in (LARGEST, math.inf, math.nan):
        assert float(form.rounded(numbers(size)).remainder) == math.inf
    assert float(form.rounded(numbers(LARGEST / 2)).remainder) >= U * LARGEST / 2
    assert float(form.rounded(numbers(0.0)).remainder) >= 2.0**-150, "half of the smallest float32"


FUNCTIONS: dict[str, tuple[Callable[[Affine], Affine], Callable[[Tensor], Tensor]]] = {
    "tanh": (Affine.tanh, torch.tanh),
    "sigmoid": (Affine.sigmoid, torch.sigmoid),
    "softplus": (Affine.softplus, torch.nn.functional.softplus),
    "gelu": (Affine.gelu, torch.nn.functional.gelu),
    "relu": (Affine.relu, torch.relu),
    "power": (lambda x: x.power(-0.5), lambda x: x**-0.5),
    "inverse": (lambda x: x.power(-1.0), lambda x: 1 / x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.1, 0.4, 1.0, 3.0])
def test_functions_stay_within_their_remainders(name: str, radius: float) -> None:
    """All centers and all points at small distances, so that the largest second derivative of each range counts."""
    bounded, f = FUNCTIONS[name]
    is_power = name in ("power", "inverse")
    center = torch.linspace(radius + 1e-3 if is_power else -9, 9, 721, dtype=torch.float64)[:, None]
    bound = bounded(Affine(center, torch.full((721, 1, 1), radius), torch.zeros_like(center)))
    # The largest error of float32 comes on top of the largest distance in real numbers.
    offsets = torch.linspace(-1, 1, 401, dtype=torch.float64)
    values = f(center + float(bound.slope.new_tensor(radius)) * offsets)
    distance = (values - bound.center - bound.slope[..., 0].double() * offsets).abs().amax(1, keepdim=True)
    rounding = 0 if name == "relu" else FUNCTION * values.abs().amax(1, keepdim=True)
    if name == "gelu":  # the error of 1 + erf is relative to x
        rounding = rounding + FUNCTION * center.abs()
    assert bool((bound.remainder >= (distance + rounding) * (1 - 1e-9) - 1e-15).all())


@pytest.mark.parametrize("name", ["power", "inverse"])
def test_powers_of_numbers_that_may_be_negative_have_no_bounds(name: str) -> None:
    for center, radius in ((1.0, 1.0), (1.0, 2.0), (-1.0, 0.0)):
        assert not bool(FUNCTIONS[name][0](line(numbers(center), numbers(radius))).radius.isfinite())


@pytest.mark.parametrize("count", [16, 64, 512])
def test_norms(count: int) -> None:
    """The n - 1 sums may shift the mean of a and -a from 0, and 2 n roundings may change the mean square."""
    form = Affine(
        1.1 * torch.tensor([1.0, -1.0]).double().repeat(count // 2), torch.zeros(count, 0), torch.zeros(count).double()
    )
    off = (count + 8) * U  # n - 1 units from the sums of the mean, 8 from x s - mean s, and 1 from the difference
    mean_square = 1.1**2 * (1 - off) ** 2 * (1 - 2 * count * U)
    worst = 1.1 * (1 + off) / math.sqrt(mean_square + 1e-5) * (1 + 8 * U) * (1 + U)
    bound = form.layer_norm()
    assert worst <= float(bound.center[0] + bound.radius[0])
    assert float(bound.center[1] - bound.radius[1]) <= -worst


@pytest.mark.parametrize(("center", "radius"), [(100.0, 0.0), (-100.0, 0.0), (0.0, 100.0)])
def test_mixtures_of_values_of_equal_scores(center: float, radius: float) -> None:
    """Weights are off relative to the values, and not to their difference, which is 0 here.

    Both exponentials may be too large, and their sum too small; then come a product, a sum and a quotient.
    """
    points = torch.zeros(1, 1, 1).double()
    scores = [Affine(points, torch.zeros(1, 1, 1, 0), points)] * 2
    value = Affine(points + center, torch.full((1, 1, 1, 1), radius), points)
    mixed = _mixed(scores, [value, value])
    assert float(mixed.center) == center
    assert float(mixed.remainder) >= (2 * FUNCTION + 3 * U) * 100


def readout_of(weight: float, width: int) -> nn.Linear:
    """The two logits are the sum of the features and its negative, with a bias of 1 each."""
    linear = nn.Linear(width, 2).requires_grad_(False)
    linear.weight.copy_(torch.tensor([[weight], [-weight]]).expand(2, width))
    linear.bias.fill_(1.0)
    return linear


@pytest.mark.parametrize("count", [1, 8, 100])
@pytest.mark.parametrize("radius", [0.0, 0.25])
def test_margins_of_intervals(count: int, radius: float) -> None:
    """The smallest lead is at an end, and each of the two logits is a sum of n products and a bias."""
    features = Intervals.around(torch.full((1, count), 1.5).double(), radius)
    lead = 2 * 1.25 * count * (1.5 - radius)
    slack = 2 * grown(count + 1) * (1.25 * count * (1.5 + radius) + 1)
    got = margin(readout_of(1.25, count), features, torch.tensor([0]))
    assert lead - 10 * slack - 1e-6 <= got <= lead - slack
    assert margin(readout_of(1.25, count), features, torch.tensor([1])) < -lead


@pytest.mark.parametrize("count", [2, 8, 100])
def test_margins_of_affine_forms(count: int) -> None:
    """After a norm of a and -a, whose weights are one half, the first logit leads by what is left of the slack."""
    norm = nn.LayerNorm(count).requires_grad_(False)
    signs = torch.tensor([1.0, -1.0]).repeat(count // 2)
    linear = nn.Linear(count, 2).requires_grad_(False)
    linear.weight.copy_(torch.stack([signs, -signs]))
    linear.bias.zero_()
    states = Affine(signs.double()[None], torch.zeros(1, count, 0), torch.zeros(1, count).double())
    got = smallest_margin(nn.Sequential(norm, linear), states, torch.tensor([0]))
    exact = 2 * count / math.sqrt(1 + 1e-5)
    assert exact * (1 - 1e-3) < got <= exact - 2 * grown(count) * exact / 2
    states = Affine(signs.double()[None], torch.zeros(1, count, 0), torch.full((1, count), torch.inf).double())
    assert smallest_margin(nn.Sequential(norm, linear), states, torch.tensor([0])) == -math.inf


@pytest.mark.parametrize("count", [2, 16, 64])
def test_extents_along_the_axes_of_an_enclosure(count: int) -> None:
    """All numbers move with one input; turning them adds D products, and the axes round once."""
    turn = torch.linalg.qr(torch.randn(count, count, generator=torch.Generator().manual_seed(0)).double()).Q[None]
    center = torch.full((1, count), 0.5).double()
    first = torch.zeros(1, dtype=torch.int64)
    for axes in (turn, torch.eye(count).double()[None]):
        enclosures = _Enclosures(torch.zeros_like(center), axes, torch.ones_like(center))
        slope = torch.full((1, count, 1), 3.0)
        offset, radius = _extents(enclosures, first, Affine(center, slope, torch.zeros_like(center)))
        assert torch.allclose(offset, center @ axes[0])
        size = 3 * axes[0].abs().sum(0)
        assert bool((radius >= 3 * axes[0].sum(0).abs() + grown(count + 1) * size).all())
        # Remainders have any sign, so each counts by the absolute value of its axis.
        point = Affine(center, torch.zeros(1, count, 0), torch.full((1, count), 3.0).double())
        _, radius = _extents(enclosures, first, point)
        assert bool((radius >= size).all())
        assert bool((radius <= size + 1e-5).all())


def test_sides_of_enclosures_are_rounded_to_float32() -> None:
    turn = torch.linalg.qr(torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(0)).double()).Q
    radius = torch.rand(2, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    enclosures = _Enclosures(torch.zeros(2, 5).double(), turn, radius)
    parts = _parts(enclosures, torch.tensor([[0, 1], [1, 1]]))
    for index, classes in enumerate(([0, 1], [1, 1])):
        sides = turn[classes] * radius[classes][:, None]
        own, other = parts[index].slope.unflatten(-1, (2, 5)).double()[:, :, [index, 1 - index]].unbind(2)
        assert not bool(other.any()), "parts move with inputs of their own"
        assert bool(((own - sides).abs().sum(-1) <= parts[index].remainder).all())
        assert bool((parts[index].remainder >= U * radius[classes].norm(dim=-1, keepdim=True)).all())


@pytest.mark.parametrize("count", [2, 9, 100])
def test_shares_of_equal_logits(count: int) -> None:
    """An exponential and a sum of exponentials are off by a function each, the sum by one for each term more."""
    shares = _softmax(Intervals.around(torch.zeros(1, count).double()))
    assert bool((shares.radius >= (2 * FUNCTION + count * U) / count).all())
    assert bool((shares.center - 1 / count).abs().max() < 1e-6)


def test_shares_are_largest_where_all_other_logits_are_smallest() -> None:
    generator = torch.Generator().manual_seed(0)
    center = 2 * torch.randn(8, 3, generator=generator).double()
    radius = torch.rand(8, 3, generator=generator).double()
    shares = _softmax(Intervals(center - radius, center + radius))
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)[:, None]
    corners = (center + signs * radius).softmax(-1)
    for bound, corner, sign in ((shares.low, corners.amin(0), 1), (shares.high, corners.amax(0), -1)):
        assert bool((sign * (corner - bound) >= 0).all())
        assert bool((sign * (corner - bound) <= 1e-4).all())


def test_leads_of_logits_are_what_both_radii_leave() -> None:
    logits = Affine(numbers(1.0, 4.0, 2.5)[None], torch.zeros(1, 3, 0), numbers(0.125, 0.25, 0.5)[None])
    assert float(_lead(logits)) == 4.0 - 0.25 - (2.5 + 0.5)
    assert _slack(logits, 0.0, 110.0) == 0.75
    # At a temperature all other exponentials must be 0, and each of the two logits rounds when it is divided.
    assert _slack(logits, 1 / 256, 110.0) == pytest.approx((256 * 0.75 - 110) / 256, rel=1e-4)
    assert _slack(logits, 1 / 256, 110.0) < (256 * 0.75 - 110) / 256 - (4.25 + 3.0) * U
    assert _slack(logits, 1 / 128, 110.0) < 0
    states = Affine(*(part.expand(3, *part.shape[1:]) for part in (logits.center, logits.slope, logits.remainder)))
    assert _smallest_margin(states, torch.tensor([1, IGNORE, 1])) == 0.75
    assert _smallest_margin(states, torch.tensor([1, 2, IGNORE])) == 2.5 - 0.5 - (4.0 + 0.25)
    assert _smallest_margin(states, torch.tensor([IGNORE] * 3)) == -math.inf
