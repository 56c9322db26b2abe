"""Interval arithmetic holds what float32 computes of any member, and is not idle."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lengthwise.ops.intervals import Intervals

WIDTH = 6


def shares(x):
    return x.sigmoid()


OPERATIONS = {
    "tanh": (Intervals.tanh, torch.tanh),
    "sigmoid": (Intervals.sigmoid, torch.sigmoid),
    "relu": (Intervals.relu, torch.relu),
    "sum": (lambda x: x + x.tanh(), lambda x: x + x.tanh()),
    "product": (lambda x: x * x.tanh(), lambda x: x * x.tanh()),
    "mixture": (lambda x: x.mixed(x.tanh(), x.sigmoid()), lambda x: (x.tanh() - x) * x.sigmoid() + x),
    "layer norm": (lambda x: x.layer_norm(1e-5), lambda x: nn.functional.layer_norm(x, (WIDTH,))),
    "parts": (lambda x: Intervals.joined(x.split(2)[::-1]), lambda x: torch.cat(x.split(2, -1)[::-1], -1)),
}


def members(center: torch.Tensor, radius: float, count: int, generator: torch.Generator) -> torch.Tensor:
    """Corners and points inside, so far inside that they stay there as float32."""
    offsets = 2 * torch.rand(count, *center.shape, generator=generator, dtype=torch.float64) - 1
    offsets[: count // 2] = offsets[: count // 2].sign()
    return (center + 0.99 * radius * offsets).float()


@pytest.mark.parametrize("name", OPERATIONS)
@given(
    seed=st.integers(0, 10**6),
    radius=st.sampled_from([0.0, 1e-4, 0.1, 2.0]),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
)
def test_holds_what_float32_computes(name: str, seed: int, radius: float, scale: float) -> None:
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(seed)
    center = (scale * torch.randn(3, WIDTH, generator=generator)).double()
    image, values = bounded(Intervals.around(center, radius)), computed(members(center, radius, 64, generator)).double()
    slack = 2.0**-20 * scale if radius == 0 else 0.0  # of float32 points that are not the float64 center
    assert bool(((image.low - slack <= values) & (values <= image.high + slack)).all())


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("low", [-torch.inf, 1.0])
def test_nothing_finite_is_claimed_of_what_is_not_bounded(name: str, low: float) -> None:
    """Float32 may have computed inf - inf there."""
    ends = torch.full((1, WIDTH), low).double(), torch.full((1, WIDTH), torch.inf).double()
    bounded, _ = OPERATIONS[name]
    image = bounded(Intervals(*ends))
    assert not bool((image.low.isfinite() & image.high.isfinite()).any())


@given(seed=st.integers(0, 10**6), count=st.integers(1, 64), radius=st.sampled_from([0.0, 1e-3, 0.5]))
def test_sums_of_products_hold_what_float32_computes_in_any_order(seed: int, count: int, radius: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight, bias = torch.randn(4, count, generator=generator), torch.randn(4, generator=generator)
    center = torch.randn(count, generator=generator).double()
    image = Intervals.around(center, radius).linear(weight, bias)
    points = members(center, radius, 32, generator) if radius else center.float()[None]
    for order in (torch.arange(count), torch.randperm(count, generator=generator)):
        sums = points[:, order[0], None] * weight[:, order[0]]
        for index in order[1:]:
            sums = sums + points[:, index, None] * weight[:, index]
        values = (sums + bias).double()
        slack = 2.0**-24 * float(center.abs().max() * weight.abs().sum(1).max()) if radius == 0 else 0.0
        assert bool(((image.low - slack <= values) & (values <= image.high + slack)).all())
    largest = (center.abs() + radius) @ weight.double().abs().T + bias.abs()
    assert bool((image.radius >= count * 2.0**-24 * largest).all()), "n u sum |w x| (Higham, 2002, 3.1)"


@pytest.mark.parametrize("radius", [0.0, 1e-3])
def test_a_total_holds_sums_whose_parts_are_not_finished_first(radius: float) -> None:
    """2^12 + u h - 2^12 is u h without its last digits, although 2^12 - 2^12 alone would be exact."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(8, 64, generator=generator)
    center, large = torch.rand(64, generator=generator).float(), torch.full((8, 1), 2.0**12)
    one = Intervals.around(torch.ones(1, dtype=torch.float64))
    bias = Intervals.around(-large[:, 0].double())
    image = Intervals.total((one, large), (Intervals.around(center.double(), radius), weight), (bias, None))
    points = members(center[None].double(), radius, 32, generator)[:, 0] if radius else center[None]
    sums = large[:, 0].expand(len(points), -1).clone()
    for index in range(64):
        sums += points[:, index, None] * weight[:, index]
    values = (sums - large[:, 0]).double()
    assert bool(((image.low <= values) & (values <= image.high)).all())


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_ends_are_nearly_reached(name: str) -> None:
    """Of short intervals and many corners some come near; where one input is used twice, within a factor of three."""
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(1, WIDTH, generator=generator).double()
    image, values = bounded(Intervals.around(center, 0.01)), computed(members(center, 0.01, 2000, generator)).double()
    reached = (values.amax(0) - values.amin(0)) / (image.high - image.low)
    assert float(reached.nan_to_num(0).max()) > (0.3 if name in ("layer norm", "mixture", "product") else 0.9)


def test_numbers_that_float32_cannot_square_have_infinite_ends() -> None:
    image = Intervals.around(torch.tensor([1e16], dtype=torch.float64)) + Intervals.around(torch.zeros(1).double())
    assert image.high.tolist() == [float("inf")]
    assert image.low.tolist() == [-float("inf")]


def test_sums_that_float32_makes_without_an_error_have_no_slack() -> None:
    """Multiples of 1/4 and integers; thirds and numbers of 23 binary digits leave a rest, and so do intervals."""
    weight, point = torch.tensor([[3.0, -2.0, 0.5]]), torch.tensor([1.25, 7.0, -3.0], dtype=torch.float64)
    exact = Intervals.around(point).linear(weight, torch.tensor([0.125]))
    assert torch.equal(exact.low, exact.high)
    assert exact.low.tolist() == [3 * 1.25 - 14 - 1.5 + 0.125]
    total = exact + Intervals.around(torch.tensor([2.5], dtype=torch.float64))
    assert torch.equal(total.low, total.high)
    for inexact in (
        Intervals.around(point / 3).linear(weight),
        Intervals.around(point, 0.25).linear(weight),
        Intervals.around(point).linear(weight * 2.0**22),
        Intervals.around(point).linear(weight, torch.tensor([0.1])),
        Intervals.around(point) + Intervals.around(point / 3),
        Intervals.around(point * 2.0**21) + Intervals.around(point),
    ):
        assert bool((inexact.high > inexact.low).all())
