"""The command attack: what it prints, and its exit codes."""

import json
from pathlib import Path

import pytest
from command import exit_code


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attack") / "compiled"
    assert exit_code("compile", "--task", "even-pairs", "--to", "rnn", "--out", str(folder)) == 0
    return folder


def test_a_right_net_ends_with_code_0(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert exit_code("attack", str(compiled), "--budget", "0.3", "--longest", "40") == 0
    assert "no wrong answer: among strings of up to 40 symbols; nothing is proved" in capsys.readouterr().out


def test_another_machine_refutes_it_with_code_1(compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The machine rejects ab, of which the first and the last symbol differ as in all other strings that it accepts."""
    capsys.readouterr()
    assert exit_code("attack", str(compiled), "a(a|b)(a|b)*b|b(a|b)*a", "--budget", "2", "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert result["string"] == ["a", "b"]
    assert result["family"] == "all short strings"
    assert result["families"][0]["is_complete"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "-1"], "--budget: expected CPU seconds above 0, got -1.0; try 5"),
        (["--longest", "0"], "--longest: expected a whole number of at least 1, got 0"),
        (
            ["--longest", "99999"],
            "--longest: expected a whole number from 1 to 4,096, got 99999; give a number in this range",
        ),
        (["(a|c)*"], "c"),
    ],
)
def test_wrong_requests_end_with_code_2(
    compiled: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert exit_code("attack", str(compiled), *arguments) == 2
    assert message in capsys.readouterr().err
