"""Structured linear CDEs: the word problem of S_5 by hand-set weights, in either structure, and a layer's steps."""

import itertools
import math

import pytest
import torch

from lengthwise.layers.linear_cde import LinearCDELayer
from lengthwise.models import make_model
from lengthwise.models.linear_cde import LinearCDE, LinearCDEConfig
from lengthwise.tasks import make_task

POINTS, WIDTH = 5, 15


def permuting_net(task, structure: str) -> LinearCDE:
    """One layer whose first 5 numbers are permuted by each symbol, and whose answer is the nearest of all orders."""
    size = {"block_dim": POINTS} if structure == "block" else {"rank": POINTS - 1}
    config = LinearCDEConfig(d_model=WIDTH, structure=structure, **size)
    model = LinearCDE(config, vocab_size=len(task.symbols), num_classes=len(task.classes))
    (layer,) = model.layers
    assert isinstance(layer, LinearCDELayer)
    num_symbols, points = len(task.symbols), slice(0, POINTS)
    identity = torch.eye(POINTS)
    with torch.no_grad():
        for parameter in (*model.embedding.parameters(), *layer.parameters(), *model.readout[2:].parameters()):
            parameter.zero_()
        model.embedding.weight[:, POINTS:] = torch.eye(num_symbols, WIDTH - POINTS)
        layer.first_state[points] = 100 * torch.arange(-2.0, 3.0)
        # A^i of a channel for each symbol: their sums, weighted by a symbol's features, are its permutation less I.
        channels = slice(1 + POINTS, 1 + POINTS + num_symbols)
        features = model.norms[0](model.embedding.weight)[:, POINTS : POINTS + num_symbols]
        moved = torch.stack([identity[:, list(images)] - identity for images in task.action.generators])
        summands = 40 * torch.einsum("iv,vjk->ijk", features.inverse(), moved)
        if layer.blocks is not None:
            layer.blocks[channels, points] = summands
        else:  # a permutation less I has columns that sum to 0: a rank of 4 at most
            left, sizes, right = torch.linalg.svd(summands)
            layer.left[channels, points] = (left * sizes[:, None])[..., : POINTS - 1]
            layer.right[channels, points] = right[:, : POINTS - 1].mT
        # ReLU(x) - ReLU(-x) is x, and of all orders of the same numbers that of the state has the largest product.
        model.readout[2].weight[: 2 * POINTS, points] = torch.cat([identity, -identity])
        orders = layer.first_state[:POINTS][torch.tensor(task.action.elements).argsort(1)]
        model.readout[4].weight[:, : 2 * POINTS] = torch.cat([orders, -orders], 1)
    return model


@torch.no_grad()
@pytest.mark.parametrize("structure", ["block", "low-rank"])
def test_one_layer_solves_the_word_problem_of_s5(structure: str) -> None:
    task = make_task("word-problem", group="S5")
    batch = task.sample(2, 10_000, torch.Generator().manual_seed(0))
    assert torch.equal(permuting_net(task, structure)(batch.inputs).argmax(-1), task.solve(batch.inputs))


def assert_states(layer: LinearCDELayer, table: torch.Tensor, rows: torch.Tensor, expected: list[torch.Tensor]) -> None:
    """States and gradients of a layer, by features and by rows of a table, are those expected after each symbol."""
    parameters = list(layer.parameters())
    theirs = torch.autograd.grad(torch.stack(expected, 1).square().sum(), parameters)
    first = layer.initial_state(table[:2])
    for outputs, last in (layer(table[rows], first), layer.through_rows(table, rows, first)):
        torch.testing.assert_close(outputs, torch.stack(expected, 1), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(last, expected[-1], rtol=1e-10, atol=1e-10)
        ours = torch.autograd.grad(outputs.square().sum(), parameters)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("structure", "block_dim"), [("block", 4), ("block", 1), ("low-rank", 8)])
