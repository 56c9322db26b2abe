"""Machines read off nets of which nobody says what they should be."""

from pathlib import Path

import pytest
import torch
from automaton_strategies import checked_strategies, transducers
from command import exit_code
from hypothesis import given, settings
from slow_nets import slow_net
from torch import nn

from lengthwise import construct, extract, make_model, make_task
from lengthwise.automata.labeled import difference, labeled_dfa
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.transducer import Transducer
from lengthwise.certification.verify import check
from lengthwise.extraction.prototypes import NotFinite
from lengthwise.formats.files import read_machine
from lengthwise.models.base import RecurrentModel
from lengthwise.models.block_linear_rnn import BlockLinearRNN
from lengthwise.runs.compiled import save_compiled

pytestmark = [checked_strategies, pytest.mark.usefixtures("fewer_strings")]


@pytest.mark.unchecked
@given(transducers(symbols=("a", "b"), max_states=5))
@settings(max_examples=10)
def test_a_net_is_proved_to_be_the_machine_that_it_was_made_of(machine: Transducer) -> None:
    outputs = machine.outputs - machine.outputs.min()
    there = Transducer(machine.semiautomaton, machine.start, outputs)
    net = construct("block-linear-rnn", there).model
    assert isinstance(net, BlockLinearRNN)
    names = tuple(f"answer {index}" for index in range(int(outputs.max()) + 1))
    machine_of_net, certificate = extract(net, "ab", names)
    assert certificate.level == "proved"
    assert machine_of_net.classes == names
    assert machine_of_net.machine.to_json() == there.minimize_nonempty().to_json()
    check(certificate)


def test_the_language_is_nobodys_to_say() -> None:
    """The same weights under the names of another task, whose language they are not."""
    net = construct("rnn", make_task("regex", pattern="(a|b)*abb")).model
    extracted = extract(net, make_task("parity").symbols, make_task("parity").classes)
    assert extracted.certificate.level == "proved"
    assert extracted.machine.machine.num_states == 4
    assert extracted.task.classes == make_task("parity").classes


def test_what_a_net_does_wrong_is_in_its_machine() -> None:
    """One that says b after so many a is no machine of two states, and whatever is read off it answers as it does."""
    net = slow_net("rnn", num_right=6)
    extracted = extract(net, "ab", ("0", "1"))
    strings = torch.tensor([[0] * length + [1] * (20 - length) for length in range(1, 21)])
    assert torch.equal(torch.from_numpy(extracted.machine.machine.run(strings.numpy())), net(strings).argmax(-1))
    assert extracted.machine.machine.num_states > 2


class Majority(RecurrentModel):
    """Whether a string has more b than a: it counts, without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(1, 2)
        with torch.no_grad():
            self.readout.weight.copy_(torch.tensor([[-1.0], [1.0]]))
            self.readout.bias.copy_(torch.tensor([0.5, 0.0]))

    def reset_parameters(self, generator: torch.Generator) -> None:
        raise NotImplementedError

    def initial_state(self, batch_size: int) -> torch.Tensor:
        return torch.zeros(batch_size, 1)

    def step(self, token: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = state + 2.0 * token[:, None] - 1
        return self.readout(state), state


def test_a_net_that_is_no_finite_machine_is_named() -> None:
    with pytest.raises(NotFinite, match="this net is not a finite machine, as far as its states show"):
        extract(Majority(), "ab", ("no", "yes"))


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("model", "symbols", "message"),
    [
        ("regular-gpt", "01", "expected a model that reads symbol by symbol, got a RegularGPT"),
        ("gru", "012", "^symbols: expected 2 names, one for each symbol, got 3; name all symbols$"),
        ("gru", "0", "^symbols: expected 2 names, one for each symbol, got 1; name all symbols$"),
        ("gru", "00", "symbols: expected distinct single characters, got '0' twice"),
    ],
)
def test_other_models_and_names_are_refused(model: str, symbols: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        extract(make_model(model, make_task("parity")), symbols, ("even", "odd"))


def test_every_answer_needs_a_name() -> None:
    with pytest.raises(ValueError, match=r"^classes: expected 2 names, one for each answer, got 1; name all classes$"):
        extract(make_model("gru", make_task("parity")), "ab", ("even",))


def test_the_command_writes_the_machine(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    save_compiled(construct("rnn", make_task("regex", pattern="(a|b)*abb")), "net")
    assert exit_code("extract", "net", "--out", "machine.dot") == 0
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "machine: 4 states, 2 symbols, answers out, in",
        "proved: the net answers like this machine at every length",
        "not covered: the answer to the empty string, which no net reads",
        "wrote: machine.dot",
    ]
    assert difference(read_machine("machine.dot"), labeled_dfa(dfa_from_regex("(a|b)*abb"))) is None
    assert exit_code("extract", "net", "--out", "machine.gif") == 2
    assert "machine.gif: expected a machine's file" in capsys.readouterr().err
    settings_of_run = ("--set", "train.steps=1", "--longest", "41", "--set", "model.d_model=8", "--runs", ".")
    assert exit_code("train", "parity", "regular-gpt", *settings_of_run, "--set", "model.num_heads=2") == 0
    (run,) = Path().glob("parity-*")
    capsys.readouterr()
    assert exit_code("extract", str(run), "--out", "other.dot") == 2
    assert "expected a recurrent model that reads symbols, got another" in capsys.readouterr().err
    assert not Path("other.dot").exists()
