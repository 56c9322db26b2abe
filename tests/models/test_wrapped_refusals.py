"""Nets of a user's own that cannot be trained, and inputs and states that do not fit, are named in a sentence."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel

from lengthwise import certify, length_curve, make_spec, make_task, train, wrap
from lengthwise.models.base import RecurrentModel

COMPILED = pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated")
"""What torch says of itself where it imports its compiler."""


RECIPE = make_spec("parity", "gru", {"train": {"steps": 2, "batch_size": 4, "min_length": 4, "max_length": 6}}).recipe


class Plain(RecurrentModel):
    """As the page about nets of one's own has it: an embedding, a map and a read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.inner, self.readout = nn.Embedding(2, 4), nn.Linear(8, 4), nn.Linear(4, 2)

    def reset_parameters(self, generator: torch.Generator) -> None: ...

    def initial_state(self, batch_size: int) -> torch.Tensor:
        return torch.zeros(batch_size, 4)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.tanh(self.inner(torch.cat([self.embedding(token), state], 1)))
        return self.readout(state), state


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ([[0, 1]], "expected a tensor of ids of symbols .*, got a list; torch.as_tensor"),
        (np.array([[0, 1]]), "expected a tensor of ids of symbols .*, got an ndarray"),
        (torch.tensor([[True, False]]), "expected ids of symbols .*, torch.int64, got .*torch.bool"),
        (torch.zeros(2, 0, dtype=torch.int64), "expected at least 1 symbol, got 0"),
        (torch.tensor([0, 1]), r"expected ids of symbols .*, torch.int64, got \[2\]"),
    ],
)
def test_what_is_no_batch_of_strings_is_named_by_nets_of_either_kind(inputs, sentence: str) -> None:
    for net in (wrap(nn.Embedding(2, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 2)), Plain()):
        with pytest.raises(ValueError, match=sentence):
            net(inputs)


CONTAINERS = {
    "compiled": (torch.compile, "give core._orig_mod"),
    "data parallel": (nn.DataParallel, "give core.module"),
    "averaged": (AveragedModel, "give core.module"),
    "parametrized": (
        lambda core: nn.utils.parametrizations.orthogonal(core, "weight_hh_l0"),
        "call torch.nn.utils.parametrize.remove_parametrizations(core, 'weight_hh_l0')",
    ),
}
"""What torch puts around a core, and how a user gets the core."""


@COMPILED
@pytest.mark.parametrize("name", CONTAINERS)
def test_the_way_to_a_module_within_another_is_named(name: str) -> None:
    around, way_out = CONTAINERS[name]
    container = around(nn.GRU(4, 6))
    with pytest.raises(ValueError, match=r"^core: expected an nn\.RNN") as caught:
        wrap(nn.Embedding(2, 4), container, nn.Linear(6, 2))
    assert str(caught.value).endswith(f"; {way_out}")
    inner = getattr(container, way_out.partition("core.")[2], None)
    if name == "parametrized":
        inner = nn.utils.parametrize.remove_parametrizations(container, "weight_hh_l0")
    wrap(nn.Embedding(2, 4), inner, nn.Linear(6, 2))


@COMPILED
@pytest.mark.unchecked
@pytest.mark.parametrize("around", [torch.compile, nn.DataParallel])
def test_a_whole_net_within_another_module_is_named(around) -> None:
    net = wrap(nn.Embedding(2, 4), nn.GRU(4, 6), nn.Linear(6, 2))
    name = {torch.compile: "_orig_mod"}.get(around, "module")
    for act in (certify, lambda model, task: train(model, task, RECIPE), lambda *given: length_curve(*given, [5])):
        with pytest.raises(ValueError, match=rf"^model: expected a model of this package, got .*; give model\.{name}$"):
            act(around(net), make_task("parity"))


