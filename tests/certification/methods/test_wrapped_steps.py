"""Proofs for users' own nets: bounds hold what torch computes, right nets are proved, and none that errs far out."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from last_symbol import LastSymbol
from slow_nets import LAST, NEVER, SLOW, slow_net
from torch import nn

from lengthwise import certify, wrap
from lengthwise.automata import Transducer
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.intervals.prover import IntervalProver
from lengthwise.certification.methods.steps import steps_of
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.layers.recurrent_layer import Topmost
from lengthwise.models.wrapped import WrappedRNN
from lengthwise.ops.intervals import Intervals

TASK = LastSymbol()
CORES = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
HEADS = {
    "linear": lambda: nn.Linear(6, 2),
    "no bias": lambda: nn.Linear(6, 2, bias=False),
    "hidden": lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 2)),
    "smooth": lambda: nn.Sequential(nn.Tanh(), nn.Linear(6, 4), nn.Sigmoid(), nn.Identity(), nn.Linear(4, 2)),
    "nested": lambda: nn.Sequential(nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.ReLU())), nn.Linear(6, 2)),
}


@pytest.mark.parametrize("kind", CORES)
@given(
    seed=st.integers(0, 10**6),
    factor=st.sampled_from([0.3, 1.0, 4.0]),
    radius=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    layers=st.integers(1, 3),
    bias=st.booleans(),
    head=st.sampled_from(sorted(HEADS)),
)
def test_steps_stay_within_their_bounds(
    kind: str, seed: int, factor: float, radius: float, layers: int, bias: bool, head: str
) -> None:
    torch.manual_seed(seed)
    options = {"nonlinearity": ("tanh", "relu")[seed % 2]} if kind == "rnn" else {}
    core = CORES[kind](4, 6, layers, bias=bias, batch_first=bool(seed % 3), **options)
    model = wrap(nn.Embedding(2, 4), core, HEADS[head]()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= factor
        centers = next(iter(model.states(torch.randint(2, (4, 5)))))[:, -1].double()
        offsets = 2 * torch.rand(32, *centers.shape, dtype=torch.float64) - 1
        offsets[:16] = offsets[:16].sign()
        points = (centers + 0.99 * radius * offsets).float()
        enclosures = Intervals.around(centers, radius + 1e-5 * float(1 + centers.abs().max()))
        steps = steps_of(model)
        for symbol in range(2):
            bounds = steps.after(enclosures, symbol)
            _, after = model.step(torch.full((128,), symbol), points.flatten(0, 1))
            after = after.unflatten(0, (32, 4)).double()
            assert bool(((bounds.low <= after) & (after <= bounds.high)).all())
            for answer in range(2):
                leads = model.readout(after.float()).double() * (1.0 if answer else -1.0)
                lead = float((leads[..., 1] - leads[..., 0]).min())
                assert steps.margin(bounds, torch.full((4,), answer)) <= lead


def slow(kind: str, num_right: int | None, pace: float) -> WrappedRNN:
    """A slow unit's cell (`slow_nets`), read by one linear map: b, until it has seen more a in a row than that."""
    cell = slow_net(kind, None, pace).layers[0].cell
    embedding, head = nn.Embedding(2, 8), nn.Linear(8, 2)
    with torch.no_grad():
        embedding.weight.copy_(torch.tensor([[2.0, -2.0], [-2.0, 2.0]]) @ torch.eye(2, 8))
        model = wrap(embedding, cell, head)
        states = torch.cat(list(model.states(torch.zeros(1, NEVER, dtype=torch.long))), 1)[0, :, -8:]
        rising = states[:, SLOW]
        threshold = 1.5 * rising.max() if num_right is None else (rising[num_right - 1] + rising[num_right]) / 2
        head.weight.zero_()
        head.bias.zero_()
        head.weight[1, LAST], head.weight[1, SLOW] = 1.0, -states[-1, LAST] / threshold
    return model


def is_proved(model: WrappedRNN) -> bool:
    for radius in (4.0, 1.0, 0.3, 0.1):
        extraction = extract_recurrent(model, TASK.symbols, radius=radius)
        machine = extraction.machine
        assert isinstance(machine, Transducer)
        if machine.difference_string(TASK.transducer) is None:
            try:
                IntervalProver().prove(model, mask_unsupervised(extraction, TASK.transducer))
            except Unproved:
                continue
            return True
    return False


@pytest.mark.parametrize("kind", ["gru", pytest.param("lstm", marks=pytest.mark.slow)])
def test_of_slow_nets_those_that_never_err_are_proved(kind: str) -> None:
    assert is_proved(slow(kind, None, pace=0.3))
    for num_right in (25, 38, 60):
        model = slow(kind, num_right, pace=0.04)
        with torch.no_grad():
            says = model(torch.zeros(1, num_right + 1, dtype=torch.long))[0].argmax(-1)
        assert says.tolist() == [0] * num_right + [1], "planted"
        assert not is_proved(model)


@pytest.mark.usefixtures("fewer_strings")
def test_a_certificate_says_so() -> None:
    certificate = certify(slow("gru", None, pace=0.3), TASK)
    assert certificate.level == "proved"
    assert certificate.model == {"name": "wrapped", "core": "gru", "hidden_size": 8, "num_layers": 1, "head": "Linear"}


class Doubled(nn.Linear):
    """Computes something else."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(states)


@pytest.mark.parametrize(
    ("core", "head", "sentence"),
    [
        (nn.LSTMCell(4, 6), nn.Linear(6, 2), "expected only parts that have bounds, got LSTMCell"),
        (nn.LSTM(4, 6, proj_size=3), nn.Linear(3, 2), "a cell with proj_size=0, got 3"),
        (nn.GRU(4, 6), Doubled(6, 2), "only parts that have bounds, got Doubled"),
        (nn.GRU(4, 6), nn.Sequential(nn.Linear(6, 2), nn.ReLU()), "a head that ends in an nn.Linear"),
        (
            nn.GRU(4, 6),
            nn.Sequential(nn.LayerNorm(6, bias=False), nn.Linear(6, 2)),
            "with weight and bias over",
        ),
        (nn.GRU(4, 6), nn.Sequential(Topmost(6), nn.Linear(6, 2)), "a head made of .*, got Topmost"),
    ],
)
def test_what_has_no_bounds_is_named(core: nn.Module, head: nn.Module, sentence: str) -> None:
    model = wrap(nn.Embedding(2, 4), core, head)
    with pytest.raises(ValueError, match=sentence):
        steps_of(model).margin(Intervals.around(model.initial_state(1).double()), torch.zeros(1, dtype=torch.long))
