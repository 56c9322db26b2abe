"""Proofs for torch's own cells: bounds hold what float32 computes, and no net that errs far out is proved."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from last_symbol import LastSymbol
from slow_nets import slow_net
from torch import nn

from lengthwise.automata import Transducer
from lengthwise.certification.builder import mask_unsupervised
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.checker import Rejected, between, demand_lead
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.intervals.evidence import IntervalEvidence
from lengthwise.certification.methods.intervals.prover import IntervalProver, growth, invariant_intervals
from lengthwise.certification.methods.steps import STEPS, margin, steps_of
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models.base import RecurrentModel, make_model
from lengthwise.models.wrapped import wrap
from lengthwise.ops.intervals import Intervals
from lengthwise.tasks import make_task

KINDS = ["gru", "lstm", "rnn"]
TASK = LastSymbol()


def shaken(kind: str, seed: int, factor: float, layers: int = 1) -> RecurrentModel:
    """A net whose weights are larger than training begins with, so that some of its units are saturated."""
    settings = {"activation": "tanh"} if kind == "rnn" else {"num_layers": layers}
    model = make_model(kind, TASK, seed=seed, d_model=6, **settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= factor
    return model


def test_evidence_is_about_the_kinds_whose_steps_have_bounds() -> None:
    assert sorted(IntervalEvidence.requires.models) == sorted(STEPS)


@pytest.mark.parametrize("kind", KINDS)
@given(
    seed=st.integers(0, 10**6),
    factor=st.sampled_from([0.3, 1.0, 4.0]),
    radius=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    layers=st.integers(1, 2),
)
@settings(max_examples=12)
def test_steps_stay_within_their_bounds(kind: str, seed: int, factor: float, radius: float, layers: int) -> None:
    model, generator = shaken(kind, seed, factor, layers), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        centers = next(iter(model.states(torch.randint(2, (4, 5), generator=generator))))[:, -1].double()
        offsets = 2 * torch.rand(32, *centers.shape, generator=generator, dtype=torch.float64) - 1
        offsets[:16] = offsets[:16].sign()
        points = (centers + 0.99 * radius * offsets).float()
        enclosures = Intervals.around(centers, radius + 1e-5)
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


@torch.no_grad()
def test_a_unit_that_may_be_no_number_is_not_bounded() -> None:
    """inf - inf: no tanh holds it, and it is in every number that is made of it."""
    embedding, core, head = nn.Embedding(2, 2), nn.RNN(2, 3, batch_first=True), nn.Linear(3, 2)
    for parameter in (*core.parameters(), *head.parameters()):
        parameter.zero_()
    embedding.weight.copy_(torch.tensor([[1.0, 2.0], [-1.0, 2.0]]))
    core.weight_ih_l0[:2, 0] = 20.0
    head.weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    model = wrap(embedding, core, head).eval()
    points, symbols = torch.tensor([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]), torch.tensor([0, 1])
    table, outputs = torch.tensor([[0, 1], [0, 1]]), torch.tensor([0, 1])
    bounded = invariant_intervals(steps_of(model), table, points.double())
    assert bounded is not None
    assert steps_of(model).margin(bounded, outputs) > 0
    core.weight_ih_l0[2, 1], core.weight_hh_l0[2, :2] = 3e38, -3e38
    assert model.step(symbols, points)[0].isnan().tolist() == [[True, True], [False, False]]
    assert invariant_intervals(steps_of(model), table, points.double()) is None


@pytest.mark.parametrize("batch_size", [1, 200])
@pytest.mark.parametrize("core", [nn.LSTM, nn.GRU, nn.RNN])
def test_inputs_that_are_integers_do_not_make_a_gate_exact(core: type[nn.RNNBase], batch_size: int) -> None:
    """Kernels, that of LSTMs above all, may add U h to W x before the bias is added, which takes W x away again."""
    generator, size = torch.Generator().manual_seed(0), 64
    cell = core(1, size, batch_first=True)
    with torch.no_grad():
        cell.weight_ih_l0.fill_(1000.0)
        cell.bias_ih_l0.fill_(-1000.0)
        cell.bias_hh_l0.zero_()
        cell.weight_hh_l0.normal_(0, size**-0.5, generator=generator)
        embedding = nn.Embedding.from_pretrained(torch.ones(2, 1))
        model = wrap(embedding, cell, nn.Linear(size, 2)).eval()
        states = 2 * torch.rand(batch_size, model.initial_state(1).shape[1], generator=generator) - 1
        token = torch.zeros(batch_size, dtype=torch.int64)
        bounds = steps_of(model).after(Intervals.around(states.double()), 0)
        _, after = model.step(token, states)
    assert bool(((bounds.low <= after.double()) & (after.double() <= bounds.high)).all())


@pytest.mark.parametrize("kind", KINDS)
def test_whole_strings_stay_in_the_enclosures(kind: str) -> None:
    """`forward` leaves the steps to torch's fused kernels, which round otherwise."""
    model = slow_net(kind, None, pace=0.3)
    extraction = extract_recurrent(model, TASK.symbols, radius=1.0)
    table = torch.tensor(extraction.fine.semiautomaton.table)
    enclosures = invariant_intervals(steps_of(model), table, extraction.prototypes.double())
    assert enclosures is not None
    strings = torch.randint(2, (16, 300), generator=torch.Generator().manual_seed(0))
    classes = torch.from_numpy(extraction.fine.semiautomaton.run(strings.numpy(), 0))
    with torch.no_grad():
        states = torch.cat(list(model.states(strings)), 1).double()
    assert bool(((enclosures.low[classes] <= states) & (states <= enclosures.high[classes])).all())


