"""The attack as a whole: planted faults, right nets, the shortest string, budgets, and its place in certify."""

import json

import pytest
import torch
from wrong_on import Streamed, wrong_on

import lengthwise.certification.attacks.attack as attack_module
from lengthwise.certification.attacks.attack import FAMILIES, Attack, attack, try_families
from lengthwise.certification.attacks.board import Board, Budget
from lengthwise.certification.certify import certify
from lengthwise.certification.counterexample import grade
from lengthwise.models.base import make_model
from lengthwise.models.machine import TransducerModel
from lengthwise.tasks import make_task

PARITY = make_task("parity")
A, B = 0, 1
RARE = (A,) * 76 + (B, B)


@pytest.fixture
def budget_in_symbols(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attacks end after 300,000 symbols, or as many as a test states, and so find the same on every machine."""
    symbols = getattr(request, "param", 300_000)
    monkeypatch.setattr(attack_module, "Budget", lambda seconds: Budget(symbols=symbols))


@pytest.mark.usefixtures("budget_in_symbols")
def test_a_fault_on_one_string_is_found_and_reported() -> None:
    result = attack(wrong_on(PARITY, RARE), PARITY)
    assert result.is_refuted
    assert result.string == ("a",) * 76 + ("b", "b")
    assert (result.expected, result.got, result.family) == ("0", "1", "runs x^n w")
    assert (result.found_length, result.margin) == (78, -1.0)
    lines = dict(result.lines())
    assert lines["wrong answer"] == "a^76 bb: the model says 1, right is 0"
    assert str(result).startswith("wrong answer: a^76 bb: the model says 1, right is 0\nlength: 78 symbols")
    assert Attack.model_validate_json(json.dumps(result.model_dump())) == result


@pytest.mark.parametrize("budget_in_symbols", [1_000_000], indirect=True)
@pytest.mark.usefixtures("budget_in_symbols")
def test_the_shortest_of_several_wrong_strings_is_reported() -> None:
    longer, shorter = RARE, (A, B) * 20 + (B, B)
    result = attack(wrong_on(PARITY, longer, shorter), PARITY)
    assert result.string == tuple("ab"[symbol] for symbol in shorter)


@pytest.mark.parametrize("make", [lambda net: net, Streamed])
def test_a_right_net_is_never_refuted(make) -> None:
    result = attack(make(TransducerModel(PARITY.transducer, PARITY.classes)), PARITY, budget=0.2)
    assert not result.is_refuted
    assert result.max_length == 150
    assert result.seconds < 3
    assert dict(result.lines())["no wrong answer"] == "among strings of up to 150 symbols; nothing is proved"


@pytest.mark.usefixtures("budget_in_symbols")
def test_a_shorter_string_is_still_wrong() -> None:
    """Every string of 30 symbols or more is wrong."""
    wrong = LabelsSwapped(30)
    result = attack(wrong, PARITY)
    assert len(result.string) == 30
    assert bool(grade(wrong, PARITY, PARITY.encode(result.string)[None]).wrong)
    assert result.found_length >= 30


class LabelsSwapped(TransducerModel):
    """Parity, with the answers exchanged from a length on."""

    def __init__(self, length: int) -> None:
        super().__init__(PARITY.transducer, PARITY.classes)
        self.length = length

    def forward(self, inputs):
        logits = super().forward(inputs)
        late = torch.arange(1, inputs.shape[1] + 1) >= self.length
        return torch.where(late[:, None], logits.flip(-1), logits)

    def last(self, inputs):
        return self.forward(inputs)[:, -1]


class NotFinite(LabelsSwapped):
    """Parity, without a finite logit from a length on."""

    def forward(self, inputs):
        late = torch.arange(1, inputs.shape[1] + 1) >= self.length
        return TransducerModel.forward(self, inputs).masked_fill(late[:, None], torch.nan)


@pytest.mark.usefixtures("budget_in_symbols")
def test_a_logit_that_is_not_finite_is_a_wrong_answer() -> None:
    result = attack(NotFinite(40), PARITY)
    assert (len(result.string), result.got, result.margin) == (40, None, None)
    assert "has a logit that is not finite" in dict(result.lines())["wrong answer"]


class WrongAtOnce(LabelsSwapped):
    """Wrong if all prefixes are answered at once, and right for whole strings."""

    def last(self, inputs):
        return TransducerModel.last(self, inputs)


class WrongInSmallParts(LabelsSwapped):
    """Also wrong for whole strings of 60 symbols or more and, in batches, of 30 or more."""

    def last(self, inputs):
        logits = TransducerModel.last(self, inputs)
        return logits.flip(-1) if inputs.shape[1] >= (60 if len(inputs) == 1 else self.length) else logits


@pytest.mark.usefixtures("budget_in_symbols")
def test_strings_that_are_right_alone_do_not_refute() -> None:
    assert not attack(WrongAtOnce(30), PARITY).is_refuted


@pytest.mark.usefixtures("budget_in_symbols")
def test_a_string_that_is_right_alone_once_it_is_shorter_stays_as_it_was() -> None:
    result = attack(WrongInSmallParts(30), PARITY)
    assert result.is_refuted
    assert len(result.string) >= 60


def test_a_budget_in_symbols_gives_the_same_result_again() -> None:
    counts = []
    for _ in range(2):
        model = make_model("transformer", PARITY, d_model=16)
        board = Board(model.eval(), PARITY, PARITY.reference, Budget(symbols=50_000), 60, seed=3)
        counts.append((try_families(board, FAMILIES[1:]), board.num_symbols, board.weakest, board.shortest.family))
    assert counts[0] == counts[1]


def test_a_family_without_an_end_leaves_a_part_of_the_budget_to_others() -> None:
    model = Streamed(TransducerModel(PARITY.transducer, PARITY.classes))
    board = Board(model, PARITY, PARITY.reference, Budget(symbols=300_000), 60, seed=0)
    counts = try_families(board, FAMILIES)
    assert all(count.num_answers for count in counts)
    assert not counts[-2].is_complete


def test_a_net_with_a_largest_length_reads_no_longer_strings() -> None:
    model = make_model("transformer", PARITY, d_model=16, positions="learned", learned_positions=20)
    board = Board(model.eval(), PARITY, PARITY.reference, Budget(symbols=30_000), 150, seed=0)
    try_families(board, FAMILIES)
    assert board.shortest is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0.0}, "budget: expected CPU seconds above 0, got 0.0; try 5"),
        ({"budget": float("nan")}, "budget: expected CPU seconds above 0, got nan"),
        ({"max_length": 0}, "max_length: expected a whole number from 1 to 4,096, got 0"),
        ({"max_length": 10**6}, "max_length: expected a whole number from 1 to 4,096, got 1000000"),
        ({"task": make_task("longest-common-subsequence")}, "task: longest-common-subsequence has no transducer"),
    ],
)
def test_wrong_arguments_are_named(arguments, message: str) -> None:
    task = arguments.pop("task", PARITY)
    with pytest.raises(ValueError, match=message):
        attack(make_model("rnn", PARITY), task, **arguments)


@pytest.mark.usefixtures("fewer_strings")
def test_certify_attacks_a_net_that_would_stay_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random and structured strings of 40 and 500 symbols do not have this one."""
    monkeypatch.setattr(attack_module, "MAX_SYMBOLS_IN_CERTIFY", 300_000)
    certificate = certify(wrong_on(PARITY, RARE), PARITY)
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("a",) * 76 + ("b", "b")
    assert certificate.reason == "the model errs (found by: runs x^n w)"
    assert certify(TransducerModel(PARITY.transducer, PARITY.classes), PARITY).level == "tested"
