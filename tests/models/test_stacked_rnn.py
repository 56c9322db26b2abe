"""What stacked recurrent networks share, and RWKV against its sums."""

import pytest
import torch

from lengthwise.layers.rwkv import ChannelMix, TimeMix
from lengthwise.models import MODELS
from lengthwise.models.stacked_rnn import StackedRNN

MEMBERS = [(name, {}) for name in MODELS if issubclass(MODELS[name], StackedRNN)]
MEMBERS += [("diagonal-linear-rnn", {"transitions": "input-dependent"}), ("s4d", {"start": "lin"})]
MEMBERS += [("s4d", {"start": "inv"}), ("xlstm", {"cells": "sm", "conv": 3, "mlp": 5})]
MEMBERS += [("mamba", {"version": version, "learned_start": True, "conv": 4}) for version in (1, 2)]


def make(name: str, settings: dict) -> StackedRNN:
    config = MODELS[name].Config(**{"num_layers": 2, "d_model": 8, **settings})
    model = MODELS[name](config, vocab_size=3, num_classes=4, generator=torch.Generator().manual_seed(0))
    assert isinstance(model, StackedRNN)
    return model.double()


@pytest.mark.parametrize("name", ["s4d", "s5", "diagonal-linear-rnn", "gru"])
def test_widths_may_be_odd(name: str) -> None:
    """Parts of a state of complex numbers are then at odd distances from string to string."""
    model = make(name, {"d_model": 9})
    inputs = torch.randint(3, (4, 7), generator=torch.Generator().manual_seed(1))
    logits = model(inputs)
    logits.sum().backward()
    torch.testing.assert_close(logits[2:3], model(inputs[2:3]))


@pytest.mark.parametrize(("name", "settings"), MEMBERS)
def test_parts_of_a_string_leave_no_seam(name: str, settings: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(name, settings)
    inputs = torch.randint(3, (2, 23), generator=torch.Generator().manual_seed(1))
    whole, last = model(inputs), model.last_state(inputs)
    monkeypatch.setattr(type(model), "positions_per_chunk", 5)
    torch.testing.assert_close(model(inputs), whole)
    torch.testing.assert_close(model.last_state(inputs), last)


@pytest.mark.parametrize(("name", "settings"), MEMBERS)
def test_states_are_what_answers_are_read_from(name: str, settings: dict) -> None:
    model = make(name, settings)
    inputs = torch.randint(3, (2, 9), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(model.readout(torch.cat(list(model.states(inputs)), 1)), model(inputs))


@pytest.mark.parametrize(
    ("name", "settings", "bias"),
    [
        ("linear-rnn", {}, "layers.0.c.bias"),
        ("block-linear-rnn", {"columns": "rescaled"}, "layers.0.input_map.2.bias"),
    ],
)
def test_features_that_overflow_between_layers_give_no_answer(name: str, settings: dict, bias: str) -> None:
    config = MODELS[name].Config(num_layers=2, d_model=8, **settings)
    model = MODELS[name](config, vocab_size=3, num_classes=4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        dict(model.named_parameters())[bias].fill_(3e38)
    inputs = torch.zeros(2, 1, dtype=torch.long)
    assert not bool(model(inputs).isfinite().any())
    assert not bool(model.last(inputs).isfinite().any())


def test_rwkv_averages_values_with_decaying_weights() -> None:
    """The sums of the paper, written out, in float64."""
    layer = TimeMix(d_model=4)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    layer = layer.double()
    features = torch.randn(1, 12, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    outputs, _ = layer(features, layer.initial_state(features[:, 0]))
    shifted = torch.cat([torch.zeros_like(features[:, :1]), features[:, :-1]], 1)
    r, k, v = (
        linear(share * features + (1 - share) * shifted)
        for linear, share in zip((layer.receptance, layer.key, layer.value), layer.mix, strict=True)
    )
    decay, averages = layer.log_decay.exp(), []
    for t in range(12):
        ages = torch.arange(t - 1, -1, -1, dtype=torch.float64)[None, :, None]
        weights = torch.cat([torch.exp(-ages * decay + k[:, :t]), torch.exp(layer.bonus + k[:, t : t + 1])], 1)
        averages.append((weights * v[:, : t + 1]).sum(1) / weights.sum(1))
    torch.testing.assert_close(outputs, layer.output(torch.sigmoid(r) * torch.stack(averages, 1)))


def test_large_keys_are_no_trouble() -> None:
    """e^200 is beyond float32: the largest exponent is taken out, and the value of the largest key is what is left."""
    layer = TimeMix(d_model=4)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.key.weight.copy_(200 * torch.eye(4))
        layer.value.weight.copy_(torch.eye(4))
        layer.output.weight.copy_(torch.eye(4))
        layer.receptance.weight.zero_()
        layer.mix.fill_(1.0)
        layer.log_decay.fill_(-20.0)
    features = torch.tensor([1.0, 3.0, -3.0, 2.0])[None, :, None].expand(1, 4, 4)
    outputs, _ = layer(features, layer.initial_state(features[:, 0]))
    torch.testing.assert_close(2 * outputs[0, :, 0], torch.tensor([1.0, 3.0, 3.0, 3.0]))


def test_channels_are_mixed_by_the_equation() -> None:
    layer = ChannelMix(d_model=4)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    features = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(1))
    shifted = torch.cat([torch.zeros(2, 1, 4), features[:, :-1]], 1)
    r, k = (share * features + (1 - share) * shifted for share in layer.mix)
    expected = torch.sigmoid(layer.receptance(r)) * layer.value(torch.relu(layer.key(k)) ** 2)
    outputs, state = layer(features, layer.initial_state(features[:, 0]))
    torch.testing.assert_close(outputs, expected)
    assert torch.equal(state, features[:, -1])
