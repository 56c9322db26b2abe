"""Recurrences with one-hot columns: their states, enumerated and proved, against the model and with faults."""

import copy
import math

import numpy as np
import pytest
import torch
from fewer_strings import LENGTHS, NUM_ALONE
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer
from lengthwise.certification import traces as traces_module
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.equivalence import first_error
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.one_hot_states.evidence import StateEvidence
from lengthwise.certification.methods.one_hot_states.prover import NEVER_SEEN, UNCERTAIN_COLUMNS, prove_states
from lengthwise.certification.verify import check
from lengthwise.constructions import construct
from lengthwise.conventions import IGNORE
from lengthwise.extraction.base import Extraction
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.extraction.readers import one_hot
from lengthwise.extraction.readers.one_hot import (
    compare_exact_traces,
    compare_positions,
    enumerate_states,
    one_hot_columns,
)
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.models import make_model
from lengthwise.models.base import SequenceModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.ops.answer_likelihood import MIN_PROBABILITY
from lengthwise.report.tables.certificate import certificate_lines
from lengthwise.tasks import make_task

SUM = make_task("sum", modulus=3)


def enumerated(model: BlockLinearRNN) -> Extraction:
    """The machine of all states; a ValueError where columns are not one-hot vectors."""
    columns = one_hot_columns(model)
    if columns is None:
        raise ValueError("columns are not one-hot vectors")
    return enumerate_states(model, SUM.symbols, columns)


def proof_of(model: BlockLinearRNN) -> StateEvidence | str:
    return outcome(model, enumerated(model))


def outcome(model: SequenceModel, extraction: Extraction) -> StateEvidence | str:
    """The evidence, or why there is none."""
    try:
        return prove_states(model, extraction)
    except Unproved as reason:
        return str(reason)


def finished(seed: int, **config) -> BlockLinearRNN:
    """A random net with the columns that it would have after training."""
    settings = {"d_model": 6, "block_dim": 3, "hidden": 8} | config
    model = make_model("block-linear-rnn", SUM, seed=seed, **settings)
    assert isinstance(model, BlockLinearRNN)
    model.set_progress(1.0)
    return model


def compiled() -> BlockLinearRNN:
    model = copy.deepcopy(construct("block-linear-rnn", SUM).model)
    assert isinstance(model, BlockLinearRNN)
    return model


@torch.no_grad()
def among_other_blocks(number: int, seed: int) -> BlockLinearRNN:
    """The compiled net, and blocks next to its own, which move at random and on which no answer depends."""
    large = finished(seed, d_model=3 + 3 * number, hidden=3)
    layer = large.layers[0]
    weights, others = large.state_dict(), {"layers.0.first_state", "layers.0.transition_map.2.weight"}
    for name, own in compiled().state_dict().items():
        weights[name].mul_(1_000 * (name in others))
        weights[name][tuple(map(slice, own.shape))] = own
    layer.temperature.zero_()
    assert layer.transition_map[2].weight[9:].abs().min() > 0
    return large


@given(
    seed=st.integers(0, 10_000),
    form=st.sampled_from([(1, "all"), (2, "all"), (3, "all"), (6, "all"), (6, "mixture")]),
    dtype=st.sampled_from(list(NEVER_SEEN)),
)
@settings(max_examples=15, deadline=None)
@torch.no_grad()
def test_the_machine_answers_and_moves_as_the_model_does(seed: int, form: tuple[int, str], dtype: torch.dtype) -> None:
    block_dim, read = form
    model = finished(seed, block_dim=block_dim, read=read).to(dtype)
    extraction = enumerated(model)
    strings = torch.randint(3, (20, 150), generator=torch.Generator().manual_seed(seed))
    states = torch.cat(list(model.states(strings)), 1)
    assert set(states.unique().tolist()) <= {0.0, 1.0}
    assert len(states.flatten(0, 1).unique(dim=0)) <= extraction.fine.num_states
    if isinstance(outcome(model, extraction), StateEvidence):  # no answer hangs on a bit
        assert torch.equal(torch.from_numpy(extraction.fine.run(strings.numpy())), model(strings).argmax(-1))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
