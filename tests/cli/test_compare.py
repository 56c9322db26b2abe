"""`lengthwise compare`: models by name, which are trained where they are missing, and runs in folders."""

from pathlib import Path

import pytest
from command import exit_code

from lengthwise.cli import progress
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.execute import execute
from lengthwise.runs.pools.outcome import Outcome

SMALL = [
    *("--set", "train.steps=8", "--set", "train.batch_size=4", "--set", "train.min_length=1"),
    *("--set", "train.max_length=6", "--longest", "41"),
]


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs are run here, one after the other; the ids of those that were trained."""
    trained = []

    def execute_here(specs, root: Path, plans: list[EvaluationPlan], listener, **_) -> list[Outcome]:
        outcomes = []
        for spec, plan in zip(specs, plans, strict=True):
            if not (root / spec.id / "result.json").exists():
                trained.append(spec.id)
            outcomes.append(Outcome(spec, execute(spec, root, plan, listener)))
        return outcomes

    monkeypatch.setattr(progress, "execute_all", execute_here)
    return trained


def test_models_by_name_are_trained_once_and_compared(tmp_path: Path, in_one_process: list[str], capsys) -> None:
    root = tmp_path / "runs"
    options = ("--runs", str(root), *SMALL, "--no-certificates")
    assert exit_code("compare", "parity", "rnn", "gru", *options, "--seeds", "2") == 0
    out = capsys.readouterr().out
    assert "parity: 2 models, seeds 0, 1" in out
    assert "dense range rnn" in out
    assert len(in_one_process) == 4
    page = tmp_path / "page.md"
    assert exit_code("compare", "parity", "rnn", "gru", "lstm", *options, "--seeds", "0-1", "--out", str(page)) == 0
    assert [run_id.split("-")[1] for run_id in in_one_process[4:]] == ["lstm", "lstm"]
    assert page.read_text().count("| dense range |") == 3
    capsys.readouterr()
    folders = sorted(str(path) for path in root.iterdir())
    assert exit_code("compare", *folders) == 0
    assert "parity: 3 models, seeds 0, 1" in capsys.readouterr().out
    assert exit_code("compare", folders[0], folders[-1], "--seeds", "3") == 2
    assert "--seeds: not allowed with folders of runs, which are already trained; leave" in capsys.readouterr().err
    (Path(folders[0]) / "result.json").unlink()
    assert exit_code("compare", *folders) == 2
    assert "expected a finished run, got an unfinished run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("parity", "rnn"), "compare: expected at least two different models on parity, got rnn"),
        (
            ("parity", "gru", "gru", "rnn"),
            "compare: expected at least two different models on parity, got gru, gru, rnn",
        ),
        (("paritty", "rnn", "gru"), "paritty: expected a run's folder or a task, got neither; did you mean 'parity'?"),
        (("parity", "rnn", "gruu"), "unknown model 'gruu'; did you mean 'gru'?"),
        (("runs/none", "runs/other"), "runs/none: expected a run folder, but there is no such folder"),
        (("parity", "rnn", "gru", "--seeds", "0"), "--seeds: expected 1 to 1,000 seeds, got 0"),
        (("parity", "rnn", "gru", "--out", "page.pdf"), "--out: expected a name that ends in .html, .md, .tex, .csv"),
        (("parity", "rnn", "gru", "--set", "train.stepz=3"), "train.stepz: "),
        (("parity", "rnn", "gru", "--set", "steps"), "--set: expected section.key=value"),
    ],
)
def test_wrong_requests_are_one_sentence(arguments: tuple[str, ...], message: str, capsys) -> None:
    assert exit_code("compare", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"lengthwise: {message}")
    assert len(captured.err.splitlines()) == 1
