"""Models that answer a string in one way and not in another, or that change as they are read."""

import numpy as np
import pytest
import torch
from last_symbol import LastSymbol
from slow_nets import slow_net

import lengthwise.certification.traces as traces_module
from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.confirm import confirm
from lengthwise.certification.verify import check
from lengthwise.models.base import RecurrentModel, make_model
from lengthwise.models.machine import TransducerModel
from lengthwise.models.rnn import RNN

pytestmark = pytest.mark.usefixtures("fewer_strings")
TASK = LastSymbol()


def as_kind(kind: type[RNN]) -> RNN:
    """The weights of a net that is proved, in a model that does something else now and then."""
    right = slow_net("rnn", None, pace=0.3)
    assert isinstance(right, RNN)
    model = kind(right.config, vocab_size=2, num_classes=2)
    model.load_state_dict(right.state_dict(), strict=False)
    return model


class WrongAlone(RNN):
    """Errs where a string of `LENGTH` symbols or more is alone."""

    LENGTH = 1

    def last(self, inputs):
        logits = super().last(inputs)
        return -logits if len(inputs) == 1 and inputs.shape[1] >= self.LENGTH else logits


class LongWrongAlone(WrongAlone):
    LENGTH = 30


@pytest.mark.parametrize("kind", [WrongAlone, LongWrongAlone])
def test_strings_that_are_answered_wrongly_when_they_are_alone_refute(kind: type[WrongAlone]) -> None:
    certificate = certify(as_kind(kind), TASK)
    assert certificate.level == "refuted"
    assert len(certificate.counterexample.string) >= kind.LENGTH
    check(Certificate.from_text(certificate.to_text()))


class WrongPrefixes(RNN):
    """Errs where all prefixes are answered at once, at one position."""

    POSITION = 10

    def forward(self, inputs):
        logits = super().forward(inputs).clone()
        logits[:, self.POSITION : self.POSITION + 1] *= -1
        return logits


class LateWrongPrefixes(WrongPrefixes):
    POSITION = 100


@pytest.mark.parametrize("kind", [WrongPrefixes, LateWrongPrefixes])
def test_prefixes_that_are_answered_otherwise_are_a_doubt(kind: type[WrongPrefixes]) -> None:
    certificate = certify(as_kind(kind), TASK)
    assert certificate.level == "tested"
    expected = (
        f"a string of {kind.POSITION + 1} symbols is answered wrongly in a batch, or as a prefix of other strings, b"
    )
    assert certificate.reason.startswith(expected)


class WrongInLongBatches(TransducerModel):
    """Errs on strings of 120 symbols or more that are not alone."""

    def last(self, inputs):
        logits = super().last(inputs)
        return -logits if len(inputs) > 1 and inputs.shape[1] >= 120 else logits


def test_an_error_of_batches_does_not_hide_an_error_that_attacks_find() -> None:
    """After 45 a in a row, the answer is wrong also alone."""
    table = np.array([[min(run + 1, 45), 0] for run in range(46)])
    machine = Transducer(Semiautomaton(table, TASK.symbols), 0, np.array([1, *[0] * 44, 1]))
    certificate = certify(WrongInLongBatches(machine, TASK.classes), TASK)
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("a",) * 45


