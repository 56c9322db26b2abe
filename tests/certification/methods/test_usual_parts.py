"""Parts that may compute something else than their kind says are never bounded."""

from collections.abc import Callable

import pytest
import torch
from last_symbol import LastSymbol, last_symbol_net
from slow_nets import slow_net
from torch import nn
from torch.nn.utils import parametrize

from lengthwise.certification.certify import certify
from lengthwise.certification.methods.enclosures.prover import invariant_enclosures
from lengthwise.certification.methods.exact.prover import ExactProver
from lengthwise.certification.methods.intervals.prover import IntervalProver
from lengthwise.certification.methods.steps import steps_of
from lengthwise.constructions import construct
from lengthwise.extraction.readers.recurrent import extract_recurrent
from lengthwise.extraction.tree import extract_tree
from lengthwise.models.base import SequenceModel
from lengthwise.tasks import make_task

TASK = LastSymbol()


class Doubled(torch.Tensor):
    """A tensor that computes otherwise, as those of quantized weights do."""


class Moved(nn.Module):
    """A parametrization."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + 1


def compiled_call(model: SequenceModel) -> None:
    model.readout[4]._compiled_call_impl = lambda features: -features


def subclass(model: SequenceModel) -> None:
    model.readout[4].weight = nn.Parameter(model.readout[4].weight.detach().as_subclass(Doubled))


def plain_tensor(model: SequenceModel) -> None:
    weight = model.readout[4].weight.detach()
    del model.readout[4].weight
    model.readout[4].weight = weight


def unnamed_buffer(model: SequenceModel) -> None:
    weight = model.readout[4].weight.detach()
    del model.readout[4].weight
    model.readout[4].register_buffer("weight", weight, persistent=False)


def other_mode(model: SequenceModel) -> None:
    model.layers[0].cell.mode = "LSTM"


def one_number_as_bias(model: SequenceModel) -> None:
    model.readout[4].bias = nn.Parameter(torch.zeros(1))


def one_number_as_bias_of_the_cell(model: SequenceModel) -> None:
    model.layers[0].cell.bias_hh_l0 = nn.Parameter(torch.zeros(1))


def parametrized(model: SequenceModel) -> None:
    parametrize.register_parametrization(model.readout[4], "weight", Moved())


CHANGES: list[tuple[Callable[[SequenceModel], None], str]] = [
    (compiled_call, "expected uncompiled modules, got a compiled module; certify the model before"),
    (subclass, "expected weights of torch's own tensor types, got a Doubled; copy the weights"),
    (
        plain_tensor,
        "all tensors in the model's state dict, got tensor 'weight' of a Linear outside the state dict; make",
    ),
    (unnamed_buffer, "all tensors in the model's state dict, got tensor 'weight' of a Linear"),
    (other_mode, "expected a cell with mode=GRU, got LSTM"),
    (
        one_number_as_bias,
        r"a weight matrix and a bias with one number for each row, got shapes \[\d, \d+\] and \[1\]; change",
    ),
    (one_number_as_bias_of_the_cell, r"a bias with one number for each row, got shapes \[\d+, \d+\] and \[1\]"),
    (parametrized, "only parts that have bounds, got ModuleDict, Moved, ParametrizationList, ParametrizedLinear"),
]


@pytest.mark.parametrize(("change", "sentence"), CHANGES)
def test_what_may_compute_something_else_is_refused(change: Callable[[SequenceModel], None], sentence: str) -> None:
    model = slow_net("gru", None, pace=0.3)
    steps_of(model)
    change(model)
    with pytest.raises(ValueError, match=sentence):
        steps_of(model)


def test_the_mode_of_an_elman_net_is_that_of_its_function() -> None:
    model = slow_net("rnn", None, pace=0.3)
    model.recurrence.mode = "RNN_RELU"
    with pytest.raises(ValueError, match="expected a cell with mode=RNN_TANH, got RNN_RELU"):
        steps_of(model)


def test_leaves_are_those_of_a_usual_embedding() -> None:
    """A parametrized one may have other leaves whenever it is asked."""
    model = last_symbol_net()
    extraction = extract_tree(model, TASK.symbols, radius=1.0)
    parametrize.register_parametrization(model.embedding, "weight", Moved())
    with pytest.raises(ValueError, match="only parts that have bounds, got ModuleDict, Moved, Parametri"):
        invariant_enclosures(model, extraction)


def test_a_model_that_shows_its_nodes_is_refused() -> None:
    """Who looks at them may change them."""
    model = last_symbol_net()
    extraction = extract_tree(model, TASK.symbols, radius=1.0)
    with pytest.raises(ValueError, match="expected no observer of states, got an observer; set model"):
        invariant_enclosures(model.observed(lambda *nodes: None), extraction)


def test_prototypes_of_another_model_are_refused() -> None:
    """A proof by induction begins with the model's own first state, or its own leaves."""
    tree, recurrent = last_symbol_net(), slow_net("rnn", None, pace=0.3)
    of_tree, of_recurrent = (
        extract_tree(tree, TASK.symbols, radius=1.0),
        extract_recurrent(recurrent, TASK.symbols, radius=1.0),
    )
    with torch.no_grad():
        tree.embedding.weight[1] += 0.5
        recurrent.first_state += 0.5
    with pytest.raises(ValueError, match="leaf vectors as first prototypes, and no merge into their classes, got"):
        invariant_enclosures(tree, of_tree)
    with pytest.raises(ValueError, match="the model's first state in the intervals of the machine's start state"):
        IntervalProver().prove(recurrent, of_recurrent)
    task = make_task("parity")
    compiled = construct("regular-gpt", task).model
    exact = extract_tree(compiled, task.symbols, radius=0.1)
    ExactProver().prove(compiled, exact)
    with torch.no_grad():
        compiled.embedding.weight[1, 0] += 1
    with pytest.raises(ValueError, match="leaf vectors as the extraction's first prototypes, got other"):
        ExactProver().prove(compiled, exact)


def test_a_read_out_whose_margin_is_no_number_is_not_proved() -> None:
    """A number that is beyond what is bounded, times a weight of 0; for recurrences see `test_rare_words`."""
    model = last_symbol_net()
    extraction = extract_tree(model, TASK.symbols, radius=1.0)
    assert invariant_enclosures(model, extraction).evidence is not None
    with torch.no_grad():
        model.readout[0].weight[7], model.readout[1].weight[:, 7] = 1e16, 0.0
    search = invariant_enclosures(model, extraction)
    assert search.evidence is None
    assert "may contain states with different answers" in search.reason


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize("name", ["regular-gpt", "block-linear-rnn"])
def test_a_read_out_of_another_kind_is_a_reason_and_no_error(name: str) -> None:
    task = make_task("parity")
    model = construct(name, task).model
    model.readout = model.readout[-1]
    certificate = certify(model, task)
    assert certificate.level == "extracted"
    assert certificate.reason
