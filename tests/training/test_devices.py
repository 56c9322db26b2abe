"""Training and measuring on another device, for every model: the CPU waits where it must, and nowhere else."""

import pytest
import torch
from device_cases import CASES, measured, spec_of, trained, trained_here
from second_device import DEVICE, OnDevice, second_device
from torch import nn

from lengthwise.devices import computing_in, find_device
from lengthwise.layers.gated_cells import GRULayer, LSTMLayer
from lengthwise.layers.linear_recurrence import DenseLinearLayer
from lengthwise.layers.recurrent_layer import RecurrentLayer
from lengthwise.layers.state_space import LiquidS4Layer, S4DLayer, S4Layer
from lengthwise.models import MODELS, make_model
from lengthwise.models.wrapped import wrap
from lengthwise.tasks import make_task

WAITS = {
    "training/loop.py:_on_host": "once a step: losses and the gradient's norm decide whether it is taken",
    "evaluation/length_curve.py:final_answers": "once a part: answers are counted on the CPU",
    "evaluation/length_curve.py:prefix_answers": "once a part: answers are counted on the CPU",
    "evaluation/perplexity.py:_point": "once a length: what tokens count is kept as numbers",
    "evaluation/error_curve.py:error_curve": "once a part: errors are averaged on the CPU",
    "ops/tree_attention.py:_merge_distinct": "windows that repeat are merged once: how many differ is a size",
    "ops/tree_attention.py:_num_leading_pads": "pads in front of all strings are left out: their number is a size",
    "training/state_supervision.py:combine": "pieces are drawn on the CPU, with all maps as often",
    "layers/codebook.py:is_empty": "whether there are codes yet decides what a merge is, and whether to look for some",
    "layers/block_linear.py:transitions": "temperature 0 is another function of the same weights",
    "layers/block_linear.py:initial_state": "temperature 0 is another function of the same weights",
    "layers/grid_cells.py:is_rule": "temperature 0 is another function of the same weights",
    "layers/grid_cells.py:_distribution": "temperature 0 is another function of the same weights",
    "models/grid_recurrence.py:_compact": "the longest first string of a batch is the height of its grid",
    "ops/in_range.py:_within": "states that grow out of range are divided: whether any does is looked at",
    "ops/symbol_recurrence.py:_is_one_hot": "states of one-hot vectors are followed as positions of a 1",
    "ops/symbol_recurrence.py:sums_by_symbol": "positions of a symbol are one product: how many there are is a size",
    "ops/sparse_recurrence.py:__init__": "positions of a symbol are one product: how many there are is a size",
    "models/looped_transformer.py:_converged": "loops end when no state changes any more",
    "ops/intervals.py:is_sum_exact": "bounds of sums that are exact are not widened",
    "ops/intervals.py:binary_digits": "bounds of sums that are exact are not widened",
    "layers/positions/fire.py:rows": "a learned limit decides which of two forms gives the biases",
}
"""Where the CPU waits for the device, each with the reason why it has to."""

OTHERS = [case for case in CASES if case not in MODELS]
BY_DEFAULT = [*MODELS, *(pytest.param(case, marks=[pytest.mark.slow] * (n % 9 > 0)) for n, case in enumerate(OTHERS))]
"""Each model once; most cases with other settings of the same models are slow, since each case trains two nets."""


CHOOSING = {"pd-ssm"}
"""Models in which a rounding may decide what is largest, so that after some steps losses are others."""


@pytest.mark.unchecked
@pytest.mark.sampled(4)  # each case trains and measures two nets
@pytest.mark.parametrize("case", BY_DEFAULT)
def test_another_device_gives_the_same_and_is_waited_for_where_it_must(case: str) -> None:
    spec = spec_of(case)
    here, losses = trained_here(case)
    with second_device() as visits:
        there, on_device = trained(spec, DEVICE)
        curve = measured(there, spec)
    compared = 3 if case in CHOOSING else len(losses)
    assert on_device[:compared] == pytest.approx(losses[:compared], rel=2e-3)
    assert type(curve) is type(measured(here, spec))
    assert all(isinstance(parameter, OnDevice) for parameter in there.parameters.values())
    assert not visits.mixed
    assert visits.trips <= set(WAITS)
    assert "training/loop.py:_on_host" in visits.trips


def test_a_second_device_finds_round_trips_and_mixed_operations() -> None:
    with second_device() as visits:
        there = torch.arange(4, device=DEVICE)
        assert int(there.sum()) == 6
        assert bool((there + 1 > 0).all())
        assert there.cpu().tolist() == [0, 1, 2, 3]
        assert torch.tensor([1], device=DEVICE).tolist() == [1]
        assert len(there[there > 1]) == 2
        there + torch.arange(4)
    assert visits.trips == {"torch"}
    assert visits.mixed == {"torch (aten.add.Tensor)"}


@pytest.mark.unchecked
@pytest.mark.parametrize("core", [nn.RNN(4, 6, 2), nn.GRU(4, 6, batch_first=True), nn.LSTM(4, 6), nn.LSTMCell(4, 6)])
def test_a_net_of_ones_own_is_wrapped_on_the_device_where_it_is(core: nn.Module) -> None:
    strings = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 0]])
    parts = [nn.Embedding(3, 4), core, nn.Linear(6, 2)]
    here = wrap(*parts)(strings)
    with second_device() as visits:
        there = wrap(*(part.to(DEVICE) for part in parts))
        answers = there(strings.to(DEVICE))
    assert isinstance(answers, OnDevice)
    torch.testing.assert_close(answers.held, here)
    assert not visits.mixed
    assert visits.trips == {"models/wrapped.py:_check_parts"}


