"""Bounds against samples and against attacks: what float32 computes lies inside, and the bounds are not idle."""

import copy
import re
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from last_symbol import last_symbol_net

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.certification.methods.affine import Affine, Inputs
from lengthwise.certification.methods.enclosures import prover as enclosures_module
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.certification.methods.merges import _mixed, merge_bounds, smallest_margin
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.tree import extract_tree
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models import make_model
from lengthwise.models.regular_gpt import RegularGPT
from lengthwise.ops.tree_attention import attend, merge_windows
from lengthwise.tasks import make_task

seeds = st.integers(0, 10**6)
widths = st.sampled_from([0.0, 1e-4, 1e-2, 0.3])


def enclosure(center: torch.Tensor, enclosure_radius: float) -> Affine:
    slope = enclosure_radius * torch.eye(center.shape[-1]).expand(*center.shape, -1)
    return Affine(center, slope, torch.zeros_like(center))


def points_of(center: torch.Tensor, enclosure_radius: float, count: int, generator: torch.Generator) -> torch.Tensor:
    """Corners and points inside, so far inside that they stay there as float32."""
    offsets = 2 * torch.rand(count, *center.shape, generator=generator, dtype=torch.float64) - 1
    offsets[: count // 2] = offsets[: count // 2].sign()
    return (center + 0.99 * enclosure_radius * offsets).float()


def all_inside(bound: Affine, images: torch.Tensor) -> bool:
    inside = (images.double() - bound.center).abs() <= bound.radius
    return bool(inside[:, bound.radius.reshape(inside.shape[1:]).isfinite()].all())


OPERATIONS = {
    "tanh": (Affine.tanh, torch.tanh),
    "gelu": (Affine.gelu, torch.nn.functional.gelu),
    "sigmoid": (Affine.sigmoid, torch.sigmoid),
    "softplus": (Affine.softplus, torch.nn.functional.softplus),
    "relu": (Affine.relu, torch.relu),
    "rsqrt": (
        lambda x: (x * x + enclosure(torch.ones(6, dtype=torch.float64), 0)).power(-0.5),
        lambda x: (x * x + 1).rsqrt(),
    ),
    "reciprocal": (lambda x: x.softplus().power(-1.0), lambda x: 1 / torch.nn.functional.softplus(x)),
    "product": (lambda x: x * x.tanh(), lambda x: x * x.tanh()),
    "difference": (lambda x: x.sigmoid() - x, lambda x: x.sigmoid() - x),
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1, keepdim=True)),
    "squared norm": (Affine.squared_norm, lambda x: x.square().sum(-1, keepdim=True)),
    "layer norm": (Affine.layer_norm, lambda x: torch.nn.functional.layer_norm(x, (6,))),
    "own inputs": (
        lambda x: x.tanh().with_remainder_as_inputs(Inputs(6)).gelu(),
        lambda x: torch.nn.functional.gelu(x.tanh()),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(seed=seeds, enclosure_radius=widths, scale=st.sampled_from([0.1, 1.0, 4.0, 30.0]))
def test_holds_what_float32_computes(name: str, seed: int, enclosure_radius: float, scale: float) -> None:
    """Within the remainder of what the slope says for the inputs that a point stands for, not in the range alone."""
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(seed)
    center = (scale * torch.randn(6, generator=generator)).double()
    bound = bounded(enclosure(center, enclosure_radius))
    points = points_of(center, enclosure_radius, 64, generator)
    inputs = (points.double() - center) / max(enclosure_radius, 1e-300)
    known, own = bound.slope.double().split([6, bound.slope.shape[-1] - 6], -1)
    linear = bound.center + inputs @ known.mT
    allowed = bound.remainder + own.abs().sum(-1)
    finite = allowed.isfinite()
    assert bool(((computed(points).double() - linear).abs() <= allowed)[:, finite].all())


@given(seed=seeds, count=st.integers(1, 64), enclosure_radius=widths)
def test_the_slack_of_a_sum_holds_its_rounding_error(seed: int, count: int, enclosure_radius: float) -> None:
    """n u sum |w_i x_i|, u = 2^-24, holds the error of n products and their sum in any order (Higham, 2002, 3.1)."""
    generator = torch.Generator().manual_seed(seed)
    weight, center = (torch.randn(size, generator=generator).double() for size in ((3, count), (count,)))
    largest = weight.abs() @ (center.abs() + enclosure_radius)
    assert bool((enclosure(center, enclosure_radius).linear(weight).remainder >= count * 2.0**-24 * largest).all())


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "own inputs"])
def test_small_enclosures_have_tight_bounds(name: str) -> None:
    bounded, computed = OPERATIONS[name]
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(6, generator=generator).double()
    bound = bounded(enclosure(center, 1e-3))
    jacobian = torch.autograd.functional.jacobian(computed, center)
    exact = 1e-3 * jacobian.abs().sum(-1)
    assert bool((bound.radius <= 1.1 * exact + 2e-5).all())


