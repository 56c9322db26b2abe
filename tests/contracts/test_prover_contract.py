"""Promises of every registered prover, whatever its name: it proves something, and never a planted fault."""

import copy
from collections.abc import Iterator
from typing import get_args

import pytest
import torch
from read_nets import Proof, first_proof
from torch import Tensor
from wrong_machines import (
    differ,
    machine_answers,
    net_answers,
    wrong_extractions,
    wrong_outputs,
    wrong_tables,
)

from lengthwise.certification.certificate import EVIDENCE
from lengthwise.certification.methods.base import PROVERS, provers_of
from lengthwise.certification.parts import Level, reaches
from lengthwise.extraction.base import READERS, Extraction
from lengthwise.models import SequenceModel


@pytest.fixture(params=list(PROVERS))
def name(request) -> str:
    return request.param


@pytest.fixture
def proof(name: str) -> Proof:
    return first_proof(name)


def is_proved(name: str, model: SequenceModel, extraction: Extraction) -> bool:
    """Return whether a new prover, if it is for such a model, proves it; whatever is no `ValueError` is raised."""
    if not PROVERS[name].applies_to(model):
        return False
    try:
        PROVERS[name]().prove(model, extraction)
    except ValueError:
        return False
    return True


def test_it_names_a_reader_or_needs_none(name: str) -> None:
    assert PROVERS[name].reader is None or PROVERS[name].reader in READERS


def test_it_proves_a_net_whose_answers_are_those_of_the_machine(proof: Proof) -> None:
    answers = machine_answers(proof.extraction.fine, proof.net.task)
    assert not differ(answers, net_answers(proof.net.model, proof.net.task))
    assert type(proof.prover) in provers_of(proof.prover.reader, proof.net.model)


def test_its_evidence_is_of_a_registered_method(proof: Proof) -> None:
    assert type(proof.evidence) is EVIDENCE[proof.evidence.method]


def test_it_says_beforehand_which_level_it_reaches(proof: Proof) -> None:
    level = proof.prover.reaches(proof.net.model)
    assert level in get_args(Level)
    proved = "proved" if proof.evidence.proved_length is None else "bounded"
    assert reaches(level, proved)


def test_the_same_is_proved_again_and_the_net_stays_as_it_was(name: str, proof: Proof) -> None:
    weights = {key: tensor.clone() for key, tensor in proof.net.model.state_dict().items()}
    again = PROVERS[name]()
    assert again.prove(proof.net.model, proof.extraction) == proof.evidence
    assert again.sets.keys() == proof.prover.sets.keys()
    assert all(isinstance(tensor, Tensor) for tensor in again.sets.values())
    assert all(torch.equal(weights[key], tensor) for key, tensor in proof.net.model.state_dict().items())


@pytest.mark.parametrize("wrong_machines", [wrong_tables, wrong_outputs])
def test_a_machine_that_errs_is_not_proved(name: str, proof: Proof, wrong_machines) -> None:
    wrong = wrong_extractions(proof.extraction, wrong_machines(proof.extraction.fine), proof.net.task)
    assert wrong
    assert not any(is_proved(name, proof.net.model, extraction) for extraction in wrong)


def test_a_reason_is_one_sentence(name: str, proof: Proof) -> None:
    (wrong, *_) = wrong_extractions(proof.extraction, wrong_outputs(proof.extraction.fine), proof.net.task)
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        PROVERS[name]().prove(proof.net.model, wrong)


def other_nets(model: SequenceModel) -> Iterator[SequenceModel]:
    """Yield the net with each tensor negated, and each in turn in reverse order, zero, infinite or not a number."""
    for index, (key, parameter) in enumerate(model.named_parameters()):
        before = parameter.detach()
        others = (before.flip(0), 0 * before, before + torch.inf, before * torch.nan)
        for after in (-before, others[index % len(others)]):
            other = copy.deepcopy(model)
            with torch.no_grad():
                other.get_parameter(key).copy_(after)
            yield other


@pytest.mark.unchecked
def test_a_net_that_errs_is_not_proved(name: str, proof: Proof) -> None:
    net, extraction, *_ = proof
    right = machine_answers(extraction.fine, net.task)
    wrong = [other for other in other_nets(net.model) if differ(net_answers(other, net.task), right)]
    assert wrong
    assert not any(is_proved(name, other, extraction) for other in wrong)


def test_a_subclass_may_compute_something_else_and_is_not_proved(name: str, proof: Proof) -> None:
    model = copy.deepcopy(proof.net.model)
    model.__class__ = type("Further", (type(model),), {})
    assert not is_proved(name, model, proof.extraction)


def test_a_hook_may_change_what_is_computed_and_is_not_proved(name: str, proof: Proof) -> None:
    for part in ("", next(key for key, _ in proof.net.model.named_children())):
        model = copy.deepcopy(proof.net.model)
        model.get_submodule(part).register_forward_hook(lambda *_: None)
        assert not is_proved(name, model, proof.extraction)