@torch.no_grad()
def test_slack_and_margin_are_differences_of_logits(seed: int) -> None:
    model = finished(seed)
    evidence = proof_of(model)
    assume(isinstance(evidence, StateEvidence))  # two logits may be too close
    exact, (layer,) = copy.deepcopy(model).double(), model.double().layers
    blocks = layer.transition_map(exact.norms[0](exact.embedding.weight)).unflatten(-1, (2, 3, 3))
    highest = torch.cat([blocks.mT.reshape(-1, 3), layer.first_state]).topk(2, -1).values
    closest = float((highest[:, 0] - highest[:, 1]).min())
    assert closest - 1e-4 <= evidence.slack <= closest
    states = exact.states(torch.randint(3, (50, 100), generator=torch.Generator().manual_seed(0)))
    logits = exact.readout(torch.cat(list(states), 1).flatten(0, 1).unique(dim=0)).topk(2, -1).values
    assert evidence.logit_margin <= float((logits[:, 0] - logits[:, 1]).min())


def test_columns_that_are_not_one_hot_have_no_machine() -> None:
    model = finished(0)
    for share in (0.0, 0.5):
        model.set_progress(share)
        assert one_hot_columns(model) is None
        assert outcome(model, enumerated(finished(0))) == UNCERTAIN_COLUMNS


@torch.no_grad()
def test_a_softmax_counts_as_one_hot_only_where_it_is_exactly() -> None:
    model = compiled()
    layer = model.layers[0]
    extraction = enumerated(model)
    assert isinstance(outcome(model, extraction), StateEvidence)
    layer.temperature.fill_(8.9)  # logits 1,000 apart, less than 110 temperatures more than that
    assert set(model._tables_of(model.embedding.weight).transitions.unique().tolist()) == {0.0, 1.0}
    assert isinstance(outcome(model, extraction), StateEvidence)
    for too_much in (12.0, 1e-20):  # logits of 1e23 are none whose rounding is known
        layer.temperature.fill_(too_much)
        assert outcome(model, extraction) == UNCERTAIN_COLUMNS


@torch.no_grad()
def test_a_temperature_below_0_reverses_the_order_of_logits() -> None:
    model = compiled()
    extraction = enumerated(model)
    model.layers[0].temperature.fill_(-8.0)
    assert outcome(model, extraction) == "the layer's temperature is -8.0, but must be at least 0; set it to 0"


@torch.no_grad()
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_prove_nothing_wrong(value: float) -> None:
    extraction = enumerated(compiled())
    for name, _ in compiled().named_parameters():
        model = compiled()
        model.state_dict()[name].flatten()[-1] = value
        if isinstance(outcome(model, extraction), StateEvidence):  # minus infinity of a column that is 0 anyway
            strings = torch.randint(3, (20, 50), generator=torch.Generator().manual_seed(0))
            assert compare_exact_traces(model, extraction, strings).num_disagreements == 0
            assert name in ("readout.4.bias", "layers.0.transition_map.2.bias")


@torch.no_grad()
def test_one_wrong_column_is_found() -> None:
    model = compiled()
    last = model.layers[0].transition_map[2]
    blocks = last.weight.view(3, 3, 3)
    blocks[:, 1, 2] = blocks[:, 1, 2].roll(1)  # of symbol 2, in state 1
    assert first_error(enumerated(model).fine, SUM.transducer) == ("1", "2")
    assert outcome(model, enumerated(compiled())) == (
        "the bounds of the model's steps do not confirm the machine's steps"
    )


@torch.no_grad()
def test_an_answer_that_rounding_decides_is_not_proved() -> None:
    model = compiled()
    answer = model.readout[4]
    answer.weight.zero_()
    answer.bias.copy_(torch.tensor([1.0, 1.0 + 1e-7, 0.0]))
    assert proof_of(model) == "rounding may decide the answer in some states"
    answer.weight[:, 0] = torch.tensor([50.0, 0.0, 0.0])
    extraction = enumerated(model)
    assert proof_of(model) == "rounding may decide the answer in some states"
    certain = np.where(extraction.fine.outputs == 0, 0, IGNORE)  # as if the others were not supervised
    needed = Transducer(extraction.fine.semiautomaton, extraction.fine.start, certain)
    assert sorted(certain.tolist()) == [IGNORE, IGNORE, 0]
    assert isinstance(outcome(model, extraction._replace(fine=needed)), StateEvidence)


