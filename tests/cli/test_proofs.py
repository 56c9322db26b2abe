"""`lengthwise certify --proof`: proofs as files, written next to their certificates and checked there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from certificate_contents import text_of
from command import exit_code
from fewer_strings import LENGTHS, NUM_STRINGS, draw_fewer_strings
from safetensors import safe_open
from safetensors.numpy import save_file

pytestmark = pytest.mark.usefixtures("fewer_strings")
PROOF = "certificate.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a net with a certificate and a proof."""
    path = tmp_path_factory.mktemp("proofs") / "parity"
    assert exit_code("compile", "--task", "parity", "--to", "rnn", "--out", str(path)) == 0
    with pytest.MonkeyPatch.context() as patch:
        draw_fewer_strings(patch.setattr)
        assert exit_code("certify", str(path), "--proof", "--min-level", "proved") == 0
    return path


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """Its certificate; `PROOF` lies next to it."""
    shutil.copy(folder / PROOF, tmp_path)
    return Path(shutil.copy(folder / "certificate.json", tmp_path))


def verdict(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = exit_code("certify", *arguments)
    out, error = capsys.readouterr()
    if code and "--check" in arguments:
        assert len(error.splitlines()) == 1, error
        assert error.startswith("lengthwise: ")
    return code, out, error


def test_what_was_written_is_checked(folder: Path, capsys) -> None:
    path = folder / "certificate.json"
    code, out, _ = verdict(capsys, "--check", str(path), "--proof")
    assert code == 0
    assert "verified: certificate.safetensors, checked with NumPy alone: " in out
    assert "steps lead from" in out
    named = 'the model is rnn (d_model=5, activation="relu"), and computes the checker\'s formulas'
    assert named in out
    code, again, _ = verdict(capsys, str(folder), "--check", str(path), "--proof")
    assert code == 0
    sentence = "the transducer (2 states) belongs to task parity"
    assert f"taken from the file: {sentence}" in out
    assert f"taken from the file: {sentence}" not in again
    assert {
        line.replace(f"taken from the file: {sentence}", f"verified: {sentence}") for line in out.splitlines()
    } <= set(again.splitlines())


def test_numbers_that_no_proof_shows_are_said_to_be_copied(folder: Path, copied: Path, capsys) -> None:
    """A margin of 10^9 is not noticed, because no claim contains it; the proof of the net itself shows its own."""
    content = json.loads(copied.read_text())
    margin = content["evidence"]["logit_margin"]
    content["evidence"]["logit_margin"] = 1e9
    copied.write_text(text_of(content))
    for arguments in (("--check", str(copied), "--proof"), (str(folder), "--check", str(copied), "--proof")):
        code, out, _ = verdict(capsys, *arguments)
        assert code == 0
        (line,) = (line for line in out.splitlines() if "logit_margin" in line or "1e+09" in line)
        assert line.startswith("taken from the file: method 'intervals' recorded num_prototypes=")
        assert line.endswith(", logit_margin=1e+09; these numbers are copied, not proved")
    (again,) = (line for line in out.splitlines() if "proves the model again" in line)
    assert again.endswith(f"the right logit leads by {margin:.2g}")


def test_checking_a_proof_needs_no_torch(folder: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from lengthwise.certification import verify; "
        f"verify.MIN_LENGTHS, verify.MIN_STRINGS = {LENGTHS}, {NUM_STRINGS}; "  # as those of this certificate
        "from lengthwise.cli.app import main; main(sys.argv[1:])"
    )
    path = folder / "certificate.json"
    command = [sys.executable, "-c", program, "certify", "--check", str(path), "--proof"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "with NumPy alone" in done.stdout


def test_no_file_of_a_proof(copied: Path, capsys) -> None:
    copied.with_name(PROOF).unlink()
    code, _, error = verdict(capsys, "--check", str(copied), "--proof")
    assert code == 2
    assert f"{PROOF}: expected a proof, got no file; `lengthwise certify` with option `proof` writes it" in error


def test_the_proof_of_another_net(copied: Path, capsys) -> None:
    path = copied.with_name(PROOF)
    with safe_open(path, "np") as file:
        tensors, about = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    save_file(tensors | {"weights.readout.bias": tensors["weights.readout.bias"] + 1}, path, about)
    code, _, error = verdict(capsys, "--check", str(copied), "--proof")
    assert code == 1
    assert "net of the certificate, got another; run `lengthwise certify` again with option `proof`" in error


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.999])
def test_proofs_cut_short(kept: float, copied: Path, capsys) -> None:
    proof = copied.with_name(PROOF).read_bytes()
    copied.with_name(PROOF).write_bytes(proof[: int(kept * len(proof))])
    code, _, error = verdict(capsys, "--check", str(copied), "--proof")
    assert code == 1
    assert ": damaged" in error or "expected an offset of tensor" in error


def test_levels_below_have_none(tmp_path: Path, capsys) -> None:
    settings = ["--set", "train.steps=1", "--longest", "500", "--runs", str(tmp_path)]
    assert exit_code("train", "parity", "gru", *settings) == 0
    (run,) = tmp_path.iterdir()
    code, out, error = verdict(capsys, str(run), "--proof")
    assert "refuted: " in out
    assert code == 1
    assert "proof: expected level 'proved' or 'bounded', got level 'refuted', which has no proof; leave out" in error
    code, _, error = verdict(capsys, "--check", str(run / "certificate.json"), "--proof")
    assert code == 2
    assert "got level 'refuted', which has no proof" in error
