"""Bounds against samples: what float32 computes lies inside, and the bounds are not idle."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.certification.affine import Affine, Inputs
from lengthwise.certification.bounds import invariant_boxes, merge_bounds
from lengthwise.certification.extraction import extract
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models import make_model
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.tasks import make_task

seeds = st.integers(0, 10**6)
widths = st.sampled_from([0.0, 1e-4, 1e-2, 0.3])


def box(center: torch.Tensor, half_width: float) -> Affine:
    slope = half_width * torch.eye(center.shape[-1], dtype=torch.float64).expand(*center.shape, -1)
    return Affine(center, slope, torch.zeros_like(center))


def points_of(center: torch.Tensor, half_width: float, count: int, generator: torch.Generator) -> torch.Tensor:
    """Corners and points inside, in float32."""
    offsets = 2 * torch.rand(count, *center.shape, generator=generator, dtype=torch.float64) - 1
    offsets[: count // 2] = offsets[: count // 2].sign()
    return (center + half_width * offsets).float()


OPERATIONS = {
    "tanh": (Affine.tanh, torch.tanh),
    "gelu": (Affine.gelu, torch.nn.functional.gelu),
    "sigmoid": (Affine.sigmoid, torch.sigmoid),
    "softplus": (Affine.softplus, torch.nn.functional.softplus),
    "rsqrt": (
        lambda x: (x * x + box(torch.ones(6, dtype=torch.float64), 0)).power(-0.5),
        lambda x: (x * x + 1).rsqrt(),
    ),
    "reciprocal": (lambda x: x.sigmoid().power(-1.0), lambda x: 1 / x.sigmoid()),
    "product": (lambda x: x * x.tanh(), lambda x: x * x.tanh()),
    "difference": (lambda x: x.sigmoid() - x, lambda x: x.sigmoid() - x),
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1, keepdim=True)),
    "layer norm": (Affine.layer_norm, lambda x: torch.nn.functional.layer_norm(x, (6,))),
    "own inputs": (lambda x: x.tanh().with_remainder_as_inputs(Inputs(6)).sigmoid(), lambda x: x.tanh().sigmoid()),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(seed=seeds, half_width=widths, scale=st.sampled_from([0.1, 1.0, 4.0]))
def test_holds_what_float32_computes(name: str, seed: int, half_width: float, scale: float) -> None:
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(seed)
    center = (scale * torch.randn(6, generator=generator)).double()
    bound = bounded(box(center, half_width))
    images = computed(points_of(center, half_width, 64, generator)).double()
    # Points off the centre were rounded to float32 on the way in; the centre is exact.
    slack = 1e-6 * (1 + images.abs()) if half_width else 0.0
    assert bool(((images - bound.center).abs() <= bound.radius + slack)[:, bound.radius.isfinite()].all())


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "own inputs"])
def test_small_boxes_have_tight_bounds(name: str) -> None:
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(6, generator=generator).double()
    bound = bounded(box(center, 1e-3))
    jacobian = torch.autograd.functional.jacobian(computed, center)
    exact = 1e-3 * jacobian.abs().sum(-1)
    assert bool((bound.radius <= 1.1 * exact + 2e-5).all())


@given(seeds, st.integers(2, 3), st.sampled_from([0.0, 1e-3, 0.03]))
def test_a_merge_stays_within_its_bounds(seed: int, chunk: int, half_width: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    layer = MergeLayer(d_model=8, num_heads=2, chunk_size=chunk)
    layer.reset_parameters(generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        center = torch.randn(chunk, 8, generator=generator).double()
        parts = []
        for place in range(chunk):
            slope = torch.zeros(1, 8, chunk, 8, dtype=torch.float64)
            slope[0, torch.arange(8), place, torch.arange(8)] = half_width
            parts.append(Affine(center[None, place], slope.flatten(-2), torch.zeros(1, 8, dtype=torch.float64)))
        bound = merge_bounds(layer, parts)
        images = merge_windows(layer, points_of(center, half_width, 64, generator)).double()
        outside = (images - bound.center).abs() - bound.radius
    assert bool((outside <= 1e-5)[:, bound.radius[0].isfinite()].all())
    if half_width == 0:
        assert float(bound.radius.max()) < 1e-2  # rounding alone


def test_a_net_that_is_not_trained_gets_no_boxes() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2)
    assert invariant_boxes(model, extract(model, task.symbols, radius=20.0)) is None


def test_other_variants_are_refused() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2, variant="paper")
    with pytest.raises(ValueError, match="of variant merge only, got a RegularGPT with a PreNormLayer"):
        invariant_boxes(model, extract(model, task.symbols, radius=20.0))
