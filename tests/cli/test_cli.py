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
    text = capsys.readouterr().out
    assert "already finished" in text
    assert str(trained) in text
    assert exit_code("evaluate", str(trained), "--lengths", "3-5,8", "--strings", "16") == 0
    text = capsys.readouterr().out
    assert len(re.findall(r"\d+/16", text)) == 4
    assert exit_code("resume", str(trained)) == 0
    assert "already finished" in capsys.readouterr().out
    points = str(tmp_path / "points.csv")
    assert exit_code("evaluate", str(trained), "--lengths", "0-70,90", "--strings", "2", "--csv", points) == 0
    text = capsys.readouterr().out
    assert "of 71 points are shown" in text
    assert "1 lengths left out" in text
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
    assert "texts: expected strings, one in a line, got a blank input; write some" in capsys.readouterr().err
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
    assert "already finished" in capsys.readouterr().out
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


<<<<<<< HEAD
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["(a|b", "--to", "rnn"], "pattern: expected a closing ) at position 5 of '(a|b', got the end"),
        (["[^a]", "--to", "rnn"], "got a language that contains no string of one symbol or more"),
        (["abc", "--alphabet", "ab", "--to", "rnn"], "alphabet: expected the symbols of 'abc', got 'ab', without"),
        (["ab", "--to", "rn"], "unknown construction 'rn'; did you mean 'rnn'?"),
        (["ab", "--to", "rnn", "--chunk-size", "3"], "--chunk-size: rnn takes no such option (known: none)"),
        (["ab", "--to", "regular-gpt", "--chunk-size", "1"], "--chunk-size: expected 2 to 2,000, got 1"),
        (
            ["ab", "--to", "regular-gpt", "--chunk-size", "x"],
            "--chunk-size: expected a whole number of at least 0, got x",
        ),
        (["--to", "rnn"], "expected a regular expression or a task, got neither"),
        (["ab", "--task", "parity", "--to", "rnn"], "expected a regular expression or a task, got both"),
        (["ab", "--set", "task.p=0.3", "--to", "rnn"], "expected none next to an expression, got task.p=0.3"),
        (["--task", "parity", "--alphabet", "ab", "--to", "rnn"], "--alphabet: expected none next to a task, got 'ab'"),
        (["--task", "parity", "--set", "model.d=3", "--to", "rnn"], "expected settings of the task"),
        (
            ["--task", "tomita", "--set", "task.index=8", "--to", "rnn"],
            "task.index: expected a number less than or equal",
        ),
        (["--task", "partiy", "--to", "rnn"], "unknown task 'partiy'; did you mean 'parity'?"),
        (
            ["--task", "modular-arithmetic", "--to", "regular-gpt"],
            "would have 560,548,529 weights, more than 20,000,000",
        ),
        (["ab"], "--to"),
    ],
)
def test_mistakes_in_what_to_compile(arguments: list[str], sentence: str, tmp_path: Path, capsys) -> None:
    assert exit_code("compile", "--out", str(tmp_path / "out"), *arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["certfy"],
            "certfy: no such command; did you mean 'certify'? (known: demo, reproduce, leaderboard, list, show",
        ),
        (["certfy", "runs/one"], ", track, play)"),
        (
            ["train", "parity", "gru", "--set", "train.steps=-5"],
            "train.steps: expected a number greater than or equal to 1, got -5; give one",
        ),
        (["train", "partiy", "regular-gpt"], "unknown task 'partiy'; did you mean 'parity'?"),
        (["train", "parity", "regular-gtp"], "unknown model 'regular-gtp'; did you mean 'regular-gpt'?"),
        (
            ["train", "parity", "regular-gpt", "--set", "train.step=5"],
            "train.step: no such setting; did you mean 'steps'?",
        ),
        (
            ["train", "parity", "regular-gpt", "--set", "model.chunk_size=1"],
            "model.chunk_size: expected a number greater than or",
        ),
        (
            ["train", "parity", "regular-gpt", "--set", "model.num_heads=7"],
            "num_heads: expected a divisor of d_model=64",
        ),
        (["train", "parity", "regular-gpt", "--config", "none.toml"], "none.toml: expected a TOML file"),
        (
            ["train", "parity", "gru", "--seeds", "0,x"],
            "--seeds: expected seeds and ranges such as 0,1,2",
        ),
        (
            ["train", "parity", "gru", "--seeds", "0-99999"],
            "--seeds: expected 1 to 1,000 seeds in order",
        ),
        (["train", "parity", "gru", "--seeds", "0", "--seed", "3"], "--seed: expected none with --seeds, got 3"),
        (["train", "parity", "gru", "--seeds", "1-2", "--seed", "0"], "--seed: expected none with --seeds, got 0"),
        (["train", "parity", "gru", "--seed", "9" * 400], "seed: expected an integer from 0 to 1,000,000,000,000,000"),
        (["reproduce", "leaderboard", "--pages", ""], "--pages: expected a folder, got an empty name; write . for"),
        (["track", "runs/one", "--to", "tensorboard", "--out", ""], "--out: expected a folder, got an empty name"),
        (["train", "parity", "gru", "--runs", ""], "--runs: expected a folder, got an empty name; write . for"),
        (["train", "parity", "gru", "--seeds", "0", "--parallel", "ddp"], "--parallel: expected none with --seeds"),
        (["train", "parity", "gru", "--preset", ""], "unknown preset ''"),
        (["predict", "nowhere", "a", "--temperature", "nan"], "--temperature: expected none without --sample, got nan"),
        (["predict", "nowhere", "a", "--prompt", ""], "--prompt: expected none without --sample"),
        (["predict", "nowhere", "a", "--seed", "0"], "--seed: expected none without --sample, got 0"),
        (
            ["train", "parity", "gru", "--workers", "2"],
            "--workers: expected 1 for one run, got 2; give --seeds for several",
        ),
        (
            ["evaluate", "x", "--labeled", "y", "--strings", "9"],
            "--strings: expected none with --labeled, because the file",
        ),
        (["certify", "--check", "x", "--out", "y"], "--out: expected none with --check, which writes no certificate"),
        (["compare", ".", "..", "--longest", "50"], "--longest: expected none with folders of runs, which are"),
        (["compare", ".", "..", "--no-certificates"], "--no-certificates: expected none with folders of runs"),
        (
            ["reproduce", "recurrent/bounded", "--page-only", "--workers", "2"],
            "--workers: expected none with --page-only, which runs nothing, got 2; leave one out",
        ),
        (
            ["reproduce", "recurrent/bounded", "--page-only", "--device", "auto"],
            "--device: expected none with --page-only, which runs nothing, got auto; leave one out",
        ),
        (
            ["train", "parity", "regular-gpt", "--seed", "-1"],
            "lengthwise: --seed: expected a whole number of at least 0, got -1",
        ),
        (
            ["train", "regex", "regular-gpt", "--set", "task.pattern=(a|b"],
            "task.pattern: expected a closing ) at position 5 of '(a|b', got the end; close the group",
        ),
        (["train", "regex", "regular-gpt", "--set", "task.pattern=[ab]+"], "contains every string of one symbol"),
        (
            ["train", "word-problem", "regular-gpt", "--set", "task.group=Q10"],
            "task.group: expected one of S2 to S6, A3 to",
        ),
        (
            ["train", "word-problem", "regular-gpt", "--set", "task.generators=[[1, 0], [0, 0]]"],
            "task.generators: expected each of 0..1 once, got [0, 0] as generator 1; list the images of the points",
        ),
        (["train", "parity"], "expected MODEL, got none; `lengthwise"),
        (["trian", "parity"], "trian"),
        (["train", "parity", "regular-gpt", "--sed", "5"], "Unknown option: --sed. Did you mean --seed?"),
        (
            ["train", "parity", "regular-gpt", "--steps", "100"],
            "--steps: no such option; it is a setting, use --set train.steps=100",
        ),
        (["certify", "x", "--steps", "5"], "Unknown option"),
        (["train", "parity", "regular-gpt", "--d-model=8"], "use --set model.d_model=8"),
        (["train", "word-problem", "gru", "--group", "A5"], "use --set task.group=A5"),
        (
            ["train", "parity", "regular-gpt", "--device", "cuda"],
            "--device: expected a device of this machine, got 'cuda'",
        ),
        (["evaluate", "nowhere"], "nowhere: expected a run folder"),
        (["predict", "nowhere", "ab"], "nowhere: expected a run folder"),
        (["analyze", "nowhere"], "nowhere: expected a run folder"),
        (["certify", "one", "two"], "certify: expected no further words, got two; `lengthwise certify --help` lists"),
        (["report", "nowhere"], "nowhere: expected a run folder"),
        (["demo", "--scale", "huge"], "--scale: expected one of smoke, small, paper, got 'huge'"),
        (["train", "parity", "regular-gpt", "--seed", "1.5"], "--seed: expected a whole number of at least 0, got 1.5"),
        (
            ["train", "parity", "regular-gpt", "--set", "train.optimizer.learning_rate=inf"],
            "learning_rate: expected a finite",
        ),
        (
            ["train", "parity", "regular-gpt", "--set", "train.optimizer=3"],
            "train.optimizer: expected a section of settings",
        ),
        (["train", "parity", "regular-gpt", "--longest", "5"], "--longest: expected at least 41"),
        (["demo", "--scale", "smoke", "--workers", "0"], "--workers: expected a whole number of at least 1, got 0"),
        (["learn"], "learn: expected FILE, got none; `lengthwise learn --help` explains it"),
        (["certify", "."], ".: expected the folder of a run, or of a compiled or learned model, got one without run."),
        (["compile", "ab", "--alphabet", "b", "--to", "rnn"], "--alphabet: expected the symbols of 'ab', got 'b', "),
        (["train", "parity", "gru", "--workers", "0"], "--workers: expected a whole number of at least 1, got 0"),
        (
            ["train", "parity", "gru", "--set", "train.steps=1e99"],
            "train.steps: expected a smaller whole number, got 1e",
        ),
        (["train", "parity", "gru", "--runs", __file__], f"--runs: expected a folder, got the file {__file__}; name"),
        (["train", "parity", "gru", "--config", "."], ".: expected a TOML file with settings, got a folder; name one"),
        (
            ["export", "a*", "--to", "jff", "--out", "m.jff"],
            "--to: 'jff' is written by `lengthwise convert a* FILE.jff`",
        ),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(arguments, sentence, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.startswith("lengthwise: ")
    assert "Traceback" not in error
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["evaluate", "{run}", "--lengths", "99999999999"], "--lengths: expected lengths of at most 10,000,000"),
        (
            ["predict", "{run}", "ab", "abcb"],
            "string 2: text: 'c' at position 3 is not a symbol of parity; use only a b",
        ),
        (["predict", "{run}", ""], "expected at least one of the symbols a b, got ''"),
        (["evaluate", "{run}", "--lengths", "0"], "no strings of length 0"),
        (["analyze", "{run}", "--length", "0"], "no strings of length 0"),
        (["analyze", "{run}", "--out", "page.pdf"], "--out: expected a name that ends in .html, got 'page.pdf'"),
        (["evaluate", "{run}", "--lengths", "5-x"], "--lengths: expected lengths and ranges"),
        (["evaluate", "{run}", "--protocol", "onepass"], "did you mean 'one-pass'"),
        (["evaluate", "{run}", "--strings", "0"], "--strings: expected 1 to 1,000,000, got 0"),
        (["evaluate", "{run}", "--strings", "9" * 20], "--strings: expected 1 to 1,000,000, got 999"),
        (["evaluate", "{run}", "--csv", "{run}"], "expected a file to write, got a folder"),
        (["evaluate", "{run}", "--csv", "{run}/run.json/a"], "run.json is a file; name a folder"),
        (["evaluate", "{run}", "--lengths", ""], "--lengths: expected lengths and ranges such as 41-500,1000, got ''"),
    ],
)
def test_mistakes_about_a_run(arguments, sentence, finished, capsys) -> None:
    assert exit_code(*(word.format(run=finished) for word in arguments)) == 2
    assert sentence in capsys.readouterr().err


def test_a_typo_in_a_config_file_is_found(tmp_path: Path, capsys) -> None:
    (tmp_path / "run.toml").write_text("[train]\nstepz = 3\n")
    code = exit_code(
        "train", "parity", "regular-gpt", "--config", str(tmp_path / "run.toml"), "--runs", str(tmp_path / "runs")
    )
    assert code == 2
    assert "train.stepz: no such setting; did you mean 'steps'?" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


=======
>>>>>>> dae2f35da4e8bfca993b678bf9aaf2a85574d353
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
    assert err == ""
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
    with pytest.raises(ValueError, match=r"^device: expected none with --page-only"):
        _check_page_only(True, device="auto")
    monkeypatch.setenv("LENGTHWISE_DEVICE", "auto")
    _check_page_only(True, device="auto")