def candidates(model: RecurrentModel) -> list[Extraction]:
    return [extract_recurrent(model, TASK.symbols, radius=radius) for radius in (4.0, 1.0, 0.3, 0.1)]


def is_proved(model: RecurrentModel, extraction: Extraction) -> bool:
    try:
        IntervalProver().prove(model, mask_unsupervised(extraction, TASK.transducer))
    except Unproved:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.sampled
def test_nets_that_err_after_25_to_60_symbols_are_never_proved_right(kind: str, seed: int) -> None:
    check_never_proved(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_of_many_nets_that_err_far_out_none_is_proved_right(kind: str) -> None:
    for seed in range(3, 80):
        check_never_proved(kind, seed)


def check_never_proved(kind: str, seed: int) -> None:
    chance = torch.Generator().manual_seed(seed)
    num_right = int(torch.randint(24, 60, (), generator=chance))
    pace = 0.02 + 0.06 * float(torch.rand((), generator=chance))
    model = slow_net(kind, num_right, pace)
    with torch.no_grad():
        says = model(torch.zeros(1, num_right + 1, dtype=torch.long))[0].argmax(-1)
    assert says.tolist() == [0] * num_right + [1], "planted"
    for extraction in candidates(model):
        machine = extraction.machine
        assert isinstance(machine, Transducer)
        is_right = machine.difference_string(TASK.transducer) is None
        assert not (is_right and is_proved(model, extraction))


@pytest.mark.parametrize("kind", KINDS)
def test_nets_that_never_err_are_proved(kind: str) -> None:
    """So that the tests above could fail."""
    assert any(is_proved(slow_net(kind, None, pace=0.3), one) for one in candidates(slow_net(kind, None, pace=0.3)))


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    "kind",
    [
        kind if kind == "gru" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS
    ],  # test_checker proves every kind
)
def test_certificates_say_so(kind: str) -> None:
    certificate = certify(slow_net(kind, None, pace=0.3), TASK)
    assert certificate.level == "proved"
    assert certificate.evidence.method == "intervals"
    again = Certificate.from_text(certificate.to_text())
    assert "the model maps the intervals around its prototypes into one another" in check(again).taken_on_trust


@pytest.mark.usefixtures("fewer_strings")
def test_a_net_that_errs_far_out_is_refuted() -> None:
    assert certify(slow_net("rnn", 40), TASK).level == "refuted"


def test_a_map_of_one_number_grows_by_its_slope() -> None:
    """x' = tanh(w x + u) at its fixed point 0 has slope w."""
    model = make_model("rnn", TASK, d_model=1, activation="tanh")
    for slope in (0.5, 2.0):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
            model.hidden_weight.fill_(slope)
        table, points = torch.zeros(1, 2, dtype=torch.long), torch.zeros(1, 1, dtype=torch.float64)
        assert growth(steps_of(model), table, points) == pytest.approx(slope, rel=0.05)
        enclosures = invariant_intervals(steps_of(model), table, points)
        assert enclosures is not None, "tanh is bounded"
        assert (float(enclosures.radius.max()) < 1e-4) == (slope < 1)


