"""Certificates and the folders they are about."""

from pathlib import Path

import pytest
import torch

from lengthwise.cli import main
from lengthwise.constructions import construct
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks import make_task


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["certify", *arguments])
    captured = capsys.readouterr()
    return int(stopped.value.code or 0), captured.out + captured.err


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """A compiled machine and its certificate; the same with one weight a bit off; a machine of another task."""
    parity = construct("rnn", make_task("parity"))
    save_compiled(parity, tmp_path / "parity")
    with torch.no_grad():
        next(parity.model.parameters()).view(-1)[0] += 1e-6
    save_compiled(parity, tmp_path / "moved")
    save_compiled(construct("rnn", make_task("even-pairs")), tmp_path / "pairs")
    return [str(tmp_path / name) for name in ("parity", "moved", "pairs")]


def test_a_certificate_is_checked_against_the_weights_it_is_about(folders: list[str], capsys) -> None:
    parity, moved, pairs = folders
    code, text = said(capsys, parity, "--at-least", "finite")
    assert code == 0, text
    check = ("--check", f"{parity}/certificate.json")
    code, text = said(capsys, parity, *check)
    assert code == 0
    assert f"verified: the certificate is about the weights and the task in {parity}" in text
    for other in (moved, pairs):
        code, text = said(capsys, other, *check)
        assert code == 2
        assert text == (
            f"lengthwise: {other}: wanted the model of the certificate, got other weights; certify {other} anew\n"
        )
