"""Answers of logs on the command line: OK and FAIL are taken for accept and reject, and others are renamed."""

import json
from pathlib import Path

import pytest
from command import printed

LOGS = """digraph { __start0 [shape=none]; __start0 -> q0;
q0 [shape=record, label="{q0|%s}"]; q1 [shape=record, label="{q1|%s}"];
q0 -> q0 [label=a]; q0 -> q1 [label=b]; q1 -> q1 [label=a]; q1 -> q1 [label=b]; }"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, answers in (("logs", ("OK", "FAIL")), ("colors", ("green", "red"))):
        Path(f"{name}.dot").write_text(LOGS % answers)


def test_labels_of_logs_are_taken_for_accept_and_reject_and_the_output_says_so(capsys) -> None:
    taken = "taken: OK as accept, FAIL as reject"
    assert printed(capsys, "diff", "logs.dot", "a*b?a*")[1].endswith(f"{taken} in logs.dot\n")
    Path("clean.json").write_text(
        '{"alphabet": ["a", "b"], "transitions": [[0, 1], [1, 1]], "accepting": [0], "start": 0}'
    )
    assert printed(capsys, "diff", "logs.dot", "clean.json") == (0, f"equal\n{taken} in logs.dot\n", "")
    out = json.loads(printed(capsys, "diff", "logs.dot", "clean.json", "--json")[1])
    assert out["taken"] == ["OK as accept, FAIL as reject in logs.dot"]
    assert "taken" not in printed(capsys, "diff", "logs.dot", "logs.dot")[1], "the names are the same"
    assert f"\n{taken}\n" in printed(capsys, "convert", "logs.dot", "logs.regex")[1]
    assert "taken" not in printed(capsys, "convert", "logs.dot", "logs.json")[1], "JSON keeps the names"


def test_the_advice_of_the_error_works(capsys) -> None:
    Path("clean.json").write_text(
        '{"alphabet": ["a", "b"], "transitions": [[0, 1], [1, 1]], "accepting": [0], "start": 0}'
    )
    code, _, err = printed(capsys, "diff", "colors.dot", "clean.json")
    assert code == 2
    assert "--accept ANSWER" in err
    assert "--rename OLD=NEW" in err
    assert printed(capsys, "diff", "colors.dot", "clean.json", "--accept", "green") == (0, "equal\n", "")
    assert printed(capsys, "diff", "colors.dot", "clean.json", "--accept", "red")[0] == 1
    renamed = ("--rename", "green=accept", "--rename", "red=reject")
    assert printed(capsys, "diff", "colors.dot", "clean.json", *renamed) == (0, "equal\n", "")
    code, _, err = printed(capsys, "convert", "colors.dot", "colors.regex")
    assert code == 2
    assert "(--accept ANSWER)" in err
    out = printed(capsys, "convert", "colors.dot", "colors.regex", "--accept", "green")[1]
    assert "answers reject, accept\n" in out
    assert Path("colors.regex").read_text() == "a*\nalphabet: ab\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--accept", "gren"),
            "--accept: expected one of green, red, reject, accept, got 'gren'; did you mean 'green'?",
        ),
        (("--rename", "gren=x"), "--rename: expected one of green, red, reject, accept, got 'gren'; did you mean"),
        (("--rename", "green"), "--rename: expected OLD=NEW, got 'green'"),
    ],
)
def test_an_answer_that_no_machine_has_is_named(capsys, options: tuple[str, str], sentence: str) -> None:
    code, _, err = printed(capsys, "diff", "colors.dot", "a*b?", *options)
    assert (code, sentence in err) == (2, True), err
