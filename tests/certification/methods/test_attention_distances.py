"""Scores by distance: prover and checker contain the scores of each encoding's definition, and of its float32."""

import itertools

import numpy as np
import pytest
import torch
from attending_net import OCCURS, WIDTH

from lengthwise.certification import checker
from lengthwise.certification.methods.attention import distances
from lengthwise.certification.methods.attention.scores import layers_of
from lengthwise.layers.positions.fire import FIRE
from lengthwise.layers.positions.kerple import Kerple
from lengthwise.layers.positions.transformer_xl import TransformerXLPositions
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.ops.intervals import Intervals

NUM_LAYERS = 2


def drawn_net(positions: str, num_heads: int, seed: int = 0) -> SequenceModel:
    sizes = {"d_model": WIDTH, "num_heads": num_heads, "num_layers": NUM_LAYERS}
    model = make_model("transformer", OCCURS, seed=seed, positions=positions, **sizes).requires_grad_(False)
    encoding = model.read_in.positions
    if isinstance(encoding, TransformerXLPositions):
        for parameter in encoding.parameters():
            parameter.mul_(30)  # they start near 0
    if isinstance(encoding, Kerple):  # some parameters are outside of their limits
        encoding.p.copy_(torch.tensor([2.7, -0.3])[:num_heads])
        encoding.a.copy_(torch.tensor([-0.2, 0.5])[:num_heads])
    return model.eval()


def checker_net(model: SequenceModel) -> checker.Net:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    return checker.Net("transformer", model.config.model_dump(), weights, 2, 2)


def true_scores(model: SequenceModel, layer: int, query: torch.Tensor, key: torch.Tensor, length: int) -> torch.Tensor:
    """The scores [K, N, H, T] of queries [K, H, E] and keys [N, H, E] at all distances, by definition."""
    count = len(query) * len(key)
    rows = [states[:, :, None].expand(-1, -1, length, -1) for states in (query, key)]
    one, other = rows[0].repeat_interleave(len(key), 0), rows[1].repeat(len(query), 1, 1, 1)
    attention = model.read_in.positions.attention(torch.zeros(count, length, WIDTH, dtype=query.dtype))[layer]
    return attention.scores(one, other)[:, :, -1].flip(-1).unflatten(0, (len(query), len(key)))


