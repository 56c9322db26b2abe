"""DeltaNet and its kin: its equations, weights that are set by hand and stay right, spectra, sizes, settings."""

import copy
import math

import pytest
import torch

from lengthwise.layers.delta_net import DeltaNetLayer
from lengthwise.models.delta_net import DeltaNet, DeltaNetConfig
from lengthwise.tasks import make_task

LONG = 10_000
NEVER, ALWAYS = -100.0, 100.0
"""Logits of strengths that float32 takes for 0 and for 2."""


def make(num_symbols: int = 3, num_classes: int = 2, **settings) -> DeltaNet:
    generator = torch.Generator().manual_seed(0)
    return DeltaNet(DeltaNetConfig(**settings), vocab_size=num_symbols, num_classes=num_classes, generator=generator)


def before_silu(vectors: torch.Tensor) -> torch.Tensor:
    """x with SiLU(x) = these, all of them above SiLU's minimum of -0.278, by Newton's method."""
    x = vectors.clone()
    for _ in range(60):
        gate = torch.sigmoid(x)
        x = x - (x * gate - vectors) / (gate * (1 + x * (1 - gate)))
    return x


def set_symbols(model: DeltaNet, keys: torch.Tensor, logits: torch.Tensor, query: torch.Tensor) -> None:
    """One head whose keys [V, n, K'] and strengths [V, n] are those of symbols, with one query for all."""
    queries = query.expand(len(keys), 1, -1)
    set_layer(model.layers[0], tell_symbols_apart(model), keys[:, :, None], logits[:, :, None], queries)


def tell_symbols_apart(model: DeltaNet) -> torch.Tensor:
    """Features of symbols: most of an embedding is what all have, so that an output of 0 is told from others."""
    with torch.no_grad():
        model.embedding.weight.mul_(0.3)[:, -1] += 3
        features: torch.Tensor = model.norms[0](model.embedding.weight)
    return features


def set_layer(
    layer: DeltaNetLayer,
    features: torch.Tensor,
    keys: torch.Tensor,
    logits: torch.Tensor,
    queries: torch.Tensor,
    enlarged: float = 100,
) -> None:
    """The keys [V, n, H, K'], strengths [V, n, H] and queries [V, H, K'] of features [V, D].

    Values are X^T k for X = a thirtieth of the identity; the layer's outputs are enlarged. Of so small a memory the
    RMSNorm's epsilon is the larger part, so that rounding errors in a memory of 0 stay small.
    """
    keys = torch.nn.functional.normalize(keys, dim=-1)
    padded = [
        torch.nn.functional.pad(each, (0, layer.d_key - each.shape[-1])).flatten(1)
        for each in (queries, keys, keys / 30)
    ]
    scale = 0.1  # SiLU reaches all small numbers; keys and queries are normalized, and values may have any size
    expected = before_silu(scale * torch.cat(padded, 1).double())
    inverse = torch.linalg.pinv(features.double())
    with torch.no_grad():
        layer.maps.weight.copy_((inverse @ expected).T)
        layer.strength.weight.copy_((inverse @ logits.flatten(1).double()).T)
        layer.output.weight.copy_(enlarged * torch.eye(len(layer.output.weight)))


def read_by_prototypes(model: DeltaNet, inputs: torch.Tensor, targets: torch.Tensor) -> None:
    """The read-out becomes the scalar product with the mean of each class's normed features; its ReLU does nothing."""
    with torch.no_grad():
        norm, hidden, _, last = model.readout[1:]
        norm.reset_parameters()
        hidden.weight.copy_(torch.eye(model.config.d_model))
        hidden.bias.fill_(10.0)
        features = torch.cat(list(model.states(inputs)), 1)
        normed = norm(features[..., -model.config.d_model :])
        prototypes = torch.stack([normed[targets == y].mean(0) for y in range(len(last.weight))])
        last.weight.copy_(prototypes)
        last.bias.copy_(-10 * prototypes.sum(1))


def errors(model: DeltaNet, task, length: int = LONG) -> int:
    """Wrong answers to prefixes of four random strings, in float32 and in float64: what rounding decides is wrong."""
    inputs = torch.randint(len(task.symbols), (4, length), generator=torch.Generator().manual_seed(7))
    targets = task.solve(inputs)
    with torch.no_grad():
        return sum(int((net(inputs).argmax(-1) != targets).sum()) for net in (model, copy.deepcopy(model).double()))


