"""The command line as its user meets it: output and exit codes."""

import io
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

import pytest
from command import exit_code

from lengthwise.cli.experimenting import _check_page_only
from lengthwise.experiment import EXPERIMENTS
from lengthwise.report.tables.numbers import percent
from lengthwise.runs.folder import RunFolder
from lengthwise.version import __version__

SMALL = [
    *("--set", "train.steps=12", "--set", "train.batch_size=4", "--set", "train.max_length=6"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2"),
]


@pytest.fixture
def trained(tmp_path: Path, small_plan, capsys) -> Path:
    assert exit_code("train", "parity", "regular-gpt", *SMALL, "--runs", str(tmp_path)) == 0
    capsys.readouterr()
    return next(tmp_path.glob("parity-*"))


def test_help_lists_the_commands(capsys) -> None:
    assert exit_code("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in ("demo", "list", "train", "evaluate", "predict", "report", "analyze"))
    assert exit_code("--version") == 0
    assert capsys.readouterr().out.strip() == __version__


def test_completion_is_installed_for_a_shell(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert exit_code("--install-completion", "--shell", "bash") == 0
    installed = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert all(word in installed for word in ("lengthwise", "certify", "--lengths"))


def test_train_evaluate_predict_report(tmp_path: Path, trained: Path, capsys, monkeypatch) -> None:
    assert exit_code("train", "parity", "regular-gpt", *SMALL, "--runs", str(tmp_path)) == 0
    text, progress = capsys.readouterr()
    assert progress.endswith(f"\n{trained.name}: done 12/12 already finished\n")
    assert trained.name not in text.partition("run folder")[0], "results can be piped without the progress"
    assert str(trained) in text
    assert exit_code("evaluate", str(trained), "--lengths", "3-5,8", "--strings", "16") == 0
    text = capsys.readouterr().out
    assert len(re.findall(r"\d+/16", text)) == 4
    assert exit_code("resume", str(trained)) == 0
    assert "already finished" in capsys.readouterr().err
    points = str(tmp_path / "points.csv")
    assert exit_code("evaluate", str(trained), "--lengths", "0-70,90", "--strings", "2", "--out", points) == 0
    text = capsys.readouterr().out
    assert "of 71 points are shown" in text
    assert "1 length left out" in text
    assert re.search(r"^90 ", text, flags=re.MULTILINE)
    assert len(Path(points).read_text().splitlines()) == 72
    assert exit_code("predict", str(trained), "abba", "b") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["abba", "b"]
    for line, truth in zip(lines, ("0", "1"), strict=True):
        _, answer, _, verdict = line.split("\t")
        assert verdict == ("right" if answer == truth else f"wrong, it is {truth}")
    monkeypatch.setattr(sys, "stdin", io.StringIO("ab\r\nba\n"))
    assert exit_code("predict", str(trained), "-") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert exit_code("predict", str(trained.parent), "ab") == 2
    assert f"name a run in it, for example {trained}" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert exit_code("predict", str(trained), "-") == 2
    assert (
        "predict: expected strings, one per line, got a blank input; write at least one string"
        in capsys.readouterr().err
    )
    assert exit_code("report", str(trained), "--out", str(tmp_path / "page.html")) == 0
    assert (tmp_path / "page.html").stat().st_size > 100_000
    assert exit_code("analyze", str(trained), "--length", "20", "--out", str(tmp_path / "inside.html")) == 0
    assert "random strings of 20 symbols" in (tmp_path / "inside.html").read_text(encoding="utf-8")


def test_where_the_task_has_no_target(tmp_path: Path, small_plan, capsys) -> None:
    """Half an expression has no value, and a single structured string need not be an expression."""
    assert exit_code("train", "modular-arithmetic", "regular-gpt", *SMALL, "--runs", str(tmp_path)) == 0
    (folder,) = map(str, tmp_path.iterdir())
    capsys.readouterr()
    assert exit_code("predict", folder, "3+", "3+1") == 0
    unsupervised, supervised = capsys.readouterr().out.splitlines()
    assert unsupervised.endswith("the task has no answer here")
    assert supervised.endswith(("right", "wrong, it is 4"))
    for seed in range(5):
        structured = ("--lengths", "41", "--strings", "1", "--protocol", "structured", "--seed", str(seed))
        assert exit_code("evaluate", folder, *structured) == 0


def test_a_regular_expression_is_trained_on_from_the_command_line(tmp_path: Path, small_plan, capsys) -> None:
    words = ("train", "regex", "regular-gpt", "--set", "task.pattern=(a|b)*abb", *SMALL, "--runs", str(tmp_path))
    assert exit_code(*words) == 0
    (folder,) = tmp_path.glob("regex-*")
    capsys.readouterr()
    assert exit_code("predict", str(folder), "abb", "aba") == 0
    for line, truth in zip(capsys.readouterr().out.splitlines(), ("in", "out"), strict=True):
        _, answer, _, verdict = line.split("\t")
        assert verdict == ("right" if answer == truth else f"wrong, it is {truth}")


def test_a_table_of_a_config_file_is_kept_whole_in_the_run(tmp_path: Path, small_plan, capsys) -> None:
    config = tmp_path / "machine.toml"
    config.write_text('[task]\nalphabet = "xy"\ntransitions = [[1, 0], [1, 2], [1, 0]]\naccepting = [2]\n')
    words = ("train", "dfa", "regular-gpt", "--config", str(config), *SMALL, "--runs", str(tmp_path / "runs"))
    assert exit_code(*words) == 0
    config.unlink()
    (folder,) = (tmp_path / "runs").iterdir()
    assert exit_code("resume", str(folder)) == 0
    assert "already finished" in capsys.readouterr().err
    assert exit_code("predict", str(folder), "yxy", "yx") == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["yxy", "yx"]
    assert exit_code("report", str(folder), "--out", str(tmp_path / "page.html")) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["(a|b)*abb", "--to", "regular-gpt"],
        ["(a|b)*abb", "--to", "regular-gpt", "--chunk-size", "3"],
        ["b*(a|b){4}", "--alphabet", "abc", "--to", "rnn"],
        ["--task", "tomita", "--set", "task.index=3", "--to", "regular-gpt"],
        ["--to", "rnn", "--", "-?1*"],
    ],
)
def test_compile_writes_a_model_that_is_right(arguments: list[str], tmp_path: Path, capsys) -> None:
    import torch

    from lengthwise import load_compiled

    out = tmp_path / "folder" / "model"
    assert exit_code("compile", "--out", str(out), *arguments) == 0
    text = capsys.readouterr().out
    assert f"wrote {out}" in text
    compiled = load_compiled(out)
    assert set(compiled.about) <= set(text.splitlines())
    machine = compiled.target.machine
    strings = torch.randint(len(machine.symbols), (64, 40), generator=torch.Generator().manual_seed(0))
    expected = torch.from_numpy(machine.run(strings.numpy()))
    assert torch.equal(compiled.model(strings).argmax(-1), expected)


def test_compile_takes_the_language_of_the_expression(tmp_path: Path, capsys) -> None:
    from lengthwise import load_compiled
    from lengthwise.automata.regex import dfa_from_regex

    assert exit_code("compile", "(a|b)*abb", "--to", "rnn", "--out", str(tmp_path)) == 0
    assert "states: 4" in capsys.readouterr().out
    compiled = load_compiled(tmp_path)
    assert compiled.task is not None
    assert compiled.task.name == "regex"
    assert compiled.target.machine.equivalent(dfa_from_regex("(a|b)*abb").transducer)
    assert compiled.target.classes == ("out", "in")


# It imports torch in a new process; tests/faults/test_kills.py sends this signal to a forked process by default.
@pytest.mark.slow
@pytest.mark.usefixtures("handled_signals")
def test_ctrl_c_keeps_the_checkpoint(tmp_path: Path) -> None:
    """A real process, a real SIGINT, and then the run goes on where it stopped."""
    import signal
    import time

    command = [sys.executable, "-m", "lengthwise", "train", "parity", "regular-gpt", "--runs", str(tmp_path)]
    command += [*SMALL, "--set", "train.steps=100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("*/metrics.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        try:
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()  # one that does not stop would train for hours
    assert process.returncode == 130
    assert "stopped at step" in error
    assert "Traceback" not in error
    assert list(tmp_path.glob("*/checkpoint.safetensors"))


@pytest.mark.slow
def test_demo_at_smoke_scale_as_its_user_runs_it(tmp_path: Path) -> None:
    """In a process of its own, and in a narrow terminal."""
    command = [sys.executable, "-m", "lengthwise", "demo", "--scale", "smoke", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"COLUMNS": "60", "PATH": ""})
    assert done.returncode == 0, done.stderr
    check_demo(tmp_path, done.stdout, done.stderr, tasks=("parity", "even-pairs", "cycle-navigation"))


@pytest.mark.usefixtures("fewer_strings", "runs_in_this_process")
def test_demo_at_smoke_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """In a narrow terminal, where no program is found; for two tasks."""
    whole = EXPERIMENTS["demo"]("smoke")
    two = [cell for cell in whole.cells if cell.row in ("parity", "cycle-navigation")]
    monkeypatch.setitem(EXPERIMENTS._members, "demo", lambda scale: whole._replace(cells=two))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("PATH", "")
    assert exit_code("demo", "--scale", "smoke", "--workers", "1", "--out", str(tmp_path)) == 0
    check_demo(tmp_path, *capsys.readouterr(), tasks=[cell.row for cell in two])


def check_demo(folder: Path, out: str, err: str, *, tasks: Iterable[str]) -> None:
    assert all(": done " in err.splitlines()[-1 - line] for line in range(len(tasks)))
    assert ": done " not in out
    assert (folder / "smoke" / "report.html").exists()
    assert all(task in out for task in tasks)


def test_several_seeds_are_compared(tmp_path: Path, small_plan, capsys) -> None:
    words = ("train", "parity", "regular-gpt", *SMALL, "--seeds", "0-1,5", "--runs", str(tmp_path))
    assert exit_code(*words) == 0
    text = capsys.readouterr().out
    accuracies = [RunFolder(folder).read_result().dense.balanced().mean() for folder in tmp_path.glob("parity-*")]
    assert len(accuracies) == 3
    expected = f"mean {percent(fmean(accuracies))}, range {percent(min(accuracies))} to {percent(max(accuracies))}"
    assert f"over 3 seeds: accuracy, mean over lengths: {expected}" in text
    assert all(f"seed{seed}" in text for seed in (0, 1, 5))


def test_the_environment_names_the_device_where_no_option_does(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("LENGTHWISE_DEVICE", "mps")
    assert exit_code("train", "parity", "gru") == 2
    assert "--device: expected a device of this machine, got 'mps'" in capsys.readouterr().err


def test_the_device_of_the_environment_does_not_keep_a_page_from_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^device: not allowed with --page-only"):
        _check_page_only(True, device="auto")
    monkeypatch.setenv("LENGTHWISE_DEVICE", "auto")
    _check_page_only(True, device="auto")
