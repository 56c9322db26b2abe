"""A new kind of model gets certificates by one new file: this one has a model, its reader, its prover and the evidence.

The model sees the last two symbols, in no tree and in no recurrent state.
"""

from typing import Any, Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from last_symbol import LastSymbol
from torch import nn

from lengthwise import certify, machine_model
from lengthwise.automata import Semiautomaton, Transducer
from lengthwise.certification.certificate import EVIDENCE, Certificate, Evidence, Requirement, check_lead
from lengthwise.certification.methods.base import PROVERS, Prover, Unproved
from lengthwise.certification.parts import PositiveCount
from lengthwise.certification.verify import check
from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces, reader_of
from lengthwise.extraction.recurrent import states_of
from lengthwise.models.base import ModelConfig, SequenceModel

pytestmark = pytest.mark.usefixtures("fewer_strings")


class WindowModel(SequenceModel):
    """Answers by a linear map of the last two symbols, as one-hot vectors."""

    name = "window"
    Config = ModelConfig

    def __init__(self, num_symbols: int, num_classes: int) -> None:
        super().__init__()
        self.config = ModelConfig()
        self.num_symbols = num_symbols
        self.readout = nn.Linear(2 * num_symbols, num_classes)

    def reset_parameters(self, generator):
        nn.init.normal_(self.readout.weight, generator=generator)

    def states(self, inputs):
        newest = F.one_hot(inputs, self.num_symbols).float()
        return torch.cat([F.pad(newest, (0, 0, 1, -1)), newest], -1)

    def forward(self, inputs):
        return self.readout(self.states(inputs))

    def last_state(self, inputs):
        return self.states(inputs[:, -2:])[:, -1]


class WindowTraces(Traces):
    def __init__(self, model, strings):
        self.model, self.strings = model, strings

    def compare(self, extraction):
        expected = torch.from_numpy(extraction.fine.semiautomaton.run(self.strings.numpy(), extraction.fine.start))
        distances = (self.model.states(self.strings) - extraction.prototypes[expected]).norm(dim=-1)
        num_wrong = int((distances > 0).sum())
        return TraceCount(len(self.strings), distances.numel(), num_wrong, float(distances.max()))


@READERS.register("window")
class WindowReader(Reader[WindowModel]):
    """State 0 is the empty string, then all symbols, then all pairs of them."""

    @staticmethod
    def reads(model):
        return isinstance(model, WindowModel)

    def radii(self, strings):
        return [0.0]

    def extract(self, radius):
        size = len(self.symbols)
        singles = [torch.tensor([[v]]) for v in range(size)]
        pairs = [torch.tensor([[u, v]]) for u in range(size) for v in range(size)]
        states = torch.cat([torch.zeros(1, 2 * size), *map(self.model.last_state, [*singles, *pairs])])
        newest = np.array([-1, *range(size), *np.tile(np.arange(size), size)])
        table = np.where(newest[:, None] < 0, 1, 1 + size + size * newest[:, None]) + np.arange(size)
        fine = Transducer(Semiautomaton(table, self.symbols), 0, self.model.readout(states).argmax(-1).numpy())
        machine = fine.minimize()
        return Extraction(machine, fine, states_of(machine, fine), states, 1, 0.0, 1.0, 2)

    def traces(self, strings):
        return WindowTraces(self.model, strings)


@EVIDENCE.register("windows")
class WindowEvidence(Evidence):
    """All windows, and the smallest lead of a right logit."""

    requires = Requirement("transducer", {"window": {}})
    assumes = "the model reads two symbols"

    method: Literal["windows"] = "windows"
    num_windows: PositiveCount
    logit_margin: float

    def describe(self) -> str:
        return f"{self.num_windows} windows"

    def check_numbers(self, certificate: Certificate) -> None:
        check_lead(self.logit_margin, certificate)


@PROVERS.register("windows")
class WindowProver(Prover):
    """A sum of two weights and a bias is rounded twice."""

    reader = "window"

    def prove(self, model: Any, extraction: Extraction) -> Evidence:
        weight, bias = (parameter.double() for parameter in model.readout.parameters())
        logits = F.linear(extraction.prototypes.double(), weight, bias)
        needed = torch.tensor(extraction.fine.outputs) >= 0
        rounding = 4 * torch.finfo(torch.float32).eps * float(sum(p.abs().max() for p in model.readout.parameters()))
        best = logits[needed].topk(2).values
        margin = float((best[:, 0] - best[:, 1]).min()) - 2 * rounding
        if margin <= 0:
            raise Unproved("rounding may decide an answer")
        return WindowEvidence(num_windows=len(extraction.prototypes), logit_margin=margin)


def last_symbol_window(bias: float = 0.0, weight: float = 1.0) -> WindowModel:
    model = WindowModel(2, 2)
    with torch.no_grad():
        model.readout.weight.zero_()
        model.readout.weight[:, 2:] = weight * torch.eye(2)
        model.readout.bias.copy_(torch.tensor([0.0, bias]))
    return model


def test_a_new_kind_is_proved_verified_and_replaced_by_its_machine() -> None:
    certificate = certify(last_symbol_window(), LastSymbol())
    assert (certificate.level, certificate.reason) == ("proved", "")
    assert certificate.evidence == WindowEvidence(num_windows=7, logit_margin=certificate.evidence.logit_margin)
    assert 0.99 < certificate.evidence.logit_margin < 1
    again = Certificate.from_text(certificate.to_text())
    assert again == certificate
    assert "the model reads two symbols" in check(again).taken_on_trust
    strings = torch.randint(2, (50, 33), generator=torch.Generator().manual_seed(0))
    assert torch.equal(machine_model(again)(strings).argmax(-1), LastSymbol().solve(strings))


def test_a_new_kind_that_errs_is_refuted() -> None:
    certificate = certify(last_symbol_window(bias=3.0), LastSymbol())
    assert (certificate.level, certificate.counterexample.string) == ("refuted", ("a",))


def test_a_new_kind_whose_answers_rounding_decides_is_not_proved() -> None:
    certificate = certify(last_symbol_window(bias=1.0, weight=1.0 + 1e-6), LastSymbol())
    assert (certificate.level, certificate.reason) == ("extracted", "rounding may decide an answer")


def test_evidence_of_a_new_kind_belongs_to_it() -> None:
    certificate = certify(last_symbol_window(), LastSymbol())
    no_margin = certificate.evidence.model_copy(update={"logit_margin": 0.0})
    for change, message in (
        ({"model": {"name": "gru"}}, "method 'windows' expects window and a transducer machine, got model 'gru'"),
        ({"evidence": no_margin}, "expected a positive logit margin, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            check(certificate.model_copy(update=change))


class Ambiguous(Reader[WindowModel]):
    """Not derived from the reader that reads the same models."""

    name = "ambiguous"
    reads = staticmethod(WindowReader.reads)
    radii, extract, traces = WindowReader.radii, WindowReader.extract, WindowReader.traces


def test_of_two_readers_one_has_to_be_derived_from_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    model = last_symbol_window()
    assert type(reader_of(model, ("a", "b"))) is WindowReader
    monkeypatch.setitem(READERS._members, "ambiguous", Ambiguous)
    with pytest.raises(ValueError, match="one reader for a WindowModel, got ambiguous, window; derive one of them"):
        reader_of(model, ("a", "b"))
    finer = type("Finer", (WindowReader,), {"name": "finer"})
    monkeypatch.setitem(READERS._members, "ambiguous", finer)
    assert type(reader_of(model, ("a", "b"))) is finer