@torch.no_grad()
def test_a_wrong_machine_of_the_right_states_is_not_proved() -> None:
    model = compiled()
    extraction = enumerated(model)
    fine = extraction.fine
    wrong_answer = Transducer(fine.semiautomaton, fine.start, np.roll(fine.outputs, 1))
    wrong_start = Transducer(fine.semiautomaton, 1, fine.outputs)
    for wrong, reason in ((wrong_answer, "may decide the answer"), (wrong_start, "do not confirm the machine's steps")):
        assert reason in outcome(model, extraction._replace(fine=wrong))
    assert "do not confirm the machine's steps" in outcome(
        model, extraction._replace(prototypes=2 * extraction.prototypes)
    )


@torch.no_grad()
def test_rounding_decides_between_answers_of_a_mixture_that_are_as_likely() -> None:
    """A probability that is nearly 1 has few digits left for its logarithm, and one below 1e-30 none."""
    model = finished(1, block_dim=6, read="mixture")
    for logits, certain in (
        ([20.0, 0.0, 0.0], True),
        ([200.0, 0.0, 0.0], True),
        ([0.0, 1e-6, 0.0], False),
        ([1e-2, 0.0, 0.0], True),
        ([100.0, 0.0, 100.0 + 1e-5], False),
    ):
        model.readout.weight.copy_(torch.tensor(logits))
        evidence = proof_of(model)
        assert isinstance(evidence, StateEvidence) == certain
        if isinstance(evidence, StateEvidence):
            assert evidence.logit_margin <= min(logits[0], -math.log(MIN_PROBABILITY))
            assert set(enumerated(model).fine.outputs.tolist()) == {0}


def test_too_many_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_hot, "MAX_STATES", 2)
    with pytest.raises(ValueError, match="model: expected no more than 2 states to enumerate, got more"):
        enumerated(compiled())
    with pytest.raises(ValueError, match=r"expected at most 2\^62 combinations of block states, got 3\^41"):
        enumerated(among_other_blocks(40, seed=0))


def test_what_is_not_known_is_refused() -> None:
    extraction = enumerated(finished(0))

    def refused(model, sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            outcome(model, extraction)

    refused(make_model("rnn", SUM), "expected a BlockLinearRNN, got an RNN")
    refused(finished(0, columns="clamped"), "columns='stochastic', got num_layers=1 and columns='clamped'")
    refused(finished(0, num_layers=2), "columns='stochastic', got num_layers=2 and columns='stochastic'")
    patched, foreign = finished(0), finished(0)
    patched.layers[0].inputs = lambda features: features
    refused(patched, "expected only the methods of its class, got a replaced method inputs")
    other = finished(0)
    other.layers[0].columns = "clamped"
    refused(
        other,
        "expected columns 'stochastic' and no added inputs in the model's layer, got columns",
    )
    foreign.readout[3] = torch.nn.GELU()
    refused(foreign, "expected only parts that have bounds, got GELU")
    foreign.readout[3] = torch.nn.Sequential(torch.nn.ReLU())
    refused(foreign, "or Topmost with its input's width, got a Sequential whose input has width 6")


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.unchecked
def test_a_compiled_net_is_proved_and_says_so() -> None:
    certificate = certify(compiled(), SUM)
    assert (certificate.level, certificate.reason) == ("proved", "")
    assert isinstance(certificate.evidence, StateEvidence)
    assert (certificate.evidence.num_states, certificate.evidence.num_steps) == (3, 9)
    checked = check(Certificate.from_text(certificate.to_text()))
    assert "the model has exactly the enumerated states and steps" in checked.taken_on_trust
    assert certificate.closure is not None
    assert not certificate.closure.points
    sentence = dict(certificate_lines(certificate))["states"]
    assert sentence.startswith(
        "3, all 9 steps enumerated; no column changes unless the lead of its largest logit falls by 8.9e+02; the right"
    )


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.unchecked
@torch.no_grad()
def test_a_net_whose_columns_are_soft_is_finite_and_says_why() -> None:
    model = compiled()
    model.layers[0].temperature.fill_(12.0)
    certificate = certify(model, SUM)
    assert certificate.level == "extracted"
    assert certificate.reason == UNCERTAIN_COLUMNS


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.unchecked
def test_more_states_than_an_extraction_has_classes_are_enumerated() -> None:
    model = among_other_blocks(6, seed=1)
    with pytest.raises(NotFinite, match="do not close within 500 classes"):
        extract_recurrent(model, SUM.symbols, radius=0.1)
    certificate = certify(model, SUM)
    assert (certificate.level, certificate.reason) == ("proved", "")
    assert isinstance(certificate.evidence, StateEvidence)
    assert certificate.closure is not None
    assert certificate.machine is not None
    assert certificate.evidence.num_states == certificate.closure.num_prototypes > 500
    assert len(certificate.machine["outputs"]) == 3
    assert {agreement.max_distance for agreement in certificate.trace_agreement} == {0.0}
    check(Certificate.from_text(certificate.to_text()))


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.unchecked
@torch.no_grad()
def test_one_wrong_column_among_many_states_is_refuted_by_the_shortest_string() -> None:
    model = among_other_blocks(6, seed=1)
    blocks = model.layers[0].transition_map[2].weight.view(-1, 3, 3, 3)
    blocks[0, :, 1, 2] = blocks[0, :, 1, 2].roll(1)  # of symbol 2, in state 1
    certificate = certify(model, SUM)
    assert certificate.counterexample is not None
    assert (certificate.level, certificate.counterexample.string) == ("refuted", ("1", "2"))


@torch.no_grad()
def test_states_other_than_those_enumerated_are_seen() -> None:
    model = compiled()
    extraction = enumerated(model)
    strings = torch.randint(3, (7, 40), generator=torch.Generator().manual_seed(0))
    assert compare_exact_traces(model, extraction, strings) == (7, 280, 0, 0.0)
    extraction.prototypes[0, 1] = 1e-30  # less than the smallest square
    assert compare_exact_traces(model, extraction, strings).num_disagreements > 0
    model.layers[0].temperature.fill_(100.0)  # columns of the compiled net are no one-hot vectors any more
    count = compare_exact_traces(model, extraction, strings)
    assert count.num_nodes == count.num_disagreements == 280


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 63])
def test_states_by_look_up_are_those_of_products(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_hot, "MAX_POSITIONS_PER_CHUNK", 2 * 63)  # one string, or two, or many at a time
    strings = torch.randint(3, (9, length), generator=torch.Generator().manual_seed(length))
    for model in (compiled(), finished(3), finished(4, d_model=12), finished(5, block_dim=6, read="mixture")):
        model.set_progress(1.0)
        extraction = enumerated(model)
        assert compare_positions(model, extraction, strings) == compare_exact_traces(model, extraction, strings)
        assert compare_positions(model, extraction, strings) == (9, 9 * length, 0, 0.0)


