"""`lengthwise diff NET NET`: the nets themselves are compared, and exit codes can be relied on."""

import json
from pathlib import Path

import pytest
from command import exit_code
from safetensors.torch import save_model
from torch import nn

import lengthwise.runs.certified as certified_module
from lengthwise import construct, make_task
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.certification.equality import Equality
from lengthwise.runs.compiled import save_compiled
from lengthwise.tasks.regular.machine import machine_task

pytestmark = [pytest.mark.usefixtures("fewer_strings"), pytest.mark.unchecked]

NETS = {
    "ends": ["(a|b)*abb", "--to", "rnn"],
    "again": ["(b*a)+bb", "--to", "block-linear-rnn"],
    "other": ["(a|b)*bb", "--to", "rnn"],
    "parity": ["--task", "parity", "--to", "rnn"],
    "three": ["(a|b|c)*a", "--to", "rnn"],
}


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets")
    for name, arguments in NETS.items():
        assert exit_code("compile", *arguments, "--out", str(folder / name)) == 0
    return folder


@pytest.fixture(autouse=True)
def in_folder(nets: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(nets)
    capsys.readouterr()


def test_equal_nets_end_with_code_0_without_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("diff", "ends", "again") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "equal: both nets, rounding errors included, are proved to give the same answer to every string"
    )
    assert "levels: ends proved, again proved" in lines


def test_different_nets_end_with_code_1_at_every_level_of_equality(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("diff", "ends", "other", "--min-level", "tested") == 1
    assert capsys.readouterr().out.startswith("different: on bb, ends answers out, other answers in\nlength: 2 symbols")
    assert exit_code("diff", "ends", "other", "--json") == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["equal"], result["level"], result["counterexample"]["string"]) == (False, "refuted", ["b", "b"])


def test_an_undecided_comparison_ends_with_code_1_unless_a_lower_level_is_enough(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    undecided = Equality(level="extracted", num_states=2, levels=("proved", "extracted"), enumerated_length=12)
    monkeypatch.setattr(certified_module, "equal", lambda *nets, **settings: undecided)
    assert exit_code("diff", "parity", "ends") == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("not decided: ")
    assert printed.err.endswith("lengthwise: not decided; `--min-level extracted` exits with code 0 at this level\n")
    assert exit_code("diff", "parity", "ends", "--min-level", "bounded") == 1
    assert "lengthwise: --min-level: expected bounded or higher, got extracted" in capsys.readouterr().err
    assert exit_code("diff", "parity", "ends", "--min-level", "extracted", "--json") == 0
    assert json.loads(capsys.readouterr().out)["equal"] is None


def test_a_budget_ends_the_comparison_and_steps_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("diff", "ends", "again", "--budget", "100") == 0
    output, steps = capsys.readouterr()
    assert output.startswith("equal: ")
    assert steps.startswith("lengthwise: testing both nets on structured strings\nlengthwise: extracting machines")
    assert exit_code("diff", "ends", "again", "--budget", "0.001") == 1
    output, _ = capsys.readouterr()
    assert output.startswith("not decided: both nets give the same answer to every string of up to 12 symbols; ")
    assert "\nnot higher, because: the budget of 0.001 CPU s ended before step 'extracting machines" in output
    for given, message in (
        (("ends", "again", "--budget", "0"), "--budget: expected CPU seconds above 0"),
        (("(a|b)*abb", "ends", "--budget", "5"), "--budget: expected two nets, got a machine"),
    ):
        assert exit_code("diff", *given) == 2
        assert message in capsys.readouterr().err


def test_answers_of_other_names_are_matched_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("diff", "ends", "parity") == 1
    assert capsys.readouterr().out.endswith("taken: 0 of parity as out, 1 of parity as in\n")


def test_answers_of_opposite_meaning_are_never_matched(capsys: pytest.CaptureFixture[str]) -> None:
    """Each net accepts what the other rejects, and both give the same numbers."""
    machine = make_task("regex", pattern="(a|b)*abb").transducer
    for name, classes in (("first", ("no", "yes")), ("opposite", ("accepted", "rejected")), ("like", ("out", "in"))):
        save_compiled(construct("rnn", machine_task(LabeledMachine(machine, classes))), name)
    assert exit_code("diff", "first", "opposite") == 2
    assert (
        "opposite: expected the accepting answer at index 1, as in the net first (no, yes), got index 0 (acc"
        in capsys.readouterr().err
    )
    assert exit_code("diff", "first", "like") == 0


def test_nets_in_toml_files_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    parts = nn.ModuleDict({"embedding": nn.Embedding(2, 4), "core": nn.RNN(4, 4), "head": nn.Linear(4, 2)})
    save_model(parts, "net.safetensors")
    Path("net.toml").write_text('weights = "net.safetensors"\ntask = "parity"\n')
    assert exit_code("diff", "net.toml", "parity") == 1
    assert capsys.readouterr().out.startswith("different: on ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("ends", "three"),
            "three: expected a net with the symbols a b in this order, as in the net ends, got",
        ),
        (("ends", "again", "--accept", "in"), "diff: --alphabet, --accept and --rename are not allowed with two nets"),
        (("ends", "again", "--min-level", "equal"), "proved, got 'equal'; choose one"),
        (("(a|b)*", "[ab]*", "--min-level", "proved"), "--min-level: expected two nets, got a machine"),
    ],
)
def test_wrong_requests_end_with_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert exit_code("diff", *arguments) == 2
    assert sentence in capsys.readouterr().err
