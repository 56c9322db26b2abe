"""States of a PD-SSM that is a finite machine, for every string of every length, whatever float32 rounds."""

import itertools

import pytest
import torch
from choosing_net import draw_machine, machine_net

from lengthwise.certification import checker
from lengthwise.certification.methods.base import Unproved
from lengthwise.certification.methods.choices import prover as choices
from lengthwise.certification.methods.choices.evidence import ChoiceEvidence
from lengthwise.certification.methods.choices.prover import ChoiceProver
from lengthwise.extraction.readers.recurrent import RecurrentReader
from lengthwise.models import make_model
from lengthwise.models.pd_ssm import PDSSM
from lengthwise.ops.intervals import Intervals
from lengthwise.tasks import make_task

SYMBOLS = ("a", "b", "c")


WIDE_LOGITS = {
    "an exponential that underflows": ([-800.0, -740.0, -745.0], [-746.0, 0.0, -744.0]),
    "others that a sum loses": ([-70.0, -40.0], [0.0, -39.0]),
}
"""The lower and the upper ends of logits, far apart as after sums of huge numbers."""


def net() -> PDSSM:
    return machine_net(*draw_machine(), "scatter")


def proof_of(model: PDSSM, machine_of: PDSSM | None = None) -> ChoiceEvidence:
    """Of the machine that was read off the model, or off another one."""
    return ChoiceProver().prove(model, RecurrentReader(machine_of or model, SYMBOLS).extract(1e-3))


def reachable(table: torch.Tensor) -> set[int]:
    states = {0}
    while (more := states | {int(state) for one in states for state in table[one]}) != states:
        states = more
    return states


def test_states_and_steps_are_enumerated() -> None:
    table, _ = draw_machine()
    states = reachable(table)
    evidence = proof_of(net())
    assert (evidence.num_states, evidence.num_undecided) == (len(states), 0)
    assert evidence.num_steps >= len(states) * len(SYMBOLS)
    assert evidence.logit_margin is not None
    assert evidence.logit_margin > 0


def test_symbols_that_the_machine_has_not_are_left_out() -> None:
    model = net()
    evidence = ChoiceProver().prove(model, RecurrentReader(model, SYMBOLS[:2]).extract(1e-3))
    assert 0 < evidence.num_steps < proof_of(model).num_steps


def test_so_many_steps_that_memory_would_not_hold_them_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "MAX_NUMBERS", 8 * 3 * 2)  # 8 states, 3 symbols: two pairs
    with pytest.raises(ValueError, match="48 numbers in the state vectors of all steps"):
        proof_of(net())


@torch.no_grad()
def test_where_rounding_may_decide_the_step_both_are_enumerated() -> None:
    """Two copies of a state, which a column leads to alike, are one answer; two states of different answers are not."""
    table, outputs = (
        torch.tensor([[1, 0, 0], [0, 1, 1], [0, 1, 1], *[[0, 0, 0]] * 5]),
        torch.tensor([0, 1, 1] + 5 * [0]),
    )
    model = machine_net(table, outputs, "scatter")
    model.layers[0].dictionary[0, 2, 0] = 1.0
    evidence = proof_of(model)
    assert (evidence.num_states, evidence.num_undecided) == (3, 1)
    model.layers[0].dictionary[0, 0, 0] = 1.0
    with pytest.raises(Unproved, match="the machine's answer may not have the largest logit"):
        proof_of(model)


@torch.no_grad()
def test_steps_without_bounds_are_enumerated() -> None:
    """An infinite number leads a column out of the states that the machine knows; its bounds are no numbers."""
    model = machine_net(torch.ones(8, 3, dtype=torch.long), torch.eye(8)[2].long(), "scatter")
    extraction = RecurrentReader(model, SYMBOLS).extract(1e-3)
    model.layers[0].dictionary[:, 2, 1] = torch.inf
    assert model.last(torch.zeros(1, 2, dtype=torch.long)).argmax() == 1, "planted"
    with pytest.raises(Unproved, match="the machine's answer may not have the largest logit"):
        ChoiceProver().prove(model, extraction)


@pytest.mark.parametrize("ends", WIDE_LOGITS.values(), ids=WIDE_LOGITS.keys())
def test_shares_of_wide_logits_are_bounded_by_prover_and_checker(ends: tuple[list[float], list[float]]) -> None:
    low, high = (torch.tensor([end]).double() for end in ends)
    bounds = choices._softmax(Intervals(low, high))
    form = checker.softmax_shares(checker.between(low.numpy(), high.numpy()))
    for logits in itertools.product(*zip(*ends, strict=True)):
        shares = torch.tensor([logits]).double().softmax(-1)
        assert ((bounds.low <= shares) & (shares <= bounds.high)).all()
        assert ((form.ends[0] <= shares.numpy()) & (shares.numpy() <= form.ends[1])).all()


@torch.no_grad()
def test_answers_that_rounding_decides_are_no_proof() -> None:
    model = net()
    extraction = RecurrentReader(model, SYMBOLS).extract(1e-3)
    model.readout[4].weight.mul_(1e-9)
    model.readout[4].bias.fill_(1.0)
    with pytest.raises(Unproved, match="the machine's answer may not have the largest logit"):
        ChoiceProver().prove(model, extraction)


def test_it_is_for_states_that_are_one_hot_vectors_alone() -> None:
    settings = {"diagonal": "none", "driven": False}
    for changes in ({"driven": True}, {"diagonal": "phase"}, {"form": "gather"}, {"num_layers": 2}):
        model = make_model("pd-ssm", make_task("parity"), **settings | changes)
        assert not ChoiceProver.applies_to(model)
        with pytest.raises(ValueError, match="expected a PDSSM with num_layers=1"):
            proof_of(model, net())
    assert ChoiceProver.applies_to(net())
    patched, driven, biased = net(), net(), net()
    patched.layers[0].mixtures = lambda features: features
    driven.layers[0].b = torch.nn.Linear(11, 8, bias=False)
    biased.layers[0].mixture_map.bias = torch.nn.Parameter(torch.zeros(3))
    sentences = (
        "only the methods of its class, got a replaced method mixtures",
        "adds no inputs to states",
        "mixture weights without a bias",
    )
    for model, sentence in zip((patched, driven, biased), sentences, strict=True):
        with pytest.raises(ValueError, match=sentence):
            proof_of(model, net())


def test_evidence_describes_what_was_enumerated() -> None:
    evidence = proof_of(net())
    assert f"{evidence.num_states} states, all {evidence.num_steps} steps enumerated; " in evidence.describe()
    assert "in 3 columns rounding may decide" in evidence.model_copy(update={"num_undecided": 3}).describe()
