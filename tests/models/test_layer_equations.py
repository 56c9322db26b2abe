"""Layers against their equations, position by position, with every constant of them."""

import math

import pytest
import torch
import torch.nn.functional as F

from lengthwise.layers.delta_net import DeltaNetLayer
from lengthwise.layers.log_depth import LogDepthLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.layers.sparse_linear import PDSSMLayer

D, T = 8, 7


@torch.no_grad()
def drawn(layer: torch.nn.Module) -> torch.nn.Module:
    """In double precision and away from how it begins, where every parameter matters."""
    layer.double().reset_parameters(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    for parameter in layer.parameters():
        parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return layer


def compare(layer: RecurrentLayer, features: torch.Tensor, expected: list[torch.Tensor]) -> torch.Tensor:
    """The outputs; the last state is for the test to compare."""
    outputs, state = layer(features[None], layer.initial_state(features[:1]))
    torch.testing.assert_close(outputs[0], torch.stack(expected), rtol=1e-10, atol=1e-10)
    return state[0]


def features() -> torch.Tensor:
    return torch.randn(T, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@torch.no_grad()
@pytest.mark.parametrize(
    ("householders", "gated", "conv", "eigenvalues"),
    [(1, False, 0, "signed"), (2, True, 4, "positive"), (3, True, 0, "signed")],
)
def test_delta_net(householders: int, gated: bool, conv: int, eigenvalues: str) -> None:
    heads, size = 2, D // 2
    layer = drawn(
        DeltaNetLayer(
            d_model=D, num_heads=heads, householders=householders, eigenvalues=eigenvalues, gated=gated, conv=conv
        )
    )
    z, expected = features(), []
    mapped = z @ layer.maps.weight.T
    if conv:
        padded = torch.cat([torch.zeros(conv - 1, mapped.shape[1]), mapped])
        mapped = torch.stack([(padded[t : t + conv] * layer.convolution.weight.T).sum(0) for t in range(T)])
    vectors = (mapped * torch.sigmoid(mapped)).view(T, 1 + 2 * householders, heads, size)
    memory = torch.zeros(heads, size, size, dtype=torch.float64)
    for t in range(T):
        read = []
        for h in range(heads):
            if gated:
                step = (1 + (layer.decay.weight[h] @ z[t] + layer.decay.bias[h]).exp()).log()
                memory[h] *= (-layer.log_rate[h].exp() * step).exp()
            for j in range(householders):
                row = j * heads + h
                strength = torch.sigmoid(layer.strength.weight[row] @ z[t] + layer.strength.bias[row])
                strength = 2 * strength if eigenvalues == "signed" else strength
                key, value = vectors[t, 1 + j, h], vectors[t, 1 + householders + j, h]
                key = key / key.norm()
                memory[h] += strength * torch.outer(key, value - memory[h].T @ key)
            query = vectors[t, 0, h] / vectors[t, 0, h].norm() / math.sqrt(size)
            output = memory[h].T @ query
            read.append(output / (output.pow(2).mean() + 1e-5).sqrt() * layer.gain)
        expected.append(layer.output.weight @ torch.cat(read))
    state = compare(layer, z, expected)
    torch.testing.assert_close(state[: memory.numel()], memory.flatten(), rtol=1e-10, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize(
    ("diagonal", "driven", "form"),
    [("full", True, "scatter"), ("full", True, "gather"), ("phase", False, "scatter"), ("none", True, "gather")],
)
def test_pd_ssm(diagonal: str, driven: bool, form: str) -> None:
    size = 5
    layer = drawn(
        PDSSMLayer(d_model=D, d_state=size, num_matrices=3, diagonal=diagonal, driven=driven, form=form),
    )

    def two_layers(maps: torch.nn.Sequential, u: torch.Tensor) -> torch.Tensor:
        hidden = maps[0].weight @ u + maps[0].bias
        return maps[2].weight @ (hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2) + maps[2].bias

    state, expected = torch.eye(size, dtype=torch.complex128)[0], []
    for u in features():
        scores = (layer.mixture_map.weight @ u).exp()
        mixed = torch.einsum("k,kij->ij", scores / scores.sum(), layer.dictionary)
        moves = F.one_hot(mixed.argmax(0), size).T if form == "scatter" else F.one_hot(mixed.argmax(1), size)
        factor = torch.ones(size, dtype=torch.complex128)
        if diagonal != "none":
            factor = torch.exp(2j * math.pi * torch.sigmoid(two_layers(layer.phase_map, u)))
        if diagonal == "full":
            factor = factor * torch.sigmoid(two_layers(layer.size_map, u))
        moved = moves.to(state.dtype)
        state = moved @ (factor * state) if form == "scatter" else factor * (moved @ state)
        if driven:
            added = layer.b.weight @ u
            state = state + (added.to(state.dtype) if diagonal == "none" else torch.view_as_complex(added.view(-1, 2)))
        numbers = state.real if diagonal == "none" else torch.view_as_real(state).flatten()
        expected.append(layer.w.weight @ numbers + layer.w.bias + layer.d * u)
    compare(layer, features(), expected)


@torch.no_grad()
@pytest.mark.parametrize("operator", ["gated-sum", "linear"])
def test_small_operators_of_log_depth_units(operator: str) -> None:
    layer = drawn(LogDepthLayer(d_model=D, operator=operator))
    older, newer = features()[:2]
    (linear,) = layer.operator.children()
    mixed = linear.weight @ torch.cat([older, newer]) + linear.bias
    if operator == "gated-sum":
        gate = 1 / (1 + (-mixed).exp())
        mixed = gate * older + (1 - gate) * newer
    block = layer.feed_forward
    mixed = (
        mixed + block.narrow.weight @ (block.widen.weight @ mixed + block.widen.bias).clamp(min=0) + block.narrow.bias
    )
    centered = mixed - mixed.mean()
    normed = centered / (centered.pow(2).mean() + layer.norm.eps).sqrt()
    torch.testing.assert_close(layer.merge(older, newer), normed * layer.norm.weight + layer.norm.bias)
