"""Models that answer a string in one way and not in another, or that change as they are read."""

import pytest
import torch
from last_symbol import LastSymbol
from slow_nets import slow_net

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.certify import certify
from lengthwise.certification.verify import check
from lengthwise.models.base import RecurrentModel, make_model
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

    POSITION = 0

    def forward(self, inputs):
        logits = super().forward(inputs).clone()
        logits[:, self.POSITION : self.POSITION + 1] *= -1
        return logits


class LateWrongPrefixes(WrongPrefixes):
    POSITION = 300


@pytest.mark.parametrize("kind", [WrongPrefixes, LateWrongPrefixes])
def test_prefixes_that_are_answered_otherwise_are_a_doubt(kind: type[WrongPrefixes]) -> None:
    certificate = certify(as_kind(kind), TASK)
    assert certificate.level == "tested"
    expected = (
        f"a string of {kind.POSITION + 1} symbols is answered wrongly in a batch, or as a prefix of others, and ri"
    )
    assert certificate.reason.startswith(expected)


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
    sentence = rf"model: expected {what} that reading strings leaves as they are, got others after the tests; let it ke"
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
    assert "rightly when it is alone and no small number is rounded to 0" in certificate.reason
    assert wrong.last(strings).argmax(-1).tolist() == [1, 1]
    certificate = certify(wrong, TASK)
    assert certificate.level == "refuted"
    assert certificate.counterexample.string == ("a",)


def test_a_read_out_beyond_the_range_of_float32_is_not_proved() -> None:
    """Around its prototypes there are states whose logits overflow; at the prototypes they do not."""
    model = slow_net("rnn", None, pace=0.3)
    assert certify(model, TASK).level == "proved"
    with torch.no_grad():
        for parameter in model.readout.parameters():
            parameter *= 1e38
    assert isinstance(model, RecurrentModel)
    assert certify(model, TASK).level == "extracted"
