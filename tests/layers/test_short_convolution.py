"""The pieces that stand before and after a recurrence: a short convolution, and a feed-forward layer."""

import pytest
import torch

from lengthwise.layers.feed_forward_layer import FeedForwardLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.layers.short_convolution import ShortConvolution


def made(layer: RecurrentLayer) -> RecurrentLayer:
    layer.reset_parameters(torch.Generator().manual_seed(0))
    return layer.double()


def draw(length: int, channels: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randn(2, length, channels, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 63])
def test_a_short_convolution_is_its_sum(length: int, width: int) -> None:
    """Values, and the gradients of inputs, of the state before them and of kernels."""
    layer, features = made(ShortConvolution(channels=3, width=width)), draw(length, 3).requires_grad_()
    before = draw(width + 9, 3)[:, : width - 1].flatten(1).requires_grad_()
    outputs, state = layer(features, before)
    padded = torch.cat([before.unflatten(1, (width - 1, 3)), features], 1)
    windows = padded.unfold(1, width, 1)  # [B, T, channels, width], the present input last
    expected = (windows * layer.weight).sum(-1)
    torch.testing.assert_close(outputs, expected)
    assert torch.equal(state, padded[:, length:].flatten(1))
    weight, last = draw(length + 1, 3)[:, 1:], draw(width + 5, 3)[:, : width - 1].flatten(1)
    gradients = [
        torch.autograd.grad((sums * weight).sum() + (after * last).sum(), (features, before, layer.weight))
        for sums, after in ((outputs, state), (expected, padded[:, length:].flatten(1)))
    ]
    torch.testing.assert_close(*gradients)


def test_a_short_convolution_begins_with_zeros() -> None:
    layer, features = ShortConvolution(channels=3, width=4), draw(2, 3)
    assert torch.equal(layer.initial_state(features[:, 0]), torch.zeros(2, 9, dtype=torch.float64))


@pytest.mark.parametrize("width", [1, 4])
def test_a_short_convolution_goes_on_where_it_stopped(width: int) -> None:
    layer, features = made(ShortConvolution(channels=3, width=width)), draw(9, 3)
    state = layer.initial_state(features[:, 0])
    whole, last = layer(features, state)
    outputs = []
    for part in features.split([1, 2, 6], 1):
        answers, state = layer(part, state)
        outputs.append(answers)
    torch.testing.assert_close(torch.cat(outputs, 1), whole)
    assert torch.equal(state, last)


def test_a_kernel_over_no_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="width: expected a whole number of at least 1, got 0"):
        ShortConvolution(channels=3, width=0)


def test_a_feed_forward_layer_is_its_equation_and_has_no_state() -> None:
    layer, features = made(FeedForwardLayer(d_model=4, hidden=6)), draw(5, 4)
    outputs, state = layer(features, layer.initial_state(features[:, 0]))
    gate = features @ layer.gate.weight.T
    expected = (gate * gate.sigmoid() * (features @ layer.value.weight.T)) @ layer.output.weight.T
    torch.testing.assert_close(outputs, expected)
    assert state.shape == (2, 0)