def short_strings(task, count: int = 64, length: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = torch.randint(len(task.symbols), (count, length), generator=torch.Generator().manual_seed(1))
    return inputs, task.solve(inputs)


def test_one_reflection_holds_parity() -> None:
    task = make_task("parity")
    assert task.solve(torch.tensor([[0], [1]])).flatten().tolist() == [0, 1]
    model = make(2, len(task.classes), d_model=8, num_heads=1)
    set_symbols(model, torch.ones(2, 1, 1), torch.tensor([[NEVER], [ALWAYS]]), torch.ones(1))
    read_by_prototypes(model, *short_strings(task))
    assert errors(model, task) == 0


def test_positive_eigenvalues_forget_the_same_parity() -> None:
    """The same weights erase instead: a state that never moves again answers half of all prefixes wrongly."""
    task = make_task("parity")
    model = make(2, len(task.classes), d_model=8, num_heads=1, eigenvalues="positive")
    set_symbols(model, torch.ones(2, 1, 1), torch.tensor([[NEVER], [ALWAYS]]), torch.ones(1))
    read_by_prototypes(model, *short_strings(task))
    assert errors(model, task) > 2 * LONG


def test_two_reflections_hold_the_symmetric_group_of_three_points() -> None:
    """A permutation of the corners of a triangle is a product of at most two reflections of the plane."""
    task = make_task("word-problem", group="S3")
    corners = torch.tensor([[0.0, 1.0], [3**0.5 / 2, -0.5], [-(3**0.5) / 2, -0.5]]).double()
    keys, logits = torch.zeros(len(task.symbols), 2, 2), torch.zeros(len(task.symbols), 2)
    for symbol, permutation in enumerate(task.action.generators):
        # points are moved from x to permutation[x]: the corners' matrix, split into reflections
        matrix = corners[list(permutation)].T @ torch.linalg.pinv(corners.T)
        keys[symbol], logits[symbol] = reflections(matrix)
    model = make(len(task.symbols), len(task.classes), d_model=8, num_heads=1, householders=2)
    set_symbols(model, keys, logits, torch.tensor([0.3, 1.0]))
    read_by_prototypes(model, *short_strings(task, 512))
    assert errors(model, task) == 0


def test_two_reflections_hold_a_cycle() -> None:
    """A rotation of the plane is two reflections, one after another."""
    task = make_task("word-problem", group="Z5")
    keys = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).repeat(len(task.symbols), 1, 1)
    for symbol, permutation in enumerate(task.action.generators):
        half = math.pi * permutation[0] / 5
        keys[symbol, 1] = torch.tensor([math.cos(half), math.sin(half)])
    model = make(len(task.symbols), len(task.classes), d_model=8, num_heads=1, householders=2)
    set_symbols(model, keys, torch.full((len(task.symbols), 2), ALWAYS), torch.tensor([0.3, 1.0]))
    read_by_prototypes(model, *short_strings(task, 512))
    assert errors(model, task) == 0


def test_one_reflection_in_each_of_two_layers_holds_a_cycle() -> None:
    """The first layer tells even steps from odd ones; the second reflects at angles of (1 - 2i) and (1 + 2i) pi / 5.

    Grazzi et al., theorem 6: an even number of such reflections is a rotation by twice the sum of the steps i.
    """
    task = make_task("cycle-navigation")
    count = len(task.symbols)
    model = make(count, len(task.classes), d_model=12, num_heads=count, num_layers=2)
    first, second = model.layers
    # Each head of the first layer answers to one symbol, at odd steps, so that the second tells all pairs apart.
    always, own = torch.full((count, 1, count), ALWAYS), torch.eye(count)
    along_or_across = torch.stack([own, 1 - own], -1)
    set_layer(first, tell_symbols_apart(model), torch.ones(count, 1, count, 1), always, along_or_across, enlarged=1)
    with torch.no_grad():
        twice = model.embedding(torch.arange(count)[:, None].expand(-1, 2))
        outputs, _ = first(model.norms[0](twice), first.initial_state(twice[:, 0]))
        features = model.norms[1](twice + outputs).transpose(0, 1).flatten(0, 1)  # of all at a first step, at a second
    moves = task.solve(torch.arange(count)[:, None])[:, 0]
    angles = torch.cat([1 - 2 * moves, 1 + 2 * moves]) * math.pi / 5
    normals = torch.stack([-(angles / 2).sin(), (angles / 2).cos()], 1)
    is_used = torch.tensor([ALWAYS] + [NEVER] * (count - 1))
    set_layer(
        second,
        features,
        normals[:, None, None].expand(-1, 1, count, -1),
        is_used.expand(len(features), 1, -1),
        torch.tensor([0.3, 1.0]).expand(len(features), count, -1),
    )
    inputs, targets = short_strings(task, 512)
    read_by_units(model, inputs, 2 * targets + torch.arange(inputs.shape[1]) % 2)
    assert errors(model, task) == 0


