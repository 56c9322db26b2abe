"""Mistakes on the command line get one sentence, which names the option, and exit code 2."""

from pathlib import Path

import pytest
from command import exit_code, printed

from lengthwise.cli.app import app

SMALL = [
    *("--set", "train.steps=12", "--set", "train.batch_size=4", "--set", "train.max_length=6"),
    *("--set", "model.d_model=8", "--set", "model.num_heads=2"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run, which tests only read."""
    root = tmp_path_factory.mktemp("finished")
    assert exit_code("train", "parity", "regular-gpt", *SMALL, "--longest", "60", "--runs", str(root)) == 0
    return next(root.glob("parity-*"))


def test_a_table_that_lacks_a_transition_is_refused(tmp_path: Path, capsys) -> None:
    config = tmp_path / "machine.toml"
    config.write_text('[task]\nalphabet = "xy"\ntransitions = [[1, 0], [1]]\naccepting = [1]\n')
    assert exit_code("train", "dfa", "regular-gpt", "--config", str(config), "--runs", str(tmp_path / "runs")) == 2
    error = "lengthwise: task.transitions: expected a next state for each of the 2 symbols, got 1 for state 1; give"
    assert capsys.readouterr().err.startswith(error)
    assert not (tmp_path / "runs").exists()


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
            "--chunk-size: expected a whole number of at least 0, got x; give such a number",
        ),
        (
            ["--pattern", "ab", "--to", "rnn"],
            "--pattern: expected an option of compile, got --pattern; write ab without --pattern (`lengthwise com",
        ),
        (
            ["--task", "parity", "--alphabet", "ab", "--to", "rnn"],
            "--alphabet: expected no alphabet together with a task, got 'ab'",
        ),
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
            "certfy: no such command; did you mean 'certify'? (known: demo, reproduce, bench, list, show",
        ),
        (["certfy", "runs/one"], ", track, play)"),
        (
            ["train", "parity", "gru", "--set", "train.steps=-5"],
            "train.steps: expected a number greater than or equal to 1, got -5; give such a value",
        ),
        (
            ["train", "parity", "gru", "--wrkers", "2"],
            "--wrkers: expected an option of train, got --wrkers; did you mean --workers?",
        ),
        (
            ["train", "parity", "gru", "--out", "here"],
            "--device, --parallel, --json), got --out; `lengthwise train --help` explains",
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
            "--seeds: expected at most 1,000 seeds, got",
        ),
        (["train", "parity", "gru", "--seeds", "0", "--seed", "3"], "--seed: not allowed with --seeds, got 3"),
        (["train", "parity", "gru", "--seeds", "1-2", "--seed", "0"], "--seed: not allowed with --seeds, got 0"),
        (
            ["train", "parity", "gru", "--seed", "9" * 400],
            "seed: expected a whole number from 0 to 1,000,000,000,",
        ),
        (["train", "parity", "gru", "--seed", "9" * 20], f"000,000,000, got {'9' * 20}; give a number such as 0"),
        (
            ["train", "parity", "--model", "gru"],
            "--model: expected an option of train, got --model; write gru without --model (`lengthwise train",
        ),
        (["reproduce", "leaderboard", "--pages", ""], "--pages: expected a folder, got an empty name; write . for"),
        (["track", "runs/one", "--to", "tensorboard", "--out", ""], "--out: expected a folder, got an empty name"),
        (["train", "parity", "gru", "--runs", ""], "--runs: expected a folder, got an empty name; write . for"),
        (["train", "parity", "gru", "--seeds", "0", "--parallel", "ddp"], "--parallel: not allowed with --seeds"),
        (["train", "parity", "gru", "--preset", ""], "unknown preset ''"),
        (["predict", "nowhere", "a", "--temperature", "nan"], "--temperature: not allowed without --sample, got nan"),
        (["predict", "nowhere", "a", "--prompt", ""], "--prompt: not allowed without --sample"),
        (["predict", "nowhere", "a", "--seed", "0"], "--seed: not allowed without --sample, got 0"),
        (
            ["train", "parity", "gru", "--workers", "2"],
            "--workers: expected 1 for one run, got 2; give --seeds to train several runs",
        ),
        (
            ["evaluate", "x", "--labeled", "y", "--strings", "9"],
            "--strings: not allowed with --labeled, whose file contains the strings",
        ),
        (["certify", "--check", "x", "--out", "y"], "--out: not allowed with --check, which writes no certificate"),
        (["compare", ".", "..", "--longest", "50"], "--longest: not allowed with folders of runs, which are"),
        (["compare", ".", "..", "--no-certificates"], "--no-certificates: not allowed with folders of runs"),
        (
            ["reproduce", "recurrent/bounded", "--page-only", "--workers", "2"],
            "--workers: not allowed with --page-only, which runs nothing, got 2; leave one of the two out",
        ),
        (
            ["reproduce", "recurrent/bounded", "--page-only", "--device", "auto"],
            "--device: not allowed with --page-only, which runs nothing, got auto; leave one of the two out",
        ),
        (
            ["train", "parity", "regular-gpt", "--seed", "-1"],
            "lengthwise: --seed: expected a whole number of at least 0, got -1; give such a number",
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
        (["train", "parity", "regular-gpt", "--sed", "5"], "got --sed; did you mean --seed?"),
        (
            ["train", "parity", "regular-gpt", "--steps", "100"],
            "--steps: expected an option of train, got --steps; it is a setting, use --set train.steps=100",
        ),
        (["certify", "x", "--steps", "5"], "--steps: expected an option of certify (--machine, --out, --check, "),
        (["train", "parity", "gru", "--lr", "0.1"], "did you mean --set train.optimizer.learning_rate=0.1?"),
        (["train", "parity", "gru", "--learning-rate=0.1"], "use --set train.optimizer.learning_rate=0.1"),
        (["train", "parity", "gru", "--epochs", "5"], "did you mean --set train.steps=5?"),
        (["compare", "parity", "gru", "rnn", "--batch", "5"], "did you mean --set train.batch_size=5?"),
        (["compare", "parity", "gru", "rnn", "--batch-size", "--json"], "use --set train.batch_size=VALUE"),
        (["train", "parity", "gru", "--optimizer", "muon"], "use --set train.optimizer.name=muon"),
        (["train", "parity", "gru", "--num-heads", "2"], "--num-heads: expected an option of train (--preset, "),
        (["train", "parity", "gru", "-x", "2"], "-x: expected an option of train (--preset, --config, "),
        (["compile", "ab", "--to", "rnn", "--steps", "3"], "--steps: expected an option of compile (--to, "),
        (["reproduce", "demo", "--seed", "3"], "--seed: expected an option of reproduce (--scale, "),
        (["attack", "x", "--max-length", "0"], "--max-length: expected an option of attack, got --max-length; did you"),
        (["attack", "x", "--max-length=0"], "--max-length: expected an option of attack, got --max-length; did you"),
        (["predict", "x", "--string", "ab"], "--help` explains them, and -- goes before strings such as --string"),
        (["compare", "parity", "gru,rnn"], "got gru,rnn; write blanks instead of commas between the names"),
        (["claims", "--write", "/proc/x.md"], "/proc/x.md: cannot be written (No such file or directory); name a"),
        (["claims", "--out", "/proc/x.md"], "/proc/x.md: cannot be written (No such file or directory); name a"),
        (["play", "x", "--out", "/proc/x.html"], "/proc/x.html: cannot be written (No such file or directory); name"),
        (
            ["memorize", "ab", "--out", "/proc/x.png"],
            "/proc/x.png: cannot be written (No such file or directory); name",
        ),
        (["train", "parity", "regular-gpt", "--d-model=8"], "use --set model.d_model=8"),
        (["train", "word-problem", "gru", "--group", "A5"], "use --set task.group=A5"),
        (
            ["train", "parity", "regular-gpt", "--device", "cuda"],
            "--device: expected a device of this machine, got 'cuda'",
        ),
        (["evaluate", "nowhere"], "nowhere: expected the folder of a run"),
        (["predict", "nowhere", "ab"], "nowhere: expected the folder of a run"),
        (["analyze", "nowhere"], "nowhere: expected a run folder"),
        (["certify", "one", "two"], "certify: expected no further words, got two; `lengthwise certify --help` lists"),
        (["report", "nowhere"], "nowhere: expected a run folder"),
        (["demo", "--scale", "huge"], "--scale: expected 'smoke' or 'small' or 'paper', got 'huge'; choose one"),
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
        (["learn"], "learn: expected --out, got none; `lengthwise learn --help` explains it"),
        (["learn", "--out", "x"], "learn: expected FILE or --system, got neither; `lengthwise learn --help` explains"),
        (
            ["certify", "."],
            ".: expected the folder of a run, or of a compiled or learned model, got a folder without run.",
        ),
        (["compile", "ab", "--alphabet", "b", "--to", "rnn"], "--alphabet: expected the symbols of 'ab', got 'b', "),
        (["train", "parity", "gru", "--workers", "0"], "--workers: expected a whole number of at least 1, got 0"),
        (
            ["train", "parity", "gru", "--set", "train.steps=1e99"],
            "train.steps: expected a smaller whole number, got 1e",
        ),
        (["train", "parity", "gru", "--runs", __file__], f"--runs: expected a folder, got the file {__file__}; name"),
        (
            ["train", "parity", "gru", "--runs", f"{__file__}/runs"],
            f"--runs: expected a folder, got the file {__file__}; name",
        ),
        (
            ["train", "parity", "gru", "--config", "."],
            ".: expected a TOML file with settings, got a folder; name a file in it",
        ),
        (
            ["export", "a*", "--to", "jff", "--out", "m.jff"],
            "--to: `export` does not write format 'jff'; use `lengthwise convert a* FILE.jff`",
        ),
        # A path that is spelled like an option of the command stays a path.
        (["learn", "out", "--out", "machine"], "lengthwise: out: "),
        (["train", "parity", "gru", "--config", "./runs"], "lengthwise: runs: "),
        (["train", "parity", "gru", "--config=runs"], "lengthwise: runs: "),
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
        (["predict", "{run}", ""], "expected at least one symbol of parity, got ''"),
        (["evaluate", "{run}", "--lengths", "0"], "no strings of length 0"),
        (["analyze", "{run}", "--length", "0"], "--length: expected a whole number of at least 1, got 0"),
        (["analyze", "{run}", "--out", "page.pdf"], "--out: expected a name that ends in .html, got 'page.pdf'"),
        (["evaluate", "{run}", "--lengths", "5-x"], "--lengths: expected lengths and ranges"),
        (["evaluate", "{run}", "--protocol", "onepass"], "did you mean 'one-pass'"),
        (["evaluate", "{run}", "--strings", "0"], "--strings: expected a whole number from 1 to 1,000,000, got 0"),
        (
            ["evaluate", "{run}", "--strings", "9" * 20],
            "--strings: expected a whole number from 1 to 1,000,000, got 999",
        ),
        (
            ["evaluate", "{run}", "--out", "{run}"],
            "--out: expected a name that ends in .tex, .md, .csv, .png, .svg, .pdf",
        ),
        (["evaluate", "{run}", "--out", "{run}/run.json/a.csv"], "run.json is a file; name another path"),
        (["evaluate", "{run}", "--lengths", ""], "--lengths: expected lengths and ranges such as 41-500,1000, got ''"),
    ],
)
def test_mistakes_about_a_run(arguments, sentence, finished, capsys) -> None:
    assert exit_code(*(word.format(run=finished) for word in arguments)) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name in app if not name.startswith("-")])
def test_the_message_about_an_unknown_option_has_one_line(command: str, capsys) -> None:
    for words in (["--qqq"], ["--qqq=1"], ["--qqq", "1"], ["word", "--qqq", "1", "word"], ["--qqq", "--", "--rrr"]):
        code, text, error = printed(capsys, command, *words)
        assert (code, text, len(error.splitlines())) == (2, "", 1)
        assert error.startswith(f"lengthwise: --qqq: expected an option of {command} (--")
        assert f"), got --qqq; `lengthwise {command} --help` explains them" in error
    assert exit_code(command, "--qqq", "--help") == 0, "help is shown"


def test_strings_begin_with_hyphens_as_in_other_programs(finished: Path, tmp_path: Path, capsys) -> None:
    for words, string in ((["--", "--ab"], "--ab"), (["-1"], "-1"), (["-ab"], "-ab"), (["ab", "--", "--", "-"], "--")):
        code, _, error = printed(capsys, "predict", str(finished), *words)
        assert (code, "text: '-' at position 1 is not a symbol of parity" in error) == (2, True), string
    out = str(tmp_path / "orbit.png")
    assert exit_code("memorize", "--out", out, "--", "--+") == 0
    assert exit_code("describe", "--", "--a*") == 0
    assert exit_code("describe", "regex:a", "--alphabet=--x") == 0


def test_pages_about_runs_need_a_file_that_can_be_written(finished: Path, capsys) -> None:
    for command in ("report", "analyze", "play"):
        code, _, error = printed(capsys, command, str(finished), "--out", "/proc/x.html")
        expected = "lengthwise: /proc/x.html: cannot be written (No such file or directory); name a file in another"
        assert (code, error[: len(expected)]) == (2, expected), command


def test_a_typo_in_a_config_file_is_found(tmp_path: Path, capsys) -> None:
    (tmp_path / "run.toml").write_text("[train]\nstepz = 3\n")
    code = exit_code(
        "train", "parity", "regular-gpt", "--config", str(tmp_path / "run.toml"), "--runs", str(tmp_path / "runs")
    )
    assert code == 2
    assert "train.stepz: no such setting; did you mean 'steps'?" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