def test_the_reason_is_the_growth() -> None:
    model = make_model("rnn", make_task("parity"), d_model=4, activation="tanh", seed=1)
    with torch.no_grad():
        model.hidden_weight.copy_(torch.eye(4) * 3)
        model.input_weight.zero_()
        model.first_state.zero_()
    extraction = extract_recurrent(model, ("a", "b"), radius=1.0)
    with pytest.raises(
        Unproved, match=r"short intervals change in length by a factor of 3 per step; a proof needs a factor below 1"
    ):
        IntervalProver().prove(model, extraction)


def test_a_cell_that_uses_its_parameters_in_another_order_is_refused() -> None:
    """torch goes by their order; the bounds go by their names."""
    cell = nn.GRU(8, 8, batch_first=True)
    cell._all_weights = [["weight_hh_l0", "weight_ih_l0", "bias_hh_l0", "bias_ih_l0"]]
    cell._flat_weights = [getattr(cell, name) for name in cell._all_weights[0]]
    with pytest.raises(ValueError, match="got a cell that uses other tensors or another order"):
        steps_of(wrap(nn.Embedding(2, 8), cell, nn.Linear(8, 2)).eval())


def test_parts_of_a_models_own_are_refused() -> None:
    linear = make_model("s4d", TASK, d_model=8)
    two_layers = make_model("rnn", TASK, d_model=8)
    two_layers.recurrence = torch.nn.RNN(2, 8, num_layers=2, bias=False, batch_first=True)
    renormed, read = make_model("gru", TASK, d_model=8), make_model("lstm", TASK, d_model=8)
    renormed.embedding.max_norm = 1.0
    read.readout = torch.nn.Sequential(*list(read.readout)[:3])
    stale = make_model("gru", TASK, d_model=8)
    stale.layers[0].cell._flat_weights[0] = stale.layers[0].cell._flat_weights[0].clone()
    for model, sentence in (
        (linear, r"a model whose steps have bounds \(gru, lstm, rnn, wrapped\), got an S4D"),
        (two_layers, "expected a cell with num_layers=1, got 2"),
        (renormed, "expected an embedding without max_norm, got max_norm=1.0; set max_norm"),
        (read, "expected the readout Topmost, LayerNorm, Linear, ReLU, Linear, got Topmost, LayerNorm, Linear"),
        (stale, "got a cell that uses other tensors or another order"),
    ):
        with pytest.raises(ValueError, match=sentence):
            steps_of(model)


@pytest.mark.parametrize("name", ["parity", "even-pairs", "cycle-navigation"])
def test_compiled_elman_nets_are_proved_as_points(name: str) -> None:
    """Their states are whole numbers, of which float32 makes no error."""
    task = make_task(name)
    model = construct("rnn", task).model
    extraction = extract_recurrent(model, task.symbols, radius=0.5)
    evidence = IntervalProver().prove(model, mask_unsupervised(extraction, task.transducer))
    assert evidence.radius == 0


@pytest.mark.parametrize("num_classes", [1, 2])
def test_a_logit_that_overflows_has_no_margin(num_classes: int) -> None:
    """Of one answer, too: there is no other that it could fall behind, but its logit is no number."""
    linear = nn.Linear(2, num_classes).requires_grad_(False)
    features = Intervals.around(torch.ones(1, 2, dtype=torch.float64))
    answers = torch.zeros(1, dtype=torch.int64)
    assert margin(linear, features, answers) > -5
    linear.weight[0] = 3e38
    assert not linear(torch.ones(2)).isfinite().all()
    assert margin(linear, features, answers) == -torch.inf
    overflows = np.errstate(invalid="ignore")
    with overflows, pytest.raises(Rejected, match="one of its sets may contain states with several answers"):
        demand_lead({"w": linear.weight.numpy()}, "w", between(np.ones((1, 2))), np.zeros(1, np.int64))