@given(seeds, st.integers(2, 4), widths, st.sampled_from([0.1, 3.0, 60.0]))
def test_mixing_by_scores_holds_the_softmax(seed: int, chunk: int, enclosure_radius: float, scale: float) -> None:
    """Of one head of three numbers; scores far apart are where a softmax saturates, and rounds."""
    generator = torch.Generator().manual_seed(seed)
    center = scale * torch.randn(4 * chunk, generator=generator)
    given_enclosure = enclosure(center.double(), enclosure_radius)

    def part(start: int, stop: int) -> Affine:
        chosen = (
            given_enclosure.center[start:stop],
            given_enclosure.slope[start:stop],
            given_enclosure.remainder[start:stop],
        )
        return Affine(*chosen).unflatten((1, stop - start))

    scores = [part(4 * j, 4 * j + 1) for j in range(chunk)]
    values = [part(4 * j + 1, 4 * j + 4) for j in range(chunk)]
    mixed = _mixed(scores, values).flatten()
    points = points_of(center.double(), enclosure_radius, 64, generator).unflatten(1, (chunk, 4))
    weights = points[..., 0].softmax(1)
    assert all_inside(mixed, (weights[..., None] * points[..., 1:]).sum(1))
    # With scores in the place of keys, as the layer computes it.
    keys = [points[:, j, None, :1].expand(-1, -1, 3) / 3**0.5 for j in range(chunk)]
    attended = attend(torch.ones(64, 1, 3), keys, [points[:, j, None, 1:] for j in range(chunk)], torch.zeros(1, chunk))
    slack = 1e-5 * scale * scale  # three rounded products in a score, which these bounds were not told of
    assert bool(((attended.double() - mixed.center).abs() <= mixed.radius + slack)[:, mixed.radius.isfinite()].all())


