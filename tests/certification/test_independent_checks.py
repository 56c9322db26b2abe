"""Certificates say whether the separate checker accepted their proof, and what the CPU's kernels were like."""

from pathlib import Path

import pytest
import torch
from last_symbol import LastSymbol
from proved_nets import NETS

from lengthwise import certify
from lengthwise.certification import builder, checker, kernels, proof_file
from lengthwise.certification import certify as certify_module
from lengthwise.certification.certificate import Certificate, certificate_card
from lengthwise.certification.kernels import kernel_report
from lengthwise.certification.parts import MeasuredKernel
from lengthwise.certification.proof_file import write_proof
from lengthwise.certification.verify import check
from lengthwise.report.tables.certificate import certificate_lines, checked_lines


@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    "name",
    [
        *("chunks of 2", "reflections"),
        # Each is a whole certificate; test_checker accepts the proofs of all nets.
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("codes", "compiled tree", "wrapped lstm", "choices")),
    ],
)
def test_a_proof_is_checked_when_it_is_found(name: str, tmp_path: Path) -> None:
    model, task = NETS[name]
    certificate = Certificate.from_text(certify(model, task).to_text())
    assert certificate.level == ("bounded" if name == "reflections" else "proved")
    assert certificate.independently_checked
    assert "yes: a separate program" in dict(certificate_lines(certificate))["independently checked"]
    assert "yes: a separate program" in certificate_card(certificate)
    path = tmp_path / "certificate.safetensors"
    sentence = write_proof(certificate, model, task, path)
    checked = check(certificate, path)
    assert any(sentence in verified for verified in checked.verified)
    settings = [part for part in certificate.model if part != "name"]
    assert all(f"{part}=" in checked.taken_on_trust[-1] for part in settings), "two nets may differ in one of them"
    assert list(checked_lines(certificate, checked))
    assert "the separate checker accepted the proof when the certificate was made" in check(certificate).taken_on_trust


@pytest.mark.usefixtures("fewer_strings")
def test_a_proof_that_the_checker_rejects_is_said_not_to_be_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def reject(*_: object) -> str:
        raise checker.Rejected("proof: no")

    monkeypatch.setattr(proof_file, "check", reject)
    certificate = certify(*NETS["rnn"])
    assert (certificate.level, certificate.independently_checked) == ("proved", False)
    assert dict(certificate_lines(certificate))["independently checked"].startswith("no: only the method")
    path = tmp_path / "proof.safetensors"
    with pytest.raises(ValueError, match=r"proof: no; the separate checker, .*, so no proof file is written"):
        write_proof(certificate, *NETS["rnn"], path)
    assert not path.exists()


@pytest.mark.usefixtures("fewer_strings")
def test_kernels_are_in_the_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = certify(*NETS["rnn"])
    assert certificate.kernels is not None
    assert certificate.kernels.torch == torch.__version__
    assert {kernel.name for kernel in certificate.kernels.kernels} == kernels.measurements().keys()
    line = dict(certificate_lines(certificate))["this CPU's kernels"]
    assert line.startswith(
        f"all {len(certificate.kernels.kernels)} measured functions are as accurate as proofs assume"
    )
    report = kernel_report()
    sigmoid = MeasuredKernel(name="sigmoid inside nn.LSTM", dtype="float32", measured=18.4, assumed=8.0)
    worse = report.model_copy(update={"kernels": (*report.kernels, sigmoid)})
    for module in (certify_module, builder):
        monkeypatch.setattr(module, "kernel_report", lambda: worse)
    certificate = certify(NETS["rnn"][0], LastSymbol())
    assert certificate.level == "extracted"
    assert certificate.reason == (
        "the float32 sigmoid inside nn.LSTM is off by 18.4 units on this CPU; the proof assumes at most 8"
    )
