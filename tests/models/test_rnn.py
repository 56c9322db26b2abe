"""The simple recurrent network beyond the shared contract."""

import math

import pytest
import torch

from lengthwise.models import make_model
from lengthwise.models.rnn import MAX_POSITIONS_PER_CHUNK, RNN
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task
from lengthwise.training.loop import train


def make(**config) -> RNN:
    return make_model("rnn", make_task("cycle-navigation"), **config)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_computes_its_equation(activation: str, dtype: torch.dtype) -> None:
    """x_t = f(W_h x_{t-1} + W_x e_t), logits W_o x_t + b_o, written out number by number."""
    model = make(d_model=3, activation=activation).to(dtype)
    between = {"tanh": torch.tanh, "relu": lambda number: number.clamp(min=0)}[activation]
    hidden, read = model.hidden_weight, model.input_weight
    string, state, logits = [0, 2, 1, 1, 2], model.first_state, []
    for symbol in string:
        state = torch.stack([between((hidden[i] * state).sum() + read[i, symbol]) for i in range(3)])
        logits.append(torch.stack([(row * state).sum() for row in model.readout.weight]) + model.readout.bias)
    torch.testing.assert_close(model(torch.tensor([string]))[0], torch.stack(logits))


@pytest.mark.parametrize("length", [MAX_POSITIONS_PER_CHUNK - 1, MAX_POSITIONS_PER_CHUNK, MAX_POSITIONS_PER_CHUNK + 1])
def test_blocks_of_positions_leave_no_seam(length: int) -> None:
    model = make(d_model=8).double()
    inputs = torch.randint(3, (2, length), generator=torch.Generator().manual_seed(0))
    state = model.initial_state(2)
    with torch.no_grad():
        for token in inputs.unbind(1):
            logits, state = model.step(token, state)
        torch.testing.assert_close(model.last(inputs), logits)


def test_size_is_what_the_equation_says() -> None:
    width, symbols, classes = 64, 3, 5
    expected = width**2 + width * symbols + width + classes * (width + 1)
    assert sum(p.numel() for p in make().parameters()) == expected


@pytest.mark.parametrize("task", [pytest.param("parity", marks=pytest.mark.slow), "even-pairs"])  # the harder is slow
def test_learns_by_preset_plain(task: str) -> None:
    """Strings of up to 8 symbols from their final answers: half the loss of chance. Six seeds end below 0.20."""
    settings = {"train": {"steps": 300, "max_length": 8, "optimizer": {"learning_rate": 1e-2, "warmup_steps": 20}}}
    spec = make_spec(task, "rnn", settings, preset="plain")
    records = train(spec.make_model(), spec.task, spec.recipe, seed=0)
    assert sum(record.loss for record in records[-20:]) / 20 < math.log(2) / 2
