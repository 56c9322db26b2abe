"""The bounds of the separate checker on wrapped nets and read-outs contain what torch computes."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from last_symbol import LastSymbol
from proved_nets import NETS, prove
from torch import nn

from lengthwise.certification import checker
from lengthwise.certification.checker import Form, Net, between
from lengthwise.models.base import RecurrentModel, make_model
from lengthwise.models.wrapped import WrappedRNN, wrap
from lengthwise.validation import dump_named

EMBEDDING, HIDDEN = 3, 4
HEAD = (nn.Linear(HIDDEN, 5), nn.LayerNorm(5, eps=0.01), nn.Tanh(), nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))
OTHER_HEAD = (nn.Sigmoid(), nn.LayerNorm(HIDDEN), nn.Identity(), nn.Linear(HIDDEN, 2, bias=False))


def wrapped(core: str, num_layers: int, head: tuple[nn.Module, ...], **options: Any) -> WrappedRNN:
    kind = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[core]
    torch.manual_seed(num_layers)
    parts = copy.deepcopy(nn.Sequential(*head))
    model = wrap(nn.Embedding(2, EMBEDDING), kind(EMBEDDING, HIDDEN, num_layers, batch_first=True, **options), parts)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return model.eval()


def net_of(model: RecurrentModel, num_classes: int) -> Net:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    return checker.parse_net(dump_named(model.name, model.config), weights, 2, num_classes)


WRAPPED = {
    "rnn": wrapped("rnn", 2, HEAD),
    "rnn of relu": wrapped("rnn", 3, OTHER_HEAD, nonlinearity="relu"),
    "rnn without biases": wrapped("rnn", 1, HEAD, bias=False),
    "gru": wrapped("gru", 2, OTHER_HEAD),
    "lstm": wrapped("lstm", 2, HEAD),
    "small lstm": wrapped("lstm", 1, OTHER_HEAD),
}


def enclosures_around(model: RecurrentModel, radius: float) -> tuple[torch.Tensor, Form]:
    """Return states that the net reaches, moved by up to a radius, and enclosures around the reached ones."""
    with torch.no_grad():
        reached = next(iter(model.states(torch.tensor([[0, 1, 1, 0, 1]]))))[0]
    offsets = radius * (2 * torch.rand(200, *reached.shape, generator=torch.Generator().manual_seed(0)) - 1)
    slack = 1e-6 * (1 + reached.abs().max())
    low, high = ((reached + sign * (radius + slack)).double().numpy() for sign in (-1, 1))
    return (reached + offsets), between(low, high)


@pytest.mark.parametrize("radius", [0.0, 0.05])
@pytest.mark.parametrize("name", WRAPPED)
@np.errstate(all="ignore")
def test_steps_of_wrapped_nets_stay_within_their_bounds(name: str, radius: float) -> None:
    model = WRAPPED[name]
    states, enclosures = enclosures_around(model, radius)
    net = net_of(model, model.readout[-1][-1].out_features)
    assert checker.state_width(net) == states.shape[-1]
    for symbol in range(2):
        with torch.no_grad():
            _, after = model.step(torch.full((states.shape[:2].numel(),), symbol), states.flatten(0, 1))
        low, high = checker.step(net, enclosures, symbol).ends
        values = after.view(states.shape).double().numpy()
        assert ((low <= values) & (values <= high)).all()
        assert ((high - low) < 1e-3 + 100 * radius).all()


READ = {
    **WRAPPED,
    "own gru": make_model("gru", LastSymbol(), d_model=12, num_layers=2),
    "own lstm": make_model("lstm", LastSymbol(), d_model=6),
    "own rnn": make_model("rnn", LastSymbol(), d_model=6),
}


@pytest.mark.parametrize("radius", [0.0, 0.05])
@pytest.mark.parametrize("name", READ)
@np.errstate(all="ignore")
def test_logits_of_read_outs_stay_within_their_bounds(
    name: str, radius: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = READ[name]
    assert isinstance(model, RecurrentModel)
    states, enclosures = enclosures_around(model, radius)
    with torch.no_grad():
        logits = model.readout(states.flatten(0, 1)).unflatten(0, states.shape[:2])
    seen: list[Form] = []
    monkeypatch.setattr(checker, "demand_ahead", lambda form, _: seen.append(form))
    checker.demand_answers(net_of(model, logits.shape[-1]), enclosures, np.zeros(len(enclosures.center), np.int64))
    low, high = seen[0].ends
    values = logits.double().numpy()
    assert ((low <= values) & (values <= high)).all()
    assert ((high - low) < 0.1 + 1_000 * radius).all()


@np.errstate(all="ignore")
def test_forms_of_merges_have_as_many_inputs_as_their_memory_is_computed_for() -> None:
    for name in ("chunks of 2", "chunks of 3"):
        proof = prove(*NETS[name])
        weights = {key.removeprefix("weights."): array for key, array in proof.arrays.items() if key[:7] == "weights"}
        net = checker.parse_net(proof.certificate["model"], weights, 2, 2)
        sets = {key.removeprefix("sets."): array for key, array in proof.arrays.items() if key[:5] == "sets."}
        parts = [checker.enclosures_of(sets, np.array([0, 1]), index) for index in range(sets["table"].ndim)]
        num_inputs, hidden = checker.inputs_of_merges(net)
        assert len(checker.merged(net, parts).slope) == num_inputs
        assert hidden == len(weights["layers.0.feed_forwards.0.widen.bias"])


WITHOUT_PARTS = {
    "rule": "it has no bounds",
    "compiled tree": "one form contains the queries of all states",
    **dict.fromkeys(("reflections", "choices", "mixture"), "one form contains all symbols"),
}


@pytest.mark.sampled(4)  # each case allocates what the limit allows
@pytest.mark.parametrize("name", sorted(NETS.keys() - WITHOUT_PARTS.keys()))
def test_arrays_of_bounds_stay_within_the_memory_that_parts_are_made_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one state a part, no array of bounds has more numbers than the part was made for."""
    proof, expected, largest = prove(*NETS[name]), [0], [0]
    in_parts, rounded = checker.in_parts, Form.rounded

    def one_each(count: int, numbers_each: int) -> list[checker.Array]:
        expected.append(numbers_each)
        in_parts(count, numbers_each)
        return [np.array([index]) for index in range(count)]

    def record(form: Form, size: checker.Array, units: int, digits: float = np.inf) -> Form:
        largest.append(max(form.center.size, form.slope.size))
        return rounded(form, size, units, digits)

    monkeypatch.setattr(checker, "in_parts", one_each)
    monkeypatch.setattr(Form, "rounded", record)
    assert proof.verdict()
    assert max(largest) <= max(expected) <= 16 * max(largest)


@pytest.mark.parametrize("name", READ)
@np.errstate(all="ignore")
def test_arrays_of_a_step_stay_within_the_memory_that_it_is_computed_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rounded, largest = READ[name], Form.rounded, [0]
    assert isinstance(model, RecurrentModel)
    _, enclosures = enclosures_around(model, 0.0)
    net = net_of(model, model.readout(torch.tensor(enclosures.center[:1], dtype=torch.float32)).shape[-1])

    def record(form: Form, size: checker.Array, units: int, digits: float = np.inf) -> Form:
        largest.append(max(form.center.size, form.slope.size))
        return rounded(form, size, units, digits)

    monkeypatch.setattr(Form, "rounded", record)
    checker.step(net, enclosures.each(lambda a: a[..., :1, :]), 0)
    assert max(largest) <= checker.step_numbers(net) <= 32 * max(largest)
