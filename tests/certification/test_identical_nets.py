"""Nets with the same class, settings and bits are equal without a search for a machine, and no others are."""

import copy

import pytest
import torch
from torch import Tensor, nn

from lengthwise import equal, make_model, make_task, wrap, wrap_module
from lengthwise.certification.common_machine import are_identical
from lengthwise.models.base import SequenceModel

pytestmark = pytest.mark.usefixtures("fewer_strings")

PARITY = make_task("parity")


def wrapped(kind: type[nn.RNNBase]) -> SequenceModel:
    return wrap(nn.Embedding(2, 4), kind(4, 4, batch_first=True), nn.Linear(4, 2))


NETS = {
    "registered": lambda: make_model("gru", PARITY, d_model=4),
    "LSTM": lambda: wrapped(nn.LSTM),
    "GRU": lambda: wrapped(nn.GRU),
}


@pytest.mark.parametrize("name", NETS)
def test_a_copy_is_equal(name: str) -> None:
    net = NETS[name]()
    result = equal(net, copy.deepcopy(net), symbols="ab")
    assert (result.equal, result.level) == (True, "proved")
    assert str(result).endswith("give the same answer to every string (they are identical)")
    assert result.decided_by == "the same class, settings and weights, bit for bit"


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("change", ["one bit", "sign of zero", "precision"])
def test_one_bit_is_enough_to_differ(name: str, change: str) -> None:
    net = NETS[name]()
    weight = next(net.parameters()).data.view(-1)
    weight[0] = 0.0
    other = copy.deepcopy(net)
    assert are_identical(net, other)
    first = next(other.parameters()).data.view(-1)
    if change == "precision":
        other = other.double()
    else:
        first[0] = torch.nextafter(first[0], torch.tensor(1.0)) if change == "one bit" else -0.0
    assert not are_identical(net, other)


class Scaled(nn.Module):
    """Logits with a factor that is neither a parameter nor a buffer, and noise of this size."""

    def __init__(self, factor: float, noise: float = 0.0) -> None:
        super().__init__()
        self.factor, self.noise = factor, noise

    def forward(self, inputs: Tensor) -> Tensor:
        odd = (inputs.cumsum(1) % 2).float() - 0.5 + self.noise * torch.randn(inputs.shape)
        return torch.stack([odd, self.factor * odd], -1)


def test_attributes_count() -> None:
    net, other = (wrap_module(Scaled(factor), num_symbols=2, num_classes=2) for factor in (-1.0, -2.0))
    assert are_identical(net, copy.deepcopy(net))
    assert not are_identical(net, other)
    other.module_or_method = None  # type: ignore[assignment]
    assert not are_identical(net, other)


def test_a_net_with_random_answers_is_not_equal_to_its_copy() -> None:
    module = Scaled(-1.0)
    net = wrap_module(module, num_symbols=2, num_classes=2)
    module.noise = 9.0
    try:
        result = equal(net, copy.deepcopy(net), symbols="ab")
    except ValueError:
        return  # rejected, because its answers change
    assert result.equal is not True
