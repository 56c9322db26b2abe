"""What was asked for is done, also later and in other words: runs resumed, help in any width, slips of new users."""

from pathlib import Path

import pytest
from command import exit_code
from torch import nn

from lengthwise import certify, execute, length_curve, make_model, make_spec, make_task
from lengthwise.cli import app, index, outputs
from lengthwise.cli.streams import Output
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.folder import RunFolder


def test_a_resumed_run_is_measured_by_its_own_plan(tmp_path: Path, capsys) -> None:
    words = ["train", "parity", "rnn", "--runs", str(tmp_path), "--set", "train.steps=5", "--longest", "60"]
    assert exit_code(*words) == 0
    (folder,) = tmp_path.iterdir()
    before = (folder / "result.json").read_bytes()
    assert RunFolder(folder).read_plan() == EvaluationPlan().limit_lengths(60)
    assert "single lengths" not in capsys.readouterr().out
    assert exit_code("resume", str(folder)) == 0
    assert (folder / "result.json").read_bytes() == before
    assert exit_code("resume", str(folder), "--longest", "70") == 0
    assert RunFolder(folder).read_plan() == RunFolder(folder).read_result().plan == EvaluationPlan().limit_lengths(70)


def test_a_resumed_run_keeps_how_it_is_measured_and_a_shorter_request_loses_nothing(tmp_path: Path) -> None:
    spec = make_spec("parity", "rnn", {"train": {"steps": 5}})
    plan = EvaluationPlan(dense=(41, 50), dense_strings=8, long=((60, 4),), structured=(), seed=3, certificate=True)
    execute(spec, tmp_path, plan)
    folder = tmp_path / spec.id
    assert exit_code("resume", str(folder), "--longest", "55") == 0
    again = RunFolder(folder).read_result().plan
    assert (again.dense, again.dense_strings, again.seed, again.certificate) == ((41, 55), 8, 3, True)
    content = (folder / "result.json").read_bytes()
    assert exit_code("resume", str(folder), "--longest", "45") == 0
    assert (folder / "result.json").read_bytes() == content


def test_files_that_cannot_be_written_are_named_before_the_work(tmp_path: Path, capsys, monkeypatch) -> None:
    def refused(*_, **__) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(outputs, "TemporaryFile", refused)
    with pytest.raises(ValueError, match=r"x\.csv: cannot be written \(Read-only file system\); name a file in"):
        outputs.check_writable(tmp_path / "x.csv")


def test_without_a_terminal_help_is_80_columns_wide_and_lines_are_as_long_as_they_are(capsys, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert exit_code("report", "--help") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) == 80
    line = " ".join(["word"] * 60)
    Output().print(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_help_is_set_as_wide_as_the_terminal_is(capsys, monkeypatch) -> None:
    """The line breaks of the docstrings are not those of the help."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("learn", "memorize", "train"):
        assert exit_code(name, "--help") == 0
        about = capsys.readouterr().out.partition("╭")[0].strip().split("\n\n")[1:]
        for paragraph in about:
            *lines, _ = paragraph.split("\n")
            next_words = [line.split()[0] for line in paragraph.split("\n")[1:]]
            assert all(len(f"{line.rstrip()} {word}") > 79 for line, word in zip(lines, next_words, strict=True))


def test_a_file_is_no_run_folder(tmp_path: Path, capsys) -> None:
    (tmp_path / "net.toml").write_text("[model]\n")
    for words in (["resume"], ["report", "--out", str(tmp_path / "page.html")]):
        assert exit_code(words[0], str(tmp_path / "net.toml"), *words[1:]) == 2
        error = capsys.readouterr().err
        assert "net.toml: expected a run folder, got a file" in error, error


def test_columns_between_semicolons_are_named(tmp_path: Path, capsys) -> None:
    (tmp_path / "traces.csv").write_text("trace;label\na b;x\nb a;y\n")
    assert exit_code("learn", str(tmp_path / "traces.csv"), "--out", str(tmp_path / "machine")) == 2
    assert (
        "expected columns with commas (.csv) or tabs (.tsv) between them, got 'trace;label'" in capsys.readouterr().err
    )


def test_a_machine_over_words_needs_an_expression_over_words_next_to_it(tmp_path: Path, capsys) -> None:
    (tmp_path / "doors.dot").write_text(
        'digraph { start [shape=none]; start -> a; a [label="a / no"]; a -> a [label="open"]; }'
    )
    assert exit_code("diff", str(tmp_path / "doors.dot"), "(a|b)*") == 2
    error = capsys.readouterr().err
    assert (
        "(a|b)*: expected an expression over words, because another machine has the symbol 'open', got an expression "
        "over" in error
    )


def test_a_net_that_was_there_is_not_replaced_without_a_word(tmp_path: Path, capsys) -> None:
    for is_there in (False, True):
        assert exit_code("compile", "(ab)*", "--to", "rnn", "--out", str(tmp_path / "net")) == 0
        assert ("replaces the earlier net" in capsys.readouterr().out) == is_there


@pytest.mark.unchecked
def test_a_plain_net_is_told_apart_from_a_model() -> None:
    task = make_task("parity")
    with pytest.raises(ValueError, match=r"^model: expected a model of this package, got LSTM; .*`lengthwise\.wrap"):
        certify(nn.LSTM(2, 3), task)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^task: expected a task, got 'parity'; make one with lengthwise\.make_task"):
        certify(make_model("gru", task), "parity")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^lengths: expected a list of lengths, such as \[41, 100\], got 40; put"):
        length_curve(make_model("gru", task), task, 40)  # type: ignore[arg-type]


def test_ctrl_c_exits_with_130_in_commands_and_before_them(capsys, monkeypatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(index, "description", interrupted)
    assert exit_code("show", "parity") == 130
    monkeypatch.setattr(app, "_run", interrupted)
    assert exit_code("list") == 130
    assert capsys.readouterr().err == 2 * "lengthwise: stopped\n"