def test_sparse_gradients_are_refused_before_training() -> None:
    net = wrap(nn.Embedding(2, 4, sparse=True), nn.GRU(4, 6), nn.Linear(6, 2))
    with pytest.raises(
        ValueError, match=r"got embedding with sparse=True; set model\.get_submodule\('embedding'\)\.sparse = False"
    ):
        train(net, make_task("parity"), RECIPE)
    net.embedding.sparse = False
    train(net, make_task("parity"), RECIPE)


class SparseCall(nn.Embedding):
    """An embedding whose own code asks for a sparse gradient, which no attribute shows."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, self.weight, sparse=True)


@pytest.mark.unchecked
def test_a_sparse_gradient_is_named_before_the_weights_change() -> None:
    net = wrap(SparseCall(2, 4), nn.GRU(4, 6), nn.Linear(6, 2))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(
        ValueError, match=r"^model: expected dense gradients, .*, got a sparse gradient of embedding\.weight; leave"
    ):
        train(net, make_task("parity"), RECIPE)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_that_would_not_move_are_not_trained(dtype: torch.dtype) -> None:
    net = wrap(nn.Embedding(2, 4), nn.GRU(4, 6), nn.Linear(6, 2)).to(dtype)
    with pytest.raises(ValueError, match=rf"got embedding.weight in {dtype}; train model.float\(\)"):
        train(net, make_task("parity"), RECIPE)
    train(net.float(), make_task("parity"), RECIPE)


class OfHalfAState(Plain):
    """Its `readout` takes a part of a state, where `forward` gives it a whole one."""

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.tanh(self.inner(torch.cat([self.embedding(token), state], 1)))
        return self.readout(state[:, :2]), state


@pytest.mark.unchecked
def test_a_readout_of_half_a_state_is_named() -> None:
    net = OfHalfAState()
    net.readout = nn.Linear(2, 2)
    for act in (certify, lambda model, task: train(model, task, RECIPE)):
        with pytest.raises(
            ValueError, match=r"^OfHalfAState.readout: expected a result .*; let readout take a whole state"
        ):
            act(net, make_task("parity"))


def test_parts_that_stay_as_they_are_may_be_sparse_or_small() -> None:
    net = wrap(nn.Embedding(2, 4, sparse=True).requires_grad_(False), nn.GRU(4, 6), nn.Linear(6, 2))
    train(net, make_task("parity"), RECIPE)
    with torch.inference_mode():
        net.embedding = nn.Embedding(2, 4)
    with pytest.raises(ValueError, match="weights made within inference_mode; make the model outside"):
        train(net, make_task("parity"), RECIPE)


class OtherStates(Plain):
    """Its method `states` does not yield what `step` returns."""

    def __init__(self, given) -> None:
        super().__init__()
        self.given = given

    def states(self, inputs: torch.Tensor):
        return self.given(inputs)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.readout(torch.cat(list(super().states(inputs)), 1))

    def last_state(self, inputs: torch.Tensor) -> torch.Tensor:
        return list(super().states(inputs))[-1][:, -1]


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda inputs: None, "expected an iterator of states .*, got NoneType; yield the"),
        (lambda inputs: iter(()), "expected the states that step returns, one for each symbol, got different states"),
        (
            lambda inputs: iter([torch.zeros(len(inputs), 1, 4)]),
            "expected the states that step returns, one for each symbol",
        ),
        (
            lambda inputs: iter([torch.zeros(*inputs.shape, 4)]),
            "expected the states that step returns, one for each symbol",
        ),
        (
            lambda inputs: iter([torch.zeros(*inputs.shape, 9)]),
            "expected the states that step returns, one for each symbol",
        ),
    ],
)
def test_states_are_those_of_steps(given, sentence: str) -> None:
    for act in (certify, lambda model, task: train(model, task, RECIPE)):
        with pytest.raises(ValueError, match=rf"^OtherStates\.states: {sentence}"):
            act(OtherStates(given), make_task("parity"))