def test_a_layer_is_the_published_step(structure: str, block_dim: int) -> None:
    """h_t = h_{t-1} + sum_i u_i A^i h_{t-1} / 40, the A^i written out, with a channel of ones first; also by tables."""
    layer = LinearCDELayer(d_model=8, structure=structure, block_dim=block_dim, rank=3)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    layer = layer.double()
    table = torch.randn(3, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = torch.randint(3, (2, 9), generator=torch.Generator().manual_seed(2))
    if layer.blocks is not None:
        blocks = layer.blocks.unflatten(1, (-1, block_dim))
        matrices = torch.stack([torch.block_diag(*channel) for channel in blocks])
    else:
        matrices = torch.diag_embed(layer.diagonal) + torch.einsum("cir,cjr->cij", layer.left, layer.right)
    state, expected = layer.initial_state(table[:2]), []
    for row in rows.unbind(1):
        channels = torch.cat([torch.ones(2, 1), table[row]], 1)
        state = state + torch.einsum("bc,cij,bj->bi", channels / 40, matrices, state)
        expected.append(state)
    assert_states(layer, table, rows, expected)


def test_the_product_is_the_step_of_the_published_code() -> None:
    """Per step, with a channel of ones, w = (1, u) / 40: h + (w d) h + (w U) ((w V)^T h); values and gradients."""
    layer = LinearCDELayer(d_model=8, structure="low-rank-product", block_dim=4, rank=3)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    layer = layer.double()
    table = torch.randn(3, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = torch.randint(3, (2, 9), generator=torch.Generator().manual_seed(2))
    state, expected = layer.initial_state(table[:2]), []
    for row in rows.unbind(1):
        channels = torch.cat([torch.ones(2, 1), table[row]], 1) / 40
        left, right = (torch.einsum("bc,cjr->bjr", channels, factor) for factor in (layer.left, layer.right))
        read = torch.einsum("bjr,bj->br", right, state)
        state = state + (channels @ layer.diagonal) * state + torch.einsum("bjr,br->bj", left, read)
        expected.append(state)
    assert_states(layer, table, rows, expected)


def test_the_two_forms_of_low_rank_are_different_functions_of_the_same_weights() -> None:
    summed, product = (
        LinearCDELayer(d_model=8, structure=structure, block_dim=4, rank=2)
        for structure in ("low-rank", "low-rank-product")
    )
    summed.reset_parameters(torch.Generator().manual_seed(0))
    product.load_state_dict(summed.state_dict())
    features = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    assert float((summed.transitions(features) - product.transitions(features)).detach().abs().max()) > 0.01
    moved = product.transitions(features)[:, 0] - torch.diag_embed(
        1 + (product.diagonal[0] + features @ product.diagonal[1:]) / 40
    )
    assert torch.linalg.matrix_rank(moved.detach().double(), atol=1e-6).tolist() == [2, 2, 2]


@torch.no_grad()
@pytest.mark.parametrize(
    ("structure", "length"),
    [
        *itertools.product(["block", "low-rank", "low-rank-product"], [40, 300]),
        ("block", 2_000),
        # Their states are followed symbol by symbol for two seconds each, and grow by the same rule.
        *(pytest.param(kind, 2_000, marks=pytest.mark.slow) for kind in ("low-rank", "low-rank-product")),
    ],
)
def test_answers_do_not_end_where_floating_point_does(structure: str, length: int) -> None:
    """States grow by a factor of over 10^100 in 2,000 symbols: by logarithms, and by positions and steps."""
    size = {"block_dim": 16} if structure == "block" else {}
    model = make_model("linear-cde", make_task("parity"), structure=structure, d_model=16, **size, seed=1)
    layer = model.layers[0]
    for parameter in layer.parameters():
        parameter *= 4
    tokens = torch.randint(2, (3, length), generator=torch.Generator().manual_seed(0))
    states = model.last_state(tokens)
    assert bool(states.isfinite().all())
    logits, state = model(tokens)[:, -1], model.initial_state(3)
    for column in tokens.unbind(1):
        last, state = model.step(column, state)
    torch.testing.assert_close(last, logits, rtol=1e-4, atol=1e-4)

    model = model.double()
    matrices = torch.stack(
        [torch.block_diag(*blocks) for blocks in layer.transitions(model.norms[0](model.embedding.weight))]
    )
    for row, string in enumerate(tokens[: 3 if length < 2_000 else 1]):  # each symbol of a row is a step in Python
        latest, logarithm = layer.first_state, 0.0
        for symbol in string:
            latest = matrices[symbol] @ latest
            logarithm += float(latest.abs().max().log())
            latest = latest / latest.abs().max()
        features = latest + model.embedding(string[-1:])[0] * math.exp(-logarithm)
        if length == 2_000:
            assert logarithm > 100 * math.log(10)
        exact = model.readout(features * 1e6 if logarithm > math.log(1e6) else features * math.exp(logarithm))
        torch.testing.assert_close(logits[row].double(), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("structure", ["block", "low-rank", "low-rank-product"])
def test_transitions_are_near_the_identity_at_first(structure: str) -> None:
    """Entries of A are sums of 64 normal numbers of size 1/80 at most: no symbol's A has entries of much over 1/10."""
    layer = LinearCDELayer(d_model=64, structure=structure, block_dim=4, rank=4)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    features = torch.randn(20, 64, generator=torch.Generator().manual_seed(1))
    moved = layer.transitions(features) - torch.eye(layer.block_dim)
    assert 1e-2 < float(moved.detach().std()) < math.sqrt(65) / 80


@pytest.mark.parametrize(
    ("structure", "expected"),
    [
        ("block", 17 * 64 + 16),
        ("low-rank", 17 * (16 + 96) + 16),
        ("low-rank-product", 17 * (16 + 96) + 16),
    ],
)
def test_a_layer_has_as_many_parameters_as_its_structure_says(structure: str, expected: int) -> None:
    """(D + 1) D S, or (D + 1) (D + 2 D r), and h_0."""
    layer = LinearCDELayer(d_model=16, structure=structure, block_dim=4, rank=3)
    assert sum(parameter.numel() for parameter in layer.parameters()) == expected
