"""The separate checker's bounds hold what torch computes."""

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from last_symbol import LastSymbol

from lengthwise.certification import checker
from lengthwise.certification.checker import Form, between, total
from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models.base import RecurrentModel, make_model
from lengthwise.ops.tree_attention import merge_windows
from lengthwise.validation import dump_named

seeds = st.integers(0, 10**6)


dtypes = st.sampled_from([torch.float32, torch.float64])


def offsets_from(generator: torch.Generator, count: int, *shape: int) -> torch.Tensor:
    """Half of them are corners, the others are drawn uniformly."""
    offsets = 2 * torch.rand(count, *shape, generator=generator, dtype=torch.float64) - 1
    offsets[: count // 2] = offsets[: count // 2].sign()
    return offsets


def weights_of(module: torch.nn.Module) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


@pytest.mark.parametrize("kind", ["gru", "lstm", "rnn", "rnn-relu"])
@given(
    seed=seeds,
    factor=st.sampled_from([0.3, 1.0, 4.0]),
    radius=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    layers=st.integers(1, 2),
    dtype=dtypes,
)
@settings(max_examples=15)
@np.errstate(all="ignore")
def test_steps_stay_within_its_bounds(
    kind: str, seed: int, factor: float, radius: float, layers: int, dtype: torch.dtype
) -> None:
    name, _, activation = kind.partition("-")
    config = {"activation": activation or "tanh"} if name == "rnn" else {"num_layers": layers}
    model = make_model(name, LastSymbol(), seed=seed, d_model=6, **config).to(dtype)
    assert isinstance(model, RecurrentModel)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= factor
        centers = next(iter(model.states(torch.randint(2, (4, 5), generator=generator))))[:, -1].double()
        points = (centers + 0.99 * radius * offsets_from(generator, 32, *centers.shape)).to(dtype)
        slack = 1e-5 * (1 + centers.abs().max())
        states = between(*((centers + sign * (radius + slack)).numpy() for sign in (-1, 1)))
        content = dump_named(model.name, model.config)
        for symbol in range(2):
            bounds = checker.step(net(name, content, weights_of(model)), states, symbol)
            _, after = model.step(torch.full((128,), symbol), points.flatten(0, 1))
            assert_inside(bounds, after.unflatten(0, (32, 4)).double().numpy())


@given(
    seed=seeds,
    chunk=st.integers(2, 3),
    radius=st.sampled_from([0.0, 1e-3, 0.03, 0.3]),
    dtype=dtypes,
)
def test_merges_stay_within_its_bounds(seed: int, chunk: int, radius: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(seed)
    layer = MergeLayer(d_model=8, num_heads=2, chunk_size=chunk)
    layer.reset_parameters(generator)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
        layer.to(dtype)
        center = torch.randn(chunk, 8, generator=generator).double()
        images = merge_windows(layer, (center + radius * offsets_from(generator, 64, chunk, 8)).to(dtype))
    weights = {f"layers.0.{name}": array for name, array in weights_of(layer).items()}
    with np.errstate(all="ignore"):
        bounds = checker.merged(net("regular-gpt", {"num_heads": 2}, weights), window_of(center.numpy(), radius))
    assert_inside(bounds, images.double().numpy())
    if radius == 0:
        assert float(bounds.radius.max()) < 1e-2  # rounding alone


def window_of(center: checker.Array, radius: float) -> list[Form]:
    chunk, width = center.shape
    parts = []
    for index in range(chunk):
        slope = np.zeros((chunk * width, 1, width))
        slope[index * width + np.arange(width), 0, np.arange(width)] = radius
        parts.append(Form(center[None, index], slope, np.full((1, width), 1e-6)))
    return parts


def assert_inside(bounds: Form, values: checker.Array) -> None:
    low, high = bounds.ends
    assert bool(((values >= low) & (values <= high) | ~np.isfinite(bounds.radius)).all())


def net(name: str, settings: dict[str, Any], weights: checker.Tensors) -> checker.Net:
    """A net of these settings, which nobody looks at."""
    return checker.Net(name, settings, weights, num_symbols=2, num_classes=2)


FUNCTIONS = {
    "tanh": (checker.TANH, torch.tanh),
    "sigmoid": (checker.SIGMOID, torch.sigmoid),
    "softplus": (checker.SOFTPLUS, torch.nn.functional.softplus),
    "gelu": (checker.GELU, torch.nn.functional.gelu),
    "tanh form of gelu": (checker.TANH_GELU, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(center=st.floats(-8, 8), radius=st.sampled_from([0.0, 1e-4, 0.1, 1.0, 5.0]), is_sloped=st.booleans())
@np.errstate(all="ignore")
def test_functions_stay_within_its_bounds(name: str, center: float, radius: float, is_sloped: bool) -> None:
    (function, curvature), of_torch = FUNCTIONS[name]
    extent, none = np.full((1, 1), radius), np.zeros(1)
    if is_sloped:
        form = Form(np.array([center]), extent, none)
    else:
        form = Form(np.array([center]), np.zeros((0, 1)), extent[0])
    points = center + radius * torch.linspace(-1, 1, 999, dtype=torch.float64)
    images = of_torch(points).numpy()
    bounds = [form.smooth(function, curvature)] + ([] if "gelu" in name else [form.monotone(function)])
    for low, high in (bound.ends for bound in bounds):  # the last two functions fall and rise
        assert bool(((images >= low) & (images <= high)).all())


def plain_norm(x: checker.Array, *_: checker.Array) -> checker.Array:
    deviation = x - x.mean(-1, keepdims=True)
    return deviation / np.sqrt((deviation**2).mean(-1, keepdims=True) + 1e-5)


MATRIX = np.array([[1.0, -0.5, 2.0], [0.25, 3.0, -1.0]])


OPERATIONS: dict[str, tuple[Callable[[Form, Form], Form], Callable[[checker.Array, checker.Array], checker.Array]]] = {
    "plus": (lambda x, y: x.plus(y), lambda x, y: x + y),
    "minus": (lambda x, y: x.plus(y, -1), lambda x, y: x - y),
    "times": (lambda x, y: x.times(y), lambda x, y: x * y),
    "scaled": (lambda x, _: x.scaled(-1.5, 0.25), lambda x, _: -1.5 * x + 0.25),
    "product": (lambda x, _: total({"weight": MATRIX}, (x, "{}")), lambda x, _: x @ MATRIX.T),
    "joint sum": (
        lambda x, y: total({"weight": MATRIX, "bias": MATRIX[:, 0]}, (x, "{}"), (y, "{}"), rows=slice(1, None)),
        lambda x, y: (x + y) @ MATRIX[1:].T + 2 * MATRIX[1:, 0],
    ),
    "sum without matrices": (lambda x, y: total({}, (x, ""), (y, "")), lambda x, y: x + y),
    "sum": (lambda x, _: x.sum(-1), lambda x, _: x.sum(-1, keepdims=True)),
    "relu": (lambda x, _: x.relu(), lambda x, _: np.maximum(x, 0)),
    "normed": (lambda x, _: x.normed({}), plain_norm),
    "tanh": (lambda x, _: x.smooth(*checker.TANH), lambda x, _: np.tanh(x)),
    "owned": (lambda x, _: x.owned(4), lambda x, _: x),
}


ENDS = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))


def drawn_form(chance: np.random.Generator, kind: str, radius: float) -> Form:
    """Of three numbers: with slopes for two inputs, with remainders, or with both."""
    slope = radius * chance.normal(size=(2, 3)) if kind != "remainders" else np.zeros((0, 3))
    rest = np.zeros(3) if kind == "slopes" else radius * chance.random(3)
    return Form(chance.normal(size=3), slope, rest)


def values_of(form: Form, others: checker.Array) -> checker.Array:
    """At the corners of the inputs, which are the same for two forms, and of three remainders."""
    return form.center + ENDS[:, : len(form.slope)] @ form.slope + others * form.rest


@pytest.mark.parametrize("name", OPERATIONS)
@given(
    seed=seeds,
    radius=st.sampled_from([0.0, 0.01, 0.3, 2.0]),
    kinds=st.tuples(*[st.sampled_from(["slopes", "remainders", "both"])] * 2),
)
@np.errstate(all="ignore")
def test_operations_stay_within_their_bounds(name: str, seed: int, radius: float, kinds: tuple[str, str]) -> None:
    """At every input by itself: an image's slopes count there, not its radius alone."""
    chance = np.random.default_rng(seed)
    one, another = (drawn_form(chance, kind, radius) for kind in kinds)
    bounds, compute = OPERATIONS[name][0](one, another), OPERATIONS[name][1]
    for signs in ENDS:
        image = compute(values_of(one, ENDS[:, 2:] * signs[2:]), values_of(another, ENDS[:, 2:]))
        known = bounds.slope[:2]
        middle = bounds.center + ENDS[:, : len(known)] @ known
        left = bounds.rest + np.abs(bounds.slope[2:]).sum(0)
        assert bool((~np.isfinite(left) | (np.abs(image - middle) <= left * (1 + 1e-9))).all())


@pytest.mark.parametrize("part", ["center", "slope", "rest"])
@pytest.mark.parametrize(("share", "is_inside"), [(0.999, True), (1.001, False)])
def test_sets_hold_what_is_inside(part: str, share: float, is_inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a window whose image touches the boundary, by where its center is, by what turns with inputs, by the rest."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    radius = np.array([1.0, 2.0, 0.5])
    image = Form(np.zeros((1, 3)), np.zeros((6, 1, 3)), np.zeros((1, 3)))
    if part == "center":
        image = image._replace(center=share * (turn @ radius)[None])
    elif part == "slope":
        image = image._replace(slope=share * np.concatenate([turn * radius, np.zeros((3, 3))], 1).T[:, None])
    else:
        image = image._replace(rest=np.full((1, 3), share * (radius / np.abs(turn).sum(0)).min()))
    monkeypatch.setattr(checker, "merged", lambda *_: image)
    sets = {
        "center": np.zeros((2, 3)),
        "axes": np.stack([turn, turn]),
        "radius": np.stack([np.zeros(3), radius]),
        "table": np.array([[-1, -1], [-1, 1]]),
    }
    model = net("regular-gpt", {"d_model": 3, "chunk_size": 2, "num_heads": 1}, {})
    with contextlib.nullcontext() if is_inside else pytest.raises(checker.Rejected, match="outside the set"):
        assert checker.demand_windows_inside(model, sets) == 1


def test_a_joint_sum_holds_what_float32_makes_of_it_in_another_order() -> None:
    """Terms that cancel leave none of the digits of what is added between them."""
    generator = torch.Generator().manual_seed(0)
    weight, state = torch.randn(8, 64, generator=generator), torch.rand(64, generator=generator)
    large = torch.full((8, 1), 2.0**12)
    weights = {"a.weight": large.numpy(), "a.bias": -large[:, 0].numpy(), "b.weight": weight.numpy()}
    bounds = total(weights, (between(np.ones(1)), "a.{}"), (between(state.numpy()), "b.{}"))
    sums = large[:, 0].clone()
    for index in range(64):
        sums += weight[:, index] * state[index]
    low, high = bounds.ends
    values = (sums - large[:, 0]).double().numpy()
    assert bool(((low <= values) & (values <= high)).all())


@pytest.mark.parametrize("digits", [0.0, 3.0, 24.0])
def test_sums_of_multiples_are_exact_up_to_24_binary_digits(digits: float) -> None:
    """Every multiple of 2^-digits up to 2^(24 - digits) is a float32; the next one is not."""
    largest = 2.0 ** (24 - digits)
    next_one = largest + 2.0**-digits
    assert float(np.float32(largest)) == largest
    assert float(np.float32(next_one)) != next_one
    for size, is_exact in ((largest, True), (next_one, False)):
        form = checker.Form(np.array([size]), np.zeros((0, 1)), np.zeros(1)).rounded(np.array([size]), 1, digits)
        assert (form.rest == 0).all() == is_exact


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_has_the_digits_of_both_terms(sign: int) -> None:
    """2^22 + 1/8 is rounded, though one of its terms is a whole number and the sum is below 2^24."""
    terms = (2.0**22, 0.125)
    for one, other in (terms, terms[::-1]):
        bound = Form(*known(one)).plus(Form(*known(other)), sign)
        rounded = np.float32(one) + np.float32(sign * other)
        assert abs(float(rounded) - (one + sign * other)) <= bound.radius[0]
        assert bound.radius[0] > 0
    assert Form(*known(2.0**22)).plus(Form(*known(1.0)), sign).radius[0] == 0


def known(number: float) -> tuple[checker.Array, checker.Array, checker.Array]:
    """The center, slope and rest of a number that is known exactly."""
    return np.array([number]), np.zeros((0, 1)), np.zeros(1)
