"""The merge in one piece, against its definition and the layer taken apart: values and every gradient."""

import pytest
import torch
from torch import nn

from lengthwise.layers.tree_layers import MergeLayer
from lengthwise.models.regular_gpt import RegularGPT, RegularGPTConfig
from lengthwise.ops.merge import merge, merge_by_definition
from lengthwise.ops.tree_attention import merge_windows

TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-4}


def drawn_layer(
    chunk_size: int, dtype: torch.dtype = torch.float64, d_model: int = 12, num_heads: int = 3
) -> MergeLayer:
    """A layer all of whose parameters matter."""
    layer = MergeLayer(d_model=d_model, num_heads=num_heads, chunk_size=chunk_size).to(dtype)
    generator = torch.Generator().manual_seed(chunk_size)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator, std=0.5)
    return layer


def drawn(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def by_parts(layer: MergeLayer, states: torch.Tensor, windows: torch.Tensor | None) -> torch.Tensor:
    parts = states if windows is None else states[windows]
    return merge_windows(layer, parts.transpose(0, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 2, 7, 63, 200])
@pytest.mark.parametrize("chunk_size", [2, 3, 4])
@pytest.mark.parametrize("gathered", [False, True])
def test_it_is_the_layer(gathered: bool, chunk_size: int, count: int, dtype: torch.dtype) -> None:
    layer = drawn_layer(chunk_size, dtype)
    generator = torch.Generator().manual_seed(count)
    windows = torch.randint(5, (chunk_size, count), generator=generator) if gathered else None
    states = drawn(*((5,) if gathered else (chunk_size, count)), 12, dtype=dtype).requires_grad_()
    (weights,) = layer.fused().args
    values = [
        layer.fused()(states, windows),
        by_parts(layer, states, windows),
        merge_by_definition(weights, states, windows),
    ]
    weight = drawn(count, 12, dtype=dtype, seed=1)
    inputs = [states, *layer.parameters()]
    one, *others = (torch.autograd.grad((value * weight).sum(), inputs) for value in values)
    for value, gradients in zip(values[1:], others, strict=True):
        for actual, expected in zip([values[0], *one], [value, *gradients], strict=True):
            scale = max(1.0, float(expected.detach().abs().max()))
            assert float((actual - expected).detach().abs().max()) <= TOLERANCE[dtype] * scale
    assert all(bool(gradient.any()) for gradient in one)


@pytest.mark.parametrize("windows", [None, torch.tensor([[0, 3, 1, 1], [2, 3, 1, 0], [0, 0, 1, 3]])])
def test_its_gradient_is_its_derivative(windows: torch.Tensor | None) -> None:
    layer = drawn_layer(3, d_model=4, num_heads=2)
    states = drawn(*((4,) if windows is not None else (3, 2)), 4).requires_grad_()
    (weights,) = layer.fused().args
    assert torch.autograd.gradcheck(lambda states, *weights: merge(weights, states, windows), (states, *weights))


def test_a_gradient_taken_twice_is_the_same() -> None:
    layer, states = drawn_layer(2), drawn(2, 5, 12).requires_grad_()
    loss = layer.fused()(states, None).square().sum()
    inputs = [states, *layer.parameters()]
    first, second = (torch.autograd.grad(loss, inputs, retain_graph=True) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_second_derivative_is_refused_in_training_mode_and_taken_in_evaluation_mode() -> None:
    model = RegularGPT(RegularGPTConfig(d_model=4, num_heads=2), vocab_size=2, num_classes=2).double()
    inputs = torch.randint(2, (2, 11), generator=torch.Generator().manual_seed(0))

    def gradient() -> torch.Tensor:
        (taken,) = torch.autograd.grad(model.last(inputs).square().sum(), [model.embedding.weight], create_graph=True)
        return taken

    with pytest.raises(ValueError, match=r"create_graph: .* call model.eval\(\)"):
        gradient()
    model.eval()
    (second,) = torch.autograd.grad(gradient().square().sum(), [model.embedding.weight])
    assert bool(second.any())


def test_transforms_take_the_layer_apart() -> None:
    model = RegularGPT(RegularGPTConfig(d_model=12, num_heads=3), vocab_size=2, num_classes=2).double()
    inputs = torch.randint(2, (2, 11), generator=torch.Generator().manual_seed(0))
    parameters = dict(model.named_parameters())

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(model, parameters, (inputs,))[:, -1].square().sum()

    transformed = torch.func.grad(loss)(parameters)
    expected = torch.autograd.grad(model.last(inputs).square().sum(), list(parameters.values()))
    for actual, other in zip(transformed.values(), expected, strict=True):
        torch.testing.assert_close(actual, other)


def in_evaluation_mode(layer: MergeLayer) -> None:
    layer.eval()


def with_a_hook(layer: MergeLayer) -> None:
    layer.to_query.register_forward_hook(lambda module, given, output: output + 1)


def with_another_norm(layer: MergeLayer) -> None:
    layer.norms[0] = nn.RMSNorm(12)


def with_another_epsilon(layer: MergeLayer) -> None:
    layer.norms[0] = nn.LayerNorm(12, eps=0.1)


def with_a_bias(layer: MergeLayer) -> None:
    layer.to_output = nn.Linear(12, 12)


@pytest.mark.parametrize(
    "change", [in_evaluation_mode, with_a_hook, with_another_norm, with_another_epsilon, with_a_bias]
)
def test_a_layer_that_is_not_as_it_was_made_is_taken_apart(change) -> None:
    layer = drawn_layer(2)
    assert layer.fused() is not None
    change(layer)
    assert layer.fused() is None


def test_what_a_subclass_replaces_is_computed() -> None:
    class Doubled(MergeLayer):
        def output(self, newest: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
            return 2 * super().output(newest, attended)

    assert Doubled(d_model=12, num_heads=3, chunk_size=2).fused() is None


def test_without_gradients_the_layer_is_taken_apart() -> None:
    with torch.no_grad():
        assert drawn_layer(2).fused() is None


def test_parts_may_lie_in_memory_in_any_way() -> None:
    (weights,) = drawn_layer(3, d_model=4, num_heads=2).fused().args
    parts = drawn(2, 3, 4).transpose(0, 1).requires_grad_()
    one, other = (torch.autograd.grad(merge(weights, given).sum(), parts)[0] for given in (parts, parts.contiguous()))
    torch.testing.assert_close(one, other)