def test_foreign_symbols_stop_a_device_by_themselves() -> None:
    model = make_model("gru", make_task("parity"))
    with second_device() as visits:
        model.to(DEVICE)
        with pytest.raises(RuntimeError, match=r"inputs: expected symbol ids in 0\.\.1, got other numbers"):
            model.last(torch.tensor([[0, 2]]).to(DEVICE))
    assert not visits.trips


def test_a_device_that_is_not_there_is_said() -> None:
    for name in ("cuda", "mps"):
        with pytest.raises(ValueError, match=f"device: expected a device of this machine, got '{name}', .*; use cpu"):
            find_device(name)
    with pytest.raises(ValueError, match="device: expected one of auto, cpu, cuda, mps, got 'gpu'"):
        find_device("gpu")
    assert find_device("auto").type == "cpu"


@pytest.mark.unchecked
@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_trains_in_bfloat16(name: str) -> None:
    spec = spec_of(name)._replace(recipe=spec_of(name).recipe.model_copy(update={"precision": "bfloat16"}))
    assert spec.id != spec_of(name).id
    state, losses = trained(spec, torch.device("cpu"))
    assert {parameter.dtype for parameter in state.model.parameters()} == {torch.float32}
    _, exact = trained_here(name)
    assert losses == pytest.approx(exact, rel=0.2, abs=0.2)
    assert losses != exact or name == "grid-recurrence"  # whose categorical messages have no products of matrices
    measured(state, spec)


RECURRENCES = [
    DenseLinearLayer(d_model=8, d_state=8),
    GRULayer(d_model=8),
    LSTMLayer(d_model=8),
    S4DLayer(d_model=8, d_state=4, start="lin"),
    S4Layer(d_model=8, d_state=4),
    LiquidS4Layer(d_model=8, d_state=4),
]


@pytest.mark.parametrize("layer", RECURRENCES, ids=lambda layer: type(layer).__name__)
def test_recurrences_are_not_rounded_to_bfloat16(layer: RecurrentLayer) -> None:
    generator = torch.Generator().manual_seed(0)
    layer.reset_parameters(generator)
    features = torch.randn(2, 9, 8, generator=generator).bfloat16()
    state = torch.randn(2, layer.state_size, generator=generator)
    with computing_in("bfloat16", torch.device("cpu")):
        rounded = layer(features, state)
    for one, other in zip(rounded, layer(features.float(), state), strict=True):
        assert torch.equal(one, other)


OF_STATES = {
    "rnn": lambda: make_model("rnn", make_task("parity")),
    "linear-rnn-generator": lambda: make_model("linear-rnn-generator", make_task("parity")),
    "wrapped rnn": lambda: wrap(nn.Embedding(2, 8), nn.RNN(8, 8, batch_first=True), nn.Linear(8, 2)),
    "wrapped lstm": lambda: wrap(nn.Embedding(2, 8), nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 2)),
    "wrapped gru cell": lambda: wrap(nn.Embedding(2, 8), nn.GRUCell(8, 8), nn.Linear(8, 2)),
}


@pytest.mark.parametrize("name", OF_STATES)
def test_the_states_of_a_recurrent_net_are_not_rounded_to_bfloat16(name: str) -> None:
    model, inputs = OF_STATES[name](), torch.tensor([[0, 1, 1, 0, 1]])
    exact = torch.cat(list(model.states(inputs)), 1)
    _, after = model.step(inputs[:, -1], exact[:, -2])
    with computing_in("bfloat16", torch.device("cpu")):
        assert torch.equal(torch.cat(list(model.states(inputs)), 1), exact)
        assert torch.equal(model.step(inputs[:, -1], exact[:, -2])[1], after)


def test_what_must_not_lengthen_a_state_is_not_rounded_to_bfloat16() -> None:
    """Keys and reflections of length 1, and factors of size 1: by a thousandth more states grow over 10,000 symbols."""
    features = torch.randn(20, 64, generator=torch.Generator().manual_seed(0))
    memory = make_model("delta-net", make_task("parity")).layers[0]
    phases = make_model("pd-ssm", make_task("parity"), diagonal="phase").layers[0]
    blocks = make_model("block-linear-rnn", make_task("parity"), columns="reflected").layers[0]
    with torch.no_grad(), computing_in("bfloat16", torch.device("cpu")):
        keys = memory._memory_inputs(features, memory.maps(features)).keys
        factors, matrices = phases.factors(features), blocks.transitions(features)
    rounded = 8 * 64 * torch.finfo(torch.float32).eps
    assert float((keys.norm(dim=-1) - 1).abs().max()) <= rounded
    assert float((factors.norm(dim=-1) - 1).abs().max()) <= rounded
    assert float(torch.linalg.matrix_norm(matrices, 2).max()) <= 1 + rounded


def test_nothing_inside_of_cudnn_is_rounded_to_tf32() -> None:
    def precisions() -> list[str]:
        return [part.fp32_precision for part in (torch.backends.cudnn.rnn, torch.backends.cudnn.conv)]

    before = precisions()
    with computing_in("float32", torch.device("cuda")):
        assert "tf32" not in precisions()
        assert not torch.backends.cudnn.allow_tf32
    assert precisions() == before