def read_by_units(model: DeltaNet, inputs: torch.Tensor, kinds: torch.Tensor) -> None:
    """Each kind of state, two to a class, has a hidden unit that no other kind turns on."""
    with torch.no_grad():
        norm, hidden, _, last = model.readout[1:]
        norm.reset_parameters()
        features = torch.cat(list(model.states(inputs)), 1)
        normed = norm(features[..., -model.config.d_model :])
        hidden.weight.zero_()
        last.weight.zero_()
        last.bias.zero_()
        for kind in range(2 * len(last.weight)):
            prototype = normed[kinds == kind].mean(0)
            own, others = (normed[is_kind] @ prototype for is_kind in (kinds == kind, kinds != kind))
            assert float(own.min()) > float(others.max())
            hidden.weight[kind] = prototype
            hidden.bias[kind] = -(own.min() + others.max()) / 2
            last.weight[kind // 2, kind] = 1.0


def test_four_reflections_hold_the_symmetric_group_of_five_points() -> None:
    """A permutation is a product of at most four exchanges, each the reflection along e_i - e_j."""
    task = make_task("word-problem", group="S5")
    keys, logits = torch.zeros(len(task.symbols), 4, 5), torch.full((len(task.symbols), 4), NEVER)
    keys[..., 0] = 1
    for symbol, permutation in enumerate(task.action.generators):
        for step, (one, other) in enumerate(exchanges(permutation)):
            keys[symbol, step] = torch.eye(5)[one] - torch.eye(5)[other]
            logits[symbol, step] = ALWAYS
    model = make(len(task.symbols), len(task.classes), d_model=12, num_heads=1, householders=4)
    set_symbols(model, keys, logits, torch.tensor([0.1, 0.35, 0.8, 1.3, 2.0]))
    read_by_prototypes(model, *short_strings(task, 4_096, 16))
    assert errors(model, task) == 0


def exchanges(permutation: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs of points that, exchanged one after another, take each point x to permutation[x]."""
    pairs, at = [], list(range(len(permutation)))
    for point in range(len(permutation)):
        here = at.index(point)
        if here != permutation[point]:
            pairs.append((here, permutation[point]))
            at[here], at[permutation[point]] = at[permutation[point]], at[here]
    return pairs


def reflections(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two keys and logits of strengths whose reflections, one after another, make this orthogonal map of the plane."""
    if torch.linalg.det(matrix) < 0:
        values, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
        return vectors[:, values.argmin()].repeat(2, 1).float(), torch.tensor([ALWAYS, NEVER])
    half = torch.atan2(matrix[1, 0], matrix[0, 0]) / 2
    keys = torch.stack([torch.tensor([1.0, 0.0]).double(), torch.stack([half.cos(), half.sin()])])
    return keys.float(), torch.full((2,), ALWAYS)


@pytest.mark.parametrize(("eigenvalues", "low"), [("signed", -1.0), ("positive", 0.0)])
def test_eigenvalues_are_in_their_range(eigenvalues: str, low: float) -> None:
    """Of the matrix of one sub-step, from random weights and large features: from `low` to 1, and near both ends."""
    layer = DeltaNetLayer(d_model=8, num_heads=2, householders=1, eigenvalues=eigenvalues)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    features = 50 * torch.randn(200, 8, generator=torch.Generator().manual_seed(1))
    strengths = layer.strengths(features).detach()
    keys = torch.nn.functional.normalize(torch.randn(200, 1, 2, 4, generator=torch.Generator().manual_seed(2)), dim=-1)
    matrices = torch.eye(4) - strengths[..., None, None] * keys[..., :, None] * keys[..., None, :]
    spectrum = torch.linalg.eigvalsh(matrices)
    assert low - 1e-5 <= float(spectrum.min()) <= low + 1e-2
    assert abs(float(spectrum.max()) - 1) <= 1e-5


def test_decays_are_below_one_and_start_as_published() -> None:
    layer = DeltaNetLayer(d_model=64, num_heads=64, gated=True)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    decays = layer.log_decays(torch.zeros(1, 64)).detach().exp()
    assert bool((decays > 0).all() and (decays <= 1).all())
    assert float(decays.min()) >= torch.tensor(-1.6).exp() - 1e-6  # the fastest rate times the longest step


@pytest.mark.parametrize(
    "settings", [{}, {"householders": 3}, {"gated": True, "num_heads": 2}, {"conv": 4}, {"mlp": 24, "num_layers": 2}]
)
def test_numbers_of_parameters_and_of_states(settings: dict) -> None:
    config = DeltaNetConfig(d_model=16, **settings)
    d, n, h = 16, config.householders, config.num_heads
    each = d * d + n * (2 * d * d + d * h + h) + d * d + d // h
    each += (d * h + 2 * h) * config.gated + config.conv * (1 + 2 * n) * d + 3 * d * config.mlp
    model = make(d_model=16, **settings)
    assert sum(p.numel() for layer in model.layers for p in layer.parameters()) == config.num_layers * each
    state = d * d // h + max(0, config.conv - 1) * (1 + 2 * n) * d
    assert model.initial_state(2).shape == (2, config.num_layers * state + d)


def test_steps_go_on_where_forward_stopped() -> None:
    model = make(num_layers=2, d_model=8, num_heads=2, householders=2, gated=True, conv=3, mlp=8).double()
    inputs = torch.randint(3, (2, 45), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, state = model(inputs), model.last_state(inputs[:, :20])
        for t in range(20, 45):
            answer, state = model.step(inputs[:, t], state)
            torch.testing.assert_close(answer, expected[:, t])