@pytest.mark.parametrize("length", [1, 130])
@pytest.mark.parametrize("num_heads", [1, 2])
@pytest.mark.parametrize("positions", distances.names())
def test_scores_of_drawn_queries_and_keys_lie_within_bounds(positions: str, num_heads: int, length: int) -> None:
    """Queries and keys of two kinds: three pieces each, and a single point, whose bounds are as wide as rounding."""
    model = drawn_net(positions, num_heads, seed=length)
    net, generator = checker_net(model), torch.Generator().manual_seed(length)
    shape = (2, 3, num_heads, WIDTH // num_heads)
    center = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    radius = [0.1 * torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    for layer, is_point in itertools.product(range(NUM_LAYERS), (False, True)):
        count, size = (1, 0.0) if is_point else (3, 1.0)
        sides = zip(center, radius, strict=True)
        pieces = [Intervals(c - size * r, c + size * r)[:, :count] for c, r in sides]
        scores = distances.scores_by_distance(model.read_in.positions, layer, *pieces, length)
        forms = [checker.between(piece.low.numpy(), piece.high.numpy()) for piece in pieces]
        checked = [torch.from_numpy(end) for end in checker.scores_of(net, layer, *forms, length).ends]
        is_inside = (scores.low <= checked[0]) & (checked[1] <= scores.high)
        assert bool(is_inside.all()), "otherwise the checker rejects masses at their bounds"
        signs = 2 * torch.randint(2, (2, *shape), generator=generator) - 1
        corners = [c + size * s * r for c, s, r in zip(center, signs, radius, strict=True)]
        low, high = (sign * torch.full((2, 2, num_heads, length), torch.inf) for sign in (1, -1))
        for one, other, dtype in itertools.product(range(count), range(count), (torch.float64, torch.float32)):
            query, key = (corners[side][:, piece].to(dtype) for side, piece in ((0, one), (1, other)))
            right = true_scores(model.to(dtype), layer, query, key, length).double()
            model.float()
            low, high = torch.minimum(low, right), torch.maximum(high, right)
            for ends in ((scores.low, scores.high), checked):
                assert bool(((ends[0] <= right) & (right <= ends[1])).all())
        for ends in ((scores.low, scores.high), checked) if is_point else ():
            off = torch.maximum(low - ends[0], ends[1] - high)
            assert bool((off < 2e-4 * (1 + high.abs())).all()), "up to rounding"


def test_fire_has_bounds_up_to_its_limit() -> None:
    """Beyond, its biases depend on the query's position, and the bounds of distances alone do not hold."""
    model = drawn_net("fire", 1)
    encoding = model.read_in.positions
    assert isinstance(encoding, FIRE)
    assert distances.max_length_of(encoding, 4096) == 513
    encoding.layers[1].limit.fill_(-0.05)  # positions up to 25.6
    assert distances.max_length_of(encoding, 4096) == 26
    assert distances.max_length_of(encoding, 20) == 20
    assert checker.fire_limit(checker_net(model), 1) == pytest.approx(25.6)

    def bias_at(position: int) -> torch.Tensor:
        return encoding.layers[1].pairs(torch.tensor([position]), torch.tensor([position - 5]))

    assert torch.equal(bias_at(25), bias_at(10))
    assert not torch.equal(bias_at(30), bias_at(10))


@pytest.mark.parametrize("positions", distances.names())
def test_other_sizes_than_the_model_has_are_refused(positions: str) -> None:
    """Plain attributes determine slopes and angles, and torch would broadcast those of one head."""
    model = drawn_net(positions, 2)
    layers_of(model)
    model.read_in.positions.sizes = model.read_in.positions.sizes._replace(num_heads=1)
    with pytest.raises(ValueError, match="sizes are the model's"):
        layers_of(model)


def test_a_layer_with_another_number_of_heads_is_refused() -> None:
    """Rotary positions have the angles of the settings' heads, and torch would broadcast those of a single pair."""
    model = drawn_net("rotary", 4)
    model.layers[1].num_heads = 1
    model.last(torch.tensor([[0, 1]]))  # without an error
    with pytest.raises(ValueError, match="expected num_heads=4 in each layer"):
        layers_of(model)


def test_another_net_of_fire_is_refused() -> None:
    model = drawn_net("fire", 2)
    model.read_in.positions.layers[1].net.append(torch.nn.ReLU())
    with pytest.raises(ValueError, match="a linear map, a ReLU and a linear map"):
        layers_of(model)


def test_a_limit_of_fire_that_overflows_has_no_bound() -> None:
    """It is infinite in float32, so all biases of this net are equal. Without overflow they would fall steeply."""
    model = drawn_net("fire", 1)
    layer = model.read_in.positions.layers[0]
    for parameter in layer.parameters():
        parameter.zero_()
    layer.limit.fill_(1e36)
    layer.c.fill_(1e-24)
    layer.net[0].weight[0] = 2e13
    layer.net[2].weight[:, 0] = -1.7e13
    assert not bool(layer.pairs(torch.arange(9), torch.zeros(9, dtype=torch.int64)).any())
    states = torch.zeros(1, 1, 1, WIDTH, dtype=torch.float64)
    scores = distances.scores_by_distance(model.read_in.positions, 0, *[Intervals.around(states)] * 2, 9)
    assert not bool(scores.size.isfinite().any())
    form = checker.between(states.numpy())
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(checker.scores_of(checker_net(model), 0, form, form, 9).radius).any()


def test_the_checker_scores_4096_distances_of_a_net_of_default_sizes() -> None:
    """Its limits are on the largest arrays, so a proof by the prover's longest strings is not rejected for its size."""
    model = make_model("transformer", OCCURS, positions="xl")
    num_heads = model.config.num_heads
    form = checker.between(np.zeros((2, 16, num_heads, model.config.d_model // num_heads)))
    scores = checker.scores_of(checker_net(model), 1, form, form, 4096)
    assert scores.center.shape == (2, 2, num_heads, 4096)


@pytest.mark.parametrize("name", ["layers", "read_in.positions.layers", "read_in.positions.maps"])
def test_lists_of_parts_in_another_order_are_refused(name: str) -> None:
    """The net loops over such a list in its order, while indices and names of weights keep the old order."""
    model = drawn_net("xl" if name.endswith("maps") else "fire", 1)
    parts = model.get_submodule(name)
    layers_of(model)
    first = parts._modules.pop("0")
    parts.add_module("0", first)
    with pytest.raises(ValueError, match="got the order 1, 0"):
        layers_of(model)


def test_a_part_of_fire_is_refused_after_the_embedding() -> None:
    """No weight shows that it is there."""
    model = make_model("transformer", OCCURS, d_model=WIDTH, num_heads=1, num_layers=1, read_in="plain")
    model.read_in.positions = drawn_net("none", 1).read_in.positions
    model.read_in.norm = torch.nn.ReLU()
    with pytest.raises(ValueError, match="a LayerNorm or nothing after the embedding, got a ReLU"):
        layers_of(model)
