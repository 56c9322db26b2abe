"""Answers to prefixes with tails: every way to compute them against the definition."""

import pytest
import torch

from lengthwise.evaluation.continuations import continued_by_definition, continued_logits, num_symbols_read
from lengthwise.layers.positions.base import POSITIONS
from lengthwise.models.base import SequenceModel, make_model
from lengthwise.tasks import make_task

TASK = make_task("cycle-navigation")
NETS = {
    **{
        f"transformer {name}": (
            "transformer",
            {"positions": name, "num_layers": 3} | ({"learned_positions": 39} if name == "learned" else {}),
        )
        for name in POSITIONS
    },
    "transformer tied": ("transformer", {"readout": "tied", "read_in": "plain"}),
    "gru": ("gru", {}),
    "block-linear-rnn": ("block-linear-rnn", {}),
    "regular-gpt": ("regular-gpt", {}),
    "looped-transformer": ("looped-transformer", {}),
}


def net(name: str) -> SequenceModel:
    kind, config = NETS[name]
    model = make_model(kind, TASK, **config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far from any special value, as zeros or equal rows would be
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double()
    return model


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize(("length", "tail_length"), [(2, 1), (5, 4), (21, 3)])
def test_continuations_are_the_answers_to_whole_strings(name: str, length: int, tail_length: int) -> None:
    model = net(name)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(len(TASK.symbols), (2, length), generator=generator)
    tails = torch.randint(len(TASK.symbols), (3, tail_length), generator=generator)
    with torch.no_grad():
        expected = continued_by_definition(model, inputs, tails)
        assert expected.shape == (2, length - tail_length, 3, tail_length, len(TASK.classes))
        torch.testing.assert_close(continued_logits(model, inputs, tails), expected, rtol=1e-9, atol=1e-9)


class Counted(SequenceModel):
    """A net that counts the symbols that it reads."""

    def __init__(self, inner: SequenceModel) -> None:
        super().__init__()
        self.inner, self.readout, self.num_symbols = inner, inner.readout, 0

    def reset_parameters(self, generator):
        """There are none."""

    def forward(self, inputs):
        self.num_symbols += inputs.numel()
        return self.inner(inputs)

    def last_state(self, inputs):
        return self.inner.last_state(inputs)


def test_the_number_of_symbols_is_known_before_they_are_read() -> None:
    inner = make_model("regular-gpt", TASK)
    counted = Counted(inner)
    with torch.no_grad():
        continued_logits(counted, torch.zeros(2, 40, dtype=torch.int64), torch.zeros(3, 2, dtype=torch.int64))
    assert counted.num_symbols == num_symbols_read(counted, (2, 40), (3, 2))
    assert num_symbols_read(make_model("gru", TASK), (2, 40), (3, 2)) == 2 * (40 + 38 * 3 * 2)


def test_tails_must_be_shorter_than_strings() -> None:
    with pytest.raises(ValueError, match=r"tails: expected tails of at least 1 symbol .* shorter .*, got tails of 2"):
        continued_logits(make_model("gru", TASK), torch.tensor([[0, 1]]), torch.tensor([[0, 1]]))
