"""Machines of models that see a window, against the models themselves and against machines written down."""

import numpy as np
import pytest
import torch
from torch import Tensor

from lengthwise.certification.equivalence import first_error
from lengthwise.conventions import IGNORE
from lengthwise.evaluation.length_curve import prefix_answers
from lengthwise.extraction.windows import window_machine
from lengthwise.models import SequenceModel, make_model
from lengthwise.models.own_answers import OwnAnswers
from lengthwise.tasks import make_task


def make(task: str, window: int, **settings: object) -> SequenceModel:
    """With parameters that are moved, and biases such that both answers are given."""
    model = make_model("transformer", make_task(task), positions="local", position_range=window, d_model=16, **settings)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
        logits = model(draw(60))
        model.readout[1].bias += logits.mean((0, 1)).mean() - logits.mean((0, 1))
    return model.eval()


def draw(length: int) -> Tensor:
    return torch.randint(2, (64, length), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("window", [1, 2, 4])
@pytest.mark.parametrize("writes", [False, True])
@torch.no_grad()
def test_the_machine_answers_as_the_model_does(window: int, writes: bool) -> None:
    model = make("scratchpad" if writes else "parity", window)
    model = OwnAnswers(model, num_symbols=2) if writes else model
    machine, margin, receptive_field = window_machine(model, ("a", "b"))
    assert margin > 1e-4  # far above rounding, so that equal answers are no accident
    assert receptive_field == 2 * (window - 1) + 1
    assert machine.outputs[machine.start] == IGNORE
    for length in (1, 5, 60):
        answers = prefix_answers(model, draw(length)).numpy()
        np.testing.assert_array_equal(machine.run(draw(length).numpy()), answers)
    assert len(set(machine.outputs[1:].tolist())) == 2 or window == 1


def test_all_windows_are_states_and_no_others() -> None:
    """Receptive field 2 (3 - 1) + 1 = 5: 2 + 4 + 8 + 16 + 32 strings of up to five symbols."""
    machine = window_machine(make("parity", 3), ("a", "b")).machine
    assert machine.num_states == 1 + 62


@torch.no_grad()
def test_margin_is_the_least_of_any_window() -> None:
    model = make("parity", 2)
    strings = [torch.cartesian_prod(*[torch.arange(2)] * length).reshape(-1, length) for length in (1, 2, 3)]
    logits = torch.cat([model.last(every) for every in strings])
    expected = (logits[:, 0] - logits[:, 1]).abs().min()
    assert window_machine(model, ("a", "b")).margin == pytest.approx(float(expected), rel=1e-4)


@torch.no_grad()
def test_a_window_alone_does_not_solve_parity_and_the_shortest_string_says_so() -> None:
    """Of four symbols or fewer: an a or a b before the last three leads to other answers, which they do not show."""
    model, task = make("parity", 2), make_task("parity")
    error = first_error(window_machine(model, task.symbols).machine, task.reference)
    assert error is not None
    assert 1 <= len(error) <= 4
    string = task.encode("".join(error))[None]
    assert int(model.last(string).argmax()) != int(task.solve(string)[0, -1])


def test_models_that_read_all_are_no_such_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = make_model("transformer", make_task("parity"))
    for model in (everything, make_model("gru", make_task("parity"))):
        with pytest.raises(ValueError, match="model: expected a model whose answers depend only on a fixed number"):
            window_machine(model, ("a", "b"))
    monkeypatch.setattr("lengthwise.extraction.windows.MAX_WINDOWS", 1_000)
    with pytest.raises(
        ValueError,
        match="model: expected at most 1,000 windows of symbols that fit in its receptive field, got more; choose",
    ):
        window_machine(make("parity", 30), ("a", "b"))


def test_logits_that_are_no_numbers_are_no_answers_and_one_class_has_no_margin() -> None:
    task = make_task("machine", alphabet=("a", "b"), table=((0, 0),), outputs=(0,), answers=("x",))
    model = make_model("transformer", task, d_model=8, num_heads=2, positions="local", position_range=2)
    assert window_machine(model, task.symbols).margin == float("inf")
    with torch.no_grad():
        model.readout[-1].bias.fill_(torch.nan)
    with pytest.raises(ValueError, match="model: expected finite logits, got NaN or infinity"):
        window_machine(model, task.symbols)
