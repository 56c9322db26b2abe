"""Models that write their own answers down: the loop against its definition, and against a machine that errs."""

import pytest
import torch
from torch import Tensor

from lengthwise.certification.certify import certify
from lengthwise.evaluation.length_curve import length_curve
from lengthwise.models import SequenceModel, make_model
from lengthwise.models.base import ModelConfig, RecurrentModel
from lengthwise.models.machine import as_model
from lengthwise.models.own_answers import OwnAnswers
from lengthwise.tasks import RegularTask, make_task

MODELS = {
    "window": ("transformer", {"positions": "local", "position_range": 2}),
    "window of 4": ("transformer", {"positions": "local", "position_range": 4, "num_layers": 3}),
    "loops": ("looped-transformer", {"positions": "local", "position_range": 3, "num_loops": 3, "variant": "code"}),
    "as many loops as symbols": (
        "looped-transformer",
        {"positions": "local", "position_range": 2, "num_loops": 1, "loops": "length", "gates": "open"},
    ),
    "alibi": ("transformer", {"positions": "alibi"}),
    "gru": ("gru", {}),
}


def make(kind: str) -> OwnAnswers:
    """In float64, with parameters that are moved until answers vary."""
    name, settings = MODELS[kind]
    model = make_model(name, make_task("scratchpad", base="cycle-navigation"), d_model=16, **settings).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return OwnAnswers(model, num_symbols=3)


def test_gradients_reach_the_weights() -> None:
    """The string that answers are written into is what embeddings keep for their gradients."""
    model = make("gru")
    model(draw(5)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def draw(length: int) -> Tensor:
    return torch.randint(3, (6, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("length", [1, 2, 3, 12, pytest.param(41, marks=pytest.mark.slow)])  # cubic in the length
@pytest.mark.parametrize("kind", MODELS)
def test_fast_forms_are_the_definition(kind: str, length: int) -> None:
    model = make(kind)
    with torch.no_grad():
        expected = model.by_definition(draw(length))
        torch.testing.assert_close(model(draw(length)), expected)
        torch.testing.assert_close(model.last(draw(length)), expected[:, -1])
    assert length < 12 or len(expected.argmax(2).unique()) > 1


@pytest.mark.parametrize("length", [1, 2, 3, 12])
@pytest.mark.parametrize("kind", MODELS)
def test_fast_forms_have_the_gradients_of_the_definition(kind: str, length: int) -> None:
    model = make(kind)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def gradients(logits: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(logits.logsumexp(-1).sum(), parameters, materialize_grads=True))

    expected = model.by_definition(draw(length))
    torch.testing.assert_close(gradients(model(draw(length))), gradients(expected))
    torch.testing.assert_close(gradients(model.last(draw(length))), gradients(model.by_definition(draw(length))[:, -1]))


@pytest.mark.parametrize(
    ("kind", "expected"), [("window", 3), ("window of 4", 10), ("loops", 7), ("alibi", None), ("gru", None)]
)
def test_a_pass_reads_what_the_answer_depends_on(
    kind: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more, and no less: the oldest symbol of the receptive field changes logits, the one before it does not."""
    model = make(kind)
    assert model.num_positions_read == expected
    lengths: list[int] = []
    inner, last_state = model.model, model.model.last_state
    monkeypatch.setattr(inner, "last_state", lambda inputs: (lengths.append(inputs.shape[1]), last_state(inputs))[1])
    model(draw(9))
    assert lengths == [min(length, expected or length) for length in range(1, 18, 2)]
    if expected is not None:
        string = torch.randint(8, (1, expected + 1), generator=torch.Generator().manual_seed(2))
        without, oldest = string.clone(), string.clone()
        without[0, 0], oldest[0, 1] = (string[0, 0] + 1) % 8, (string[0, 1] + 1) % 8
        assert torch.equal(inner.last(without), inner.last(string))
        assert not torch.allclose(inner.last(oldest), inner.last(string))


def test_later_symbols_change_nothing_before_them() -> None:
    model, inputs = make("alibi"), draw(20)
    changed = torch.cat([inputs[:, :9], (inputs[:, 9:] + 1) % 3], 1)
    torch.testing.assert_close(model(changed)[:, :9], model(inputs)[:, :9])


class Slips(RecurrentModel):
    """Reads scratchpads of parity, and believes what they say: the answer is the last answer plus the symbol.

    Its state counts positions, the last answer and its own. At symbol `slip`, it errs.
    """

    def __init__(self, slip: int) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.slip = slip
        self.readout = torch.nn.Identity()

    def reset_parameters(self, generator: torch.Generator) -> None:
        pass

    def initial_state(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size, 2)

    def last_state(self, inputs: Tensor) -> Tensor:
        before = inputs[:, -2] - 2 if inputs.shape[1] > 1 else torch.zeros(len(inputs), dtype=torch.int64)
        answer = (before + inputs[:, -1] + (inputs.shape[1] == 2 * self.slip - 1)) % 2
        return torch.nn.functional.one_hot(answer, 2).float()

    def step(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def test_an_error_is_written_down_and_believed() -> None:
    """Told the right answers the model would err once; its own make all answers from there on wrong."""
    task = make_task("parity")
    model = OwnAnswers(Slips(slip=7), num_symbols=2)
    answers = model(draw(12) % 2).argmax(2)
    assert torch.equal(answers != task.solve(draw(12) % 2), (torch.arange(12) >= 6).expand(6, 12))
    curve = length_curve(model, task, [5, 6, 7, 30], num_strings=64, protocol="one-pass")
    assert [point.accuracy for point in curve.points] == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("base", ["parity", "cycle-navigation", "word-problem"])
def test_the_machine_of_a_scratchpad_solves_the_base_task_with_its_own_answers(base: str) -> None:
    pad_task, task = make_task("scratchpad", base=base), make_task(base)
    assert isinstance(pad_task, RegularTask)
    model = OwnAnswers(as_model(pad_task.transducer, pad_task.classes), num_symbols=len(task.symbols))
    assert length_curve(model, task, [1, 40, 200], num_strings=16, protocol="one-pass").min() == 1.0


def test_certify_refutes_own_answers_by_the_shortest_string() -> None:
    certificate = certify(OwnAnswers(Slips(slip=3), num_symbols=2), make_task("parity"))
    assert certificate.level == "refuted"
    assert certificate.counterexample is not None
    assert certificate.counterexample.string == ("a", "a", "a")


@pytest.mark.unchecked
def test_answers_are_no_symbols_of_the_strings() -> None:
    model: SequenceModel = make("window")
    with pytest.raises(ValueError, match=r"inputs: expected symbol ids in 0..2, got ids in 0..3"):
        model(torch.tensor([[0, 3]]))


def test_it_reads_half_as_many_symbols_as_its_model() -> None:
    task = make_task("scratchpad", base="parity")
    for settings, longest in (({"learned_positions": 9}, 5), ({}, None)):
        model = OwnAnswers(make_model("transformer", task, d_model=8, num_heads=2, **settings), num_symbols=2)
        assert model.max_length == longest
        model(torch.zeros(1, longest or 9, dtype=torch.int64))