def drawn_layer(chunk: int, generator: torch.Generator) -> MergeLayer:
    layer = MergeLayer(d_model=8, num_heads=2, chunk_size=chunk)
    layer.reset_parameters(generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return layer.requires_grad_(False)


def enclosures_of_a_window(center: torch.Tensor, enclosure_radius: float) -> list[Affine]:
    chunk, width = center.shape
    parts = []
    for index in range(chunk):
        slope = torch.zeros(1, width, chunk, width)
        slope[0, torch.arange(width), index, torch.arange(width)] = enclosure_radius
        parts.append(Affine(center[None, index], slope.flatten(-2), torch.zeros(1, width, dtype=torch.float64)))
    return parts


@given(seeds, st.integers(2, 3), st.sampled_from([0.0, 1e-3, 0.03]))
def test_a_merge_stays_within_its_bounds(seed: int, chunk: int, enclosure_radius: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    layer = drawn_layer(chunk, generator)
    center = torch.randn(chunk, 8, generator=generator).double()
    bound = merge_bounds(layer, enclosures_of_a_window(center, enclosure_radius))
    images = merge_windows(layer, points_of(center, enclosure_radius, 64, generator))
    inside = (images.double() - bound.center).abs() <= bound.radius
    assert bool(inside[:, bound.radius[0].isfinite()].all())
    if enclosure_radius == 0:
        assert float(bound.radius.max()) < 1e-2  # rounding alone


@pytest.mark.parametrize("chunk", [2, 3])
@pytest.mark.parametrize("enclosure_radius", [1e-3, 0.01])
def test_no_gradient_leads_out_of_the_bounds(chunk: int, enclosure_radius: float) -> None:
    """From the center of the window to where each number is greatest and least, and not a third of the way there."""
    generator = torch.Generator().manual_seed(chunk)
    layer = drawn_layer(chunk, generator)
    center = torch.randn(chunk, 8, generator=generator).double()
    bound = merge_bounds(layer, enclosures_of_a_window(center, enclosure_radius))
    aims = torch.cat([torch.eye(8), -torch.eye(8)]).double()
    exact = layer.double()
    offsets = torch.zeros(16, chunk, 8, dtype=torch.float64, requires_grad=True)
    for _ in range(40):
        reached = (aims * merge_windows(exact, center + enclosure_radius * offsets)).sum()
        (uphill,) = torch.autograd.grad(reached, offsets)
        offsets = (offsets + 0.2 * uphill.sign()).clamp(-1, 1).detach().requires_grad_()
    with torch.no_grad():
        images = merge_windows(layer.float(), (center + 0.999 * enclosure_radius * offsets).float()).double()
        moved = (aims * (images - bound.center)).sum(-1).view(2, 8)
    assert bool((moved <= bound.radius).all())
    assert bool((moved >= bound.radius / 3).all())


def shaken_net(seed: int) -> tuple[RegularGPT, Extraction]:
    """`last_symbol_net` with all weights a little off, so that no state is one of its fixed points."""
    model, generator = last_symbol_net(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    return model, extract_tree(model, ("a", "b"), radius=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_enclosures_hold_what_their_corners_merge_to(seed: int, monkeypatch) -> None:
    """Points in the enclosures of a window, merged by the net in float32, lie in the enclosure it leads to."""
    model, extraction = shaken_net(seed)
    kept, states = [], enclosures_module._states
    monkeypatch.setattr(
        enclosures_module, "_states", lambda enclosures, chosen: kept.append(enclosures) or states(enclosures, chosen)
    )
    evidence = invariant_enclosures(model, extraction).evidence
    assert evidence is not None
    *_, (center, axes, enclosure_radius) = kept
    table, generator = torch.tensor(extraction.fine.table), torch.Generator().manual_seed(seed)
    windows = torch.nonzero(table >= 0).repeat_interleave(64, 0)
    targets = table[windows.unbind(1)]
    offsets = 2 * torch.rand(*windows.shape, 8, generator=generator, dtype=torch.float64) - 1
    offsets[::2] = offsets[::2].sign()
    points = center[windows] + (axes[windows] @ (enclosure_radius[windows] * offsets)[..., None])[..., 0]
    with torch.no_grad():
        images = merge_windows(model.layers[0], points.float())
        logits = model.readout(images)
    offset = (axes[targets].mT @ (images.double() - center[targets])[..., None])[..., 0]
    assert bool((offset.abs() <= enclosure_radius[targets]).all())
    answers = torch.tensor(extraction.fine.outputs)[targets][:, None]
    lead = logits.gather(1, answers) - logits.gather(1, 1 - answers)
    assert float(lead.min()) >= evidence.logit_margin > 0


@given(seeds)
def test_a_bound_is_inside_where_its_corners_are(seed: int) -> None:
    """Against all corners of three inputs and three remainders, of which the furthest along each axis is the extent."""
    generator = torch.Generator().manual_seed(seed)
    center, slope, remainder = (torch.randn(*size, generator=generator) for size in ((1, 3), (1, 3, 3), (1, 3)))
    bound = Affine(center.double(), slope, remainder.abs().double())
    axes = torch.linalg.qr(torch.randn(1, 3, 3, generator=generator, dtype=torch.float64)).Q
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 6)
    corners = bound.center + signs[:, :3] @ slope[0].double().mT + signs[:, 3:] * bound.remainder
    furthest = (corners @ axes[0]).abs().amax(0)
    first = torch.zeros(1, dtype=torch.int64)
    needed = furthest[None] / (1 - enclosures_module.FREE_FRACTION)
    for scale, inside in ((1 - 1e-4, False), (1 + 1e-4, True)):
        enclosures = enclosures_module._Enclosures(torch.zeros_like(bound.center), axes, scale * needed)
        assert enclosures_module._is_inside(enclosures, first, bound) is inside


def test_enclosures_with_other_answers_than_the_machine_prove_nothing() -> None:
    model, extraction = shaken_net(0)
    fine = extraction.fine
    for k in range(extraction.num_given, fine.num_classes):
        outputs = fine.outputs.copy()
        outputs[k] = 1 - outputs[k]
        other = TreeMachine(fine.symbols, fine.leaves, fine.table, outputs)
        assert invariant_enclosures(model, extraction._replace(fine=other)).evidence is None


def test_a_lead_within_the_rounding_of_either_logit_is_no_lead() -> None:
    """One logit is a bias, the other a sum of millions that cancel: ahead by one, whichever of them is the answer."""
    readout = last_symbol_net().readout
    points = torch.zeros(1, 8, dtype=torch.float64)
    states = Affine(points, torch.zeros(1, 8, 0), torch.zeros_like(points))
    for answer in (0, 1):
        with torch.no_grad():
            for parameter in readout.parameters():
                parameter.zero_()
            readout[0].bias.fill_(1.0)
            readout[1].weight[1] = 1e7 * torch.tensor([1.0, -1.0] * 4)
            readout[1].bias[0] = 1.0 - 2.0 * answer
            margin = smallest_margin(readout, states, torch.tensor([answer]))
        assert margin < 0


def test_a_net_that_is_not_trained_gets_no_enclosures() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2)
    assert invariant_enclosures(model, extract_tree(model, task.symbols, radius=20.0)).evidence is None


def test_a_search_keeps_to_its_number_of_merges(monkeypatch) -> None:
    model, extraction = shaken_net(0)
    windows = int((extraction.fine.table >= 0).sum())
    assert invariant_enclosures(model, extraction).num_merges == 2 * windows
    with pytest.raises(ValueError, match=rf"at most {2 * windows - 1} merges .*, got {2 * windows} in 2 rounds"):
        invariant_enclosures(model, extraction, 2 * windows - 1)
    monkeypatch.setattr(enclosures_module, "MIN_ROUNDS", 1)
    for max_merges in (windows, 2 * windows - 1):
        search = invariant_enclosures(model, extraction, max_merges)
        assert search.num_merges == windows
        assert search.evidence is None
        assert search.reason.startswith("merges do not map enclosures of ")


def test_a_net_that_expands_is_told_so_before_anything_is_bounded() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2)
    search = invariant_enclosures(model, extract_tree(model, task.symbols, radius=20.0))
    assert search.num_merges == 0
    grown = re.fullmatch(
        r"enclosures of \d+ classes of radius [\d.]+ grow by a factor of ([\d.]+) at a merge", search.reason
    )
    assert grown is not None
    assert float(grown[1]) > 1


def test_first_order_enclosures_are_those_of_a_linear_map() -> None:
    """Against the definition: what tangents make of the corners of enclosures lies inside, and reaches the sides."""
    model, extraction = shaken_net(1)
    windows = enclosures_module._windows(extraction)
    enclosures, growth = enclosures_module.first_order_enclosures(model.layers[0], extraction, windows)
    assert enclosures is not None
    assert growth <= 1.01
    points = extraction.prototypes.double()
    generator = torch.Generator().manual_seed(0)
    fullest = torch.zeros(len(points))
    for parts, target in zip(windows.parts, windows.targets.tolist(), strict=True):
        exact = copy.deepcopy(model.layers[0]).double()
        jacobian = torch.autograd.functional.jacobian(partial(merge_windows, exact), points[parts])
        signs = torch.randint(0, 2, (256, *parts.shape, 8), generator=generator).double() * 2 - 1
        corners = enclosures.center[parts] + (
            enclosures.axes[parts] @ (enclosures.radius[parts] * signs)[..., None]
        ).squeeze(-1)
        images = merge_windows(exact, points[parts]) + torch.einsum("dce,nce->nd", jacobian, corners - points[parts])
        along = (images - enclosures.center[target]) @ enclosures.axes[target]
        share = (along.abs() / enclosures.radius[target]).max().detach()
        assert float(share) <= 1 + 1e-3
        fullest[target] = fullest[target].maximum(share)
    assert bool((fullest[windows.reached] >= 0.5).all())


def test_a_search_whose_enclosures_diverge_ends() -> None:
    assert not enclosures_module._diverges([1.0, 2.0])
    assert not enclosures_module._diverges([1.0, 2.0, 2.5])
    assert enclosures_module._diverges([1.0, 2.0, 3.5])
    assert not enclosures_module._diverges([1.0, 1.5, 1.6, 1.6])


def test_bounds_that_take_too_much_memory_are_refused(monkeypatch) -> None:
    model, extraction = shaken_net(0)
    monkeypatch.setattr(enclosures_module, "MAX_BYTES", 1_000)
    with pytest.raises(ValueError, match=r"expected merges whose tangents or bounds take no more than 1,000 bytes"):
        invariant_enclosures(model, extraction)


def test_other_variants_are_refused() -> None:
    task = make_task("parity")
    model = make_model("regular-gpt", task, d_model=16, num_heads=2, variant="paper")
    with pytest.raises(ValueError, match="expected a RegularGPT or CodebookGPT with a MergeLayer"):
        invariant_enclosures(model, extract_tree(model, task.symbols, radius=20.0))
