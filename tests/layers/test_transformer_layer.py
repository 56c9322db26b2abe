"""A layer whose gains and gates are multiplied into its matrices, against the equations."""

from typing import get_args

import pytest
import torch

from lengthwise.layers.timestep import ConstantScales, LoopScales, TimestepScales
from lengthwise.layers.transformer_layer import LayerKind, Scales, TransformerLayer
from lengthwise.ops.sinusoids import timestep_sinusoids

LENGTHS = (1, 2, 7, 63)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(kind: LayerKind) -> TransformerLayer:
    layer = TransformerLayer(d_model=12, num_heads=3, kind=kind)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    for seed, parameter in enumerate(layer.norms.parameters()):
        parameter.data = draw(12, seed=seed)
    return layer.double()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", get_args(LayerKind))
@pytest.mark.parametrize("scaled", [False, True])
def test_matrices_take_gains_and_gates_as_states_do(kind: LayerKind, length: int, scaled: bool) -> None:
    """Values and all gradients, those of the scales included."""
    layer, states = make(kind), draw(3, length, 12).requires_grad_()
    scales = Scales(*(draw(12, seed=seed).requires_grad_() for seed in range(4))) if scaled else None
    expected = [states, *layer.parameters(), *(scales or ())]
    fast, slow = layer(states, scales), layer.by_definition(states, scales)
    torch.testing.assert_close(fast, slow)
    weights = draw(*fast.shape, seed=5)
    torch.testing.assert_close(
        torch.autograd.grad((fast * weights).sum(), expected), torch.autograd.grad((slow * weights).sum(), expected)
    )


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("kind", get_args(LayerKind))
def test_one_position_of_each_row_is_what_all_positions_have_there(kind: LayerKind, length: int) -> None:
    layer, states = make(kind), draw(3, length, 12).requires_grad_()
    scales = Scales(*(draw(12, seed=seed) for seed in range(4)))
    positions = torch.tensor([0, length - 1, length // 2])
    expected = [states, *layer.parameters()]
    alone, among_all = layer.at(states, positions, scales), layer(states, scales)[torch.arange(3), positions]
    torch.testing.assert_close(alone, among_all)
    torch.testing.assert_close(
        torch.autograd.grad(alone.square().sum(), expected), torch.autograd.grad(among_all.square().sum(), expected)
    )


@pytest.mark.parametrize("kind", [TimestepScales, ConstantScales])
def test_loops_begin_with_gains_of_one_and_closed_gates(kind: type[LoopScales]) -> None:
    scales = kind(d_model=8)
    scales.reset_parameters(torch.Generator().manual_seed(0))
    for loop in scales(5):
        assert torch.equal(torch.stack(loop), torch.tensor([1.0, 1.0, 0.0, 0.0])[:, None].expand(4, 8))


def test_timestep_scales_are_the_equation_and_tell_loops_apart() -> None:
    scales = TimestepScales(d_model=8)
    scales.reset_parameters(torch.Generator().manual_seed(0))
    scales = scales.double()
    scales.heads.weight.data, scales.heads.bias.data = draw(32, 8), draw(32)
    first, second = scales.encoding[0], scales.encoding[2]
    for loop, actual in enumerate(scales(7)):
        encoded = timestep_sinusoids(7)[loop].double()
        hidden = first.weight @ encoded + first.bias
        encoded = second.weight @ (hidden * hidden.sigmoid()) + second.bias
        raw = scales.heads.weight @ (encoded * encoded.sigmoid()) + scales.heads.bias
        torch.testing.assert_close(torch.cat(actual), raw + torch.tensor([1.0, 0.0]).double().repeat_interleave(16))
    assert not torch.allclose(scales(2)[0].attention_gate, scales(2)[1].attention_gate)


@pytest.mark.parametrize("width", [1, 64, 256])
def test_timestep_scales_have_the_parameters_of_the_formula(width: int) -> None:
    assert sum(p.numel() for p in TimestepScales(d_model=width).parameters()) == 5 * width**2 + 262 * width