class Counts(RNN):
    """Keeps the number of its calls, in a buffer."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register_buffer("calls", torch.tensor(0.0))

    def last_state(self, inputs):
        self.calls += 1
        return super().last_state(inputs)


class Tires(RNN):
    """After 20 calls its logits are others, by a number that no state dict has."""

    calls = 0

    def last(self, inputs):
        self.calls += 1
        return super().last(inputs) * (2.0 if self.calls > 20 else 1.0)


@pytest.mark.parametrize(("kind", "what"), [(Counts, "weights"), (Tires, "answers")])
def test_models_that_change_from_call_to_call_are_rejected(kind: type[RNN], what: str) -> None:
    sentence = rf"model: expected {what} that do not change while the model reads strings, but they changed; make"
    with pytest.raises(ValueError, match=sentence):
        certify(as_kind(kind), TASK)


def with_small_logits(row: list[float]) -> RNN:
    """State x is 1e-20 after a, y after b; the logit of b is row . (x, y), that of a is 0: all of it below 1e-38."""
    model = make_model("rnn", TASK, d_model=2, activation="relu")
    assert isinstance(model, RNN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.input_weight.copy_(1e-20 * torch.eye(2))
        model.readout.weight[1] = torch.tensor(row)
    return model


def computes_with_denormal_numbers() -> bool:
    with torch.no_grad():
        return bool(torch.tensor([1e-20]) * torch.tensor([1e-20]) > 0)


@pytest.mark.skipif(not computes_with_denormal_numbers(), reason="this processor rounds them to 0")
def test_models_are_tried_as_users_run_them() -> None:
    """Certifying rounds denormal numbers to 0, for speed; users' programs do not."""
    right, wrong = with_small_logits([0.0, 1e-20]), with_small_logits([1e-20, 1.0])
    strings = torch.tensor([[0], [1]])
    assert right.last(strings).argmax(-1).tolist() == [0, 1]
    certificate = certify(right, TASK)
    assert certificate.level == "tested"
    assert "correctly when it is read alone and no denormal number is rounded to 0" in certificate.reason
    assert wrong.last(strings).argmax(-1).tolist() == [1, 1]
    certificate = certify(wrong, TASK)
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("a",)
    with torch.no_grad():
        wrong.hidden_weight[1, 0] = -1.0  # so that ab is answered wrongly whatever is rounded
    certificate = certify(wrong, TASK)
    assert (certificate.counterexample.string, certificate.counterexample.shortest) == (("a",), "of all strings")


def test_a_read_out_beyond_the_range_of_float32_is_not_proved() -> None:
    """Around its prototypes there are states whose logits overflow; at the prototypes they do not."""
    model = slow_net("rnn", None, pace=0.3)
    assert certify(model, TASK).level == "proved"
    with torch.no_grad():
        for parameter in model.readout.parameters():
            parameter *= 1e38
    assert isinstance(model, RecurrentModel)
    assert certify(model, TASK).level == "extracted"


def counting_net(drift: float, first: tuple[float, float], amplifies: bool) -> RNN:
    """Its last symbol is right, unless a unit that it has besides is above 0: then it answers 0."""
    model = make_model("rnn", TASK, d_model=7)
    assert isinstance(model, RNN)
    u, v, one, slow, fast, ahead, huge = range(7)
    hidden, inputs = torch.zeros(7, 7), torch.zeros(7, 2)
    inputs[u, 0] = inputs[v, 1] = hidden[one, one] = 1
    hidden[slow, slow] = hidden[fast, fast] = 0.9 if amplifies else 1
    hidden[slow, one], hidden[ahead, one] = drift, -0.5 if drift else 0
    hidden[ahead, fast], hidden[ahead, slow] = (1, -0.5) if amplifies else (0, 1)
    hidden[huge, ahead] = 1e30 if amplifies else 1
    with torch.no_grad():
        model.hidden_weight.copy_(hidden)
        model.input_weight.copy_(inputs)
        model.first_state.copy_(torch.tensor([0.0, 0, 1, *first, 0, 0]))
        model.readout.weight.zero_()
        model.readout.bias.zero_()
        model.readout.weight[0, u] = model.readout.weight[1, v] = 1
        model.readout.weight[0, huge] = 1e15 if amplifies else 10
    return model.eval()


def test_numbers_that_only_some_programs_round_to_0_refute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two units decay alike; below float32's normal numbers they stop at a few units, and one is ahead of the other."""
    monkeypatch.setattr(traces_module, "TESTED_LENGTHS", (40, 500, 2_000))
    model = counting_net(0.0, (0.01, 0.0025), amplifies=True)
    string = torch.tensor([[0] * 2_000 + [1]])
    assert int(model.last(string).argmax()) == 0, "as torch computes by default it is wrong"
    certificate = certify(model, TASK)
    assert certificate.level == "refuted"
    assert certificate.counterexample is not None
    assert len(certificate.counterexample.string) > 500


def test_long_strings_are_answered_again_where_a_certificate_is_confirmed() -> None:
    right, wrong = counting_net(0.0, (0.0, 0.0), amplifies=False), counting_net(0.02, (0.0, 0.0), amplifies=False)
    certificate = certify(right, TASK)
    assert any("40 symbols correctly" in sentence for sentence in confirm(certificate, right, TASK))
    assert certificate.closure is not None
    closure = certificate.closure.model_copy(update={"requested_radius": 0.7})
    forged = certificate.model_copy(update={"evidence": None, "level": "extracted", "closure": closure})
    with pytest.raises(ValueError, match=r"its model answers the string '[ab]{40}' \(40 symbols\) wrongly"):
        confirm(forged, wrong, TASK)