@torch.no_grad()
def test_a_table_that_is_not_the_models_is_seen_by_look_up() -> None:
    model = finished(3)
    extraction = enumerated(model)
    strings = torch.randint(3, (7, 40), generator=torch.Generator().manual_seed(0))
    table = extraction.fine.semiautomaton.table.copy()
    state, symbol = np.argwhere(table != 0)[0]
    table[state, symbol] = 0
    wrong = Transducer(Semiautomaton(table, SUM.symbols), extraction.fine.start, extraction.fine.outputs)
    faulty = extraction._replace(fine=wrong)
    by_look_up, by_products = (compare(model, faulty, strings) for compare in (compare_positions, compare_exact_traces))
    assert by_look_up.num_disagreements == by_products.num_disagreements > 0
    assert math.isclose(by_look_up.max_distance, by_products.max_distance, rel_tol=1e-6)


def test_columns_that_are_not_one_hot_have_no_look_up() -> None:
    model = finished(0)
    extraction = enumerated(model)
    model.set_progress(0.5)
    with pytest.raises(ValueError, match="transitions: expected one-hot columns, and one-hot vectors in initial, got"):
        compare_positions(model, extraction, torch.zeros(1, 3, dtype=torch.int64))


@pytest.mark.usefixtures("fewer_strings")
def test_some_strings_of_each_length_are_computed_as_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of the longer length are followed by look-up, which a net whose products differ would not show."""
    computed = []

    def recorded(model: BlockLinearRNN, extraction: Extraction, strings: torch.Tensor) -> object:
        computed.append(tuple(strings.shape))
        return compare_exact_traces(model, extraction, strings)

    monkeypatch.setattr(one_hot, "compare_exact_traces", recorded)
    monkeypatch.setattr(one_hot, "MAX_COMPUTED", 1_000)
    monkeypatch.setattr(traces_module, "NUM_COMPARED_FIRST", 2)
    assert certify(construct("block-linear-rnn", SUM).model, SUM).level == "proved"
    short, long = LENGTHS
    assert {(NUM_ALONE, short), (NUM_ALONE, long)} <= set(computed)
    assert not any(count > NUM_ALONE and length == long for count, length in computed)
