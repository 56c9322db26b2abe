"""A new kind of model gets certificates by its own file alone: `tests/new_kind.py`."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from last_symbol import LastSymbol

from lengthwise import certify, machine_model
from lengthwise.certification.certificate import EVIDENCE, Certificate
from lengthwise.certification.methods.base import PROVERS
from lengthwise.certification.verify import check
from lengthwise.extraction.base import READERS, Reader, reader_of
from lengthwise.models import MODELS, SequenceModel

pytestmark = pytest.mark.usefixtures("fewer_strings")

FILE = Path(__file__).parent.parent / "new_kind.py"


@pytest.fixture(scope="module")
def kind() -> Iterator[ModuleType]:
    """The file, whose members are registered for the tests of this module alone."""
    with pytest.MonkeyPatch.context() as patch:
        for registry in (MODELS, READERS, PROVERS, EVIDENCE):
            list(registry)
            patch.setattr(registry, "_members", dict(registry._members))
        spec = importlib.util.spec_from_file_location("new_kind", FILE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "new_kind", module)
        spec.loader.exec_module(module)
        yield module


def last_symbol_window(kind: ModuleType, bias: float = 0.0, weight: float = 1.0) -> SequenceModel:
    model = kind.WindowModel(kind.WindowConfig(), vocab_size=2, num_classes=2)
    with torch.no_grad():
        model.readout.weight.zero_()
        model.readout.weight[:, 2:] = weight * torch.eye(2)
        model.readout.bias.copy_(torch.tensor([0.0, bias]))
    return model


def test_a_new_kind_is_proved_verified_and_replaced_by_its_machine(kind: ModuleType) -> None:
    certificate = certify(last_symbol_window(kind), LastSymbol())
    assert (certificate.level, certificate.reason) == ("proved", "")
    assert certificate.evidence == kind.WindowEvidence(num_windows=7, logit_margin=certificate.evidence.logit_margin)
    assert 0.99 < certificate.evidence.logit_margin < 1
    again = Certificate.from_text(certificate.to_text())
    assert again == certificate
    assert "the model reads two symbols" in check(again).taken_on_trust
    strings = torch.randint(2, (50, 33), generator=torch.Generator().manual_seed(0))
    assert torch.equal(machine_model(again)(strings).argmax(-1), LastSymbol().solve(strings))


def test_a_new_kind_that_errs_is_refuted(kind: ModuleType) -> None:
    certificate = certify(last_symbol_window(kind, bias=3.0), LastSymbol())
    assert (certificate.level, certificate.counterexample.string) == ("refuted", ("a",))


def test_a_new_kind_whose_answers_rounding_decides_is_not_proved(kind: ModuleType) -> None:
    certificate = certify(last_symbol_window(kind, bias=1.0, weight=1.0 + 1e-6), LastSymbol())
    assert (certificate.level, certificate.reason) == ("extracted", "rounding may decide an answer")


def test_evidence_of_a_new_kind_belongs_to_it(kind: ModuleType) -> None:
    certificate = certify(last_symbol_window(kind), LastSymbol())
    no_margin = certificate.evidence.model_copy(update={"logit_margin": 0.0})
    for change, message in (
        ({"model": {"name": "gru"}}, "method 'windows' expects a transducer machine and model window, got model 'gru'"),
        ({"evidence": no_margin}, "expected a positive logit margin, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            check(certificate.model_copy(update=change))


def test_of_two_readers_one_has_to_be_derived_from_the_other(kind: ModuleType, monkeypatch) -> None:
    model, reader = last_symbol_window(kind), kind.WindowReader
    ambiguous = type("Ambiguous", (Reader,), {**reader.__dict__, "name": "ambiguous"})
    assert type(reader_of(model, ("a", "b"))) is reader
    monkeypatch.setitem(READERS._members, "ambiguous", ambiguous)
    with pytest.raises(ValueError, match="one reader for a WindowModel, got the readers 'ambiguous', 'window'; make"):
        reader_of(model, ("a", "b"))
    finer = type("Finer", (reader,), {"name": "finer"})
    monkeypatch.setitem(READERS._members, "ambiguous", finer)
    assert type(reader_of(model, ("a", "b"))) is finer
