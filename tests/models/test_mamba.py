"""Mamba: weights set by hand, the range of decays, sizes, and an independent implementation."""

import math

import pytest
import torch
import transformers
from transformers.models.mamba.modeling_mamba import MambaMixer
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

from lengthwise.layers.mamba import Mamba2Layer, MambaLayer, SelectiveLayer
from lengthwise.models.base import make_model
from lengthwise.models.mamba import Mamba, MambaConfig
from lengthwise.tasks import make_task

LENGTH = 10_000


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def silu_of(x: float) -> float:
    return x / (1 + math.exp(-x))


def parity_by_hand(version: int, eigenvalues: str) -> Mamba:
    """One state that starts at 1: its decay is 1 after a 0, and after a 1 it is 2 exp(-200) - 1 = -1, or exp(-200) = 0.

    A norm makes sqrt(2) or -sqrt(2) of the two symbols in feature 0, and 1 in feature 1; the state, read by c = 1, is
    added to feature 2, from which the answer is read.
    """
    heads = {"num_heads": 1} if version == 2 else {}
    config = MambaConfig(d_model=4, d_state=1, version=version, **heads, eigenvalues=eigenvalues, learned_start=True)
    model = Mamba(config, vocab_size=2, num_classes=2)
    layer, root = model.layers[0], math.sqrt(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight[:, 0], model.embedding.weight[:, 1] = (
            torch.tensor([-1.0, 1.0]),
            torch.tensor([1.0, -1.0]),
        )
        model.norms[0].weight[0], model.norms[0].bias[1] = 1, 1
        layer.start[..., 0] = 1
        if version == 1:
            layer.input_map.weight[:2, :2] = torch.tensor([[10.0, 0.0], [0.0, 1.0]])  # x: 14.1 or 0, and SiLU(1)
            layer.input_map.weight[8, 1] = 1  # the gate of channel 0
            layer.selection.weight[0, 0], layer.selection.weight[2, 1] = 1, 1 / silu_of(1)  # its step, and c
            layer.step_map.weight[0], layer.step_map.bias[0] = 350 / silu_of(10 * root), -150
        else:
            layer.input_map.weight[0, 1] = 1
            layer.input_map.weight[17, 1] = 1  # c, after x and b
            layer.input_map.weight[18, 0], layer.bias[0] = 175 / root, 25
            layer.norm.weight.fill_(1)
        layer.output_map.weight[2, 0] = 1 / silu_of(1)
        model.readout[1].weight.fill_(1)
        model.readout[2].weight[:2, 2] = torch.tensor([1.0, -1.0])
        model.readout[4].weight.copy_(torch.eye(4)[:2])
    return model


@pytest.mark.unchecked
@pytest.mark.parametrize("version", [1, 2])
def test_signed_decays_find_parity_at_any_length_and_others_forget(version: int) -> None:
    """Grazzi et al., theorem 1: with decays in [0, 1], answers along 1, 11, 111, ... stop alternating."""
    task = make_task("parity")
    inputs = task.sample(2, LENGTH, torch.Generator().manual_seed(0)).inputs
    inputs[0] = 1
    with torch.no_grad():
        signed, positive = (parity_by_hand(version, kind)(inputs).argmax(-1) for kind in ("signed", "positive"))
    assert torch.equal(signed, task.solve(inputs))
    assert int(positive[0].diff().count_nonzero()) <= 1


@pytest.mark.parametrize("version", [1, 2])
def test_positive_decays_tell_no_long_runs_of_a_symbol_apart(version: int) -> None:
    """Whatever the weights: every state is monotone from some position on, and what is added to it dies out."""
    model = make_model("mamba", make_task("parity"), d_model=8, version=version).double()
    with torch.no_grad():
        logits = model(torch.ones(1, LENGTH, dtype=torch.long))
    assert float(logits[0].diff(dim=0)[-1].abs().max()) < 1e-6


LAYERS = {
    1: lambda **named: MambaLayer(d_model=8, d_state=4, **named),
    2: lambda **named: Mamba2Layer(d_model=8, d_state=4, num_heads=4, **named),
}


def made(version: int, **named) -> SelectiveLayer:
    layer = LAYERS[version](**named).double()
    layer.reset_parameters(torch.Generator().manual_seed(0))
    return layer


@pytest.mark.parametrize("version", LAYERS)
def test_decays_lie_in_their_range_and_fill_it(version: int) -> None:
    features = 1000 * torch.randn(4, 50, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        positive, signed = (made(version, eigenvalues=kind).decays(features) for kind in ("positive", "signed"))
    torch.testing.assert_close(signed, 2 * positive - 1)
    assert float(positive.min()) >= 0
    assert float(positive.max()) <= 1
    assert float(signed.min()) < -0.99
    assert float(signed.max()) > 0.9


@pytest.mark.parametrize("version", LAYERS)
def test_parameters_are_as_many_as_the_equations_have(version: int) -> None:
    d, p, heads = 8, 4, 4
    e = 2 * d
    expected = {
        1: d * 2 * e + e * (math.ceil(d / 16) + 2 * p) + (math.ceil(d / 16) + 1) * e + p * e + e + e * d,
        2: d * (2 * e + 2 * p + heads) + 3 * heads + e + e * d,
    }[version]
    convolved = {1: e, 2: e + 2 * p}[version]
    layers = [made(version), made(version, learned_start=True), made(version, conv=4)]
    counts = [sum(each.numel() for each in layer.parameters()) for layer in layers]
    assert counts == [expected, expected + e * p, expected + 5 * convolved]
    assert [layer.state_size for layer in layers] == [e * p, e * p, e * p + 3 * convolved]


@pytest.mark.parametrize("version", LAYERS)
def test_steps_at_first_are_between_a_thousandth_and_a_tenth(version: int) -> None:
    steps = torch.nn.functional.softplus(made(version).step_bias().detach())
    assert 0.001 <= float(steps.min()) < float(steps.max()) <= 0.1


def test_version_2_rejects_heads_that_do_not_divide_its_width() -> None:
    sentence = r"num_heads: expected a divisor of 2 d_model=128, got 6; choose from \[1, 2, 4, 8"
    with pytest.raises(ValueError, match=sentence):
        make_model("mamba", make_task("parity"), version=2, num_heads=6)
    make_model("mamba", make_task("parity"), version=1, d_model=3)


def published(version: int) -> torch.nn.Module:
    sizes = {"hidden_size": 8, "state_size": 4, "expand": 2, "vocab_size": 3}
    if version == 1:
        return MambaMixer(transformers.MambaConfig(**sizes, time_step_rank=1), 0).double()
    settings = transformers.Mamba2Config(**sizes, num_heads=4, head_dim=4, n_groups=1, chunk_size=8)
    return Mamba2Mixer(settings, 0).double()


@pytest.mark.parametrize("conv", [0, 4])
@pytest.mark.parametrize("version", LAYERS)
def test_the_library_transformers_computes_the_same(version: int, conv: int) -> None:
    """Its mixers, which have positive decays, with our weights; without a convolution theirs is the identity."""
    layer, theirs = made(version, conv=conv), published(version)
    ours = dict(layer.named_parameters())
    names = {"in_proj.weight": "input_map.weight", "out_proj.weight": "output_map.weight", "D": "skip"}
    names |= {"x_proj.weight": "selection.weight", "dt_proj.weight": "step_map.weight", "dt_proj.bias": "step_map.bias"}
    names |= {"dt_bias": "bias", "norm.weight": "norm.weight", "conv1d.bias": "convolution_bias"}
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name == "A_log":
                parameter.copy_(layer.log_rate.mT if version == 1 else layer.log_rate)
            elif name == "conv1d.weight":
                parameter.copy_(layer.convolution.weight[:, None] if conv else torch.eye(4)[3].expand_as(parameter))
            elif name == "conv1d.bias" and not conv:
                parameter.zero_()
            else:
                parameter.copy_(ours[names[name]])
        features = 10 * torch.randn(2, 37, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        outputs, _ = layer(features, layer.initial_state(features[:, 0]))
        torch.testing.assert_close(outputs, theirs(features).double(), rtol=1e-4, atol=1e-4)
