"""A model of one's own in a benchmark, and files of users that are loaded as if they were the package's."""

import csv
import gzip
import importlib
import inspect
import json
import os
import pickle
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import exit_code

from lengthwise.cli import progress
from lengthwise.cli.benchmarking import _announce, _entrants
from lengthwise.cli.budget import Budget
from lengthwise.cli.streams import Output
from lengthwise.models.base import MODELS
from lengthwise.registry import EXTENSIONS, load_extensions
from lengthwise.runs.execute import Interrupted
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.progress import Progress
from lengthwise.runs.records import read_records, shipped_docs
from lengthwise.runs.result import RunStatus
from lengthwise.studies.benchmarks.benchmark import BENCHMARKS
from lengthwise.studies.leaderboard.experiments import leaderboard

MINE = '''
from lengthwise import MODELS
from lengthwise.models.gru import GRU


@MODELS.register("my-{name}")
class Mine(GRU):
    """A GRU under another name."""
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """A file that registers a model; the environment and the registry, which it joins, are as before afterwards."""
    monkeypatch.setenv(EXTENSIONS, "")
    path = tmp_path / f"net_of_{os.getpid()}_{tmp_path.name}.py"
    path.write_text(MINE.replace("{name}", path.stem.replace("_", "-")))
    yield path
    MODELS._members.pop(f"my-{path.stem.replace('_', '-')}", None)


def test_a_model_of_ones_own_joins_those_on_record(mine: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """Only its cells are run; a second model joins the recorded ones, and a page shows what is there."""
    monkeypatch.setattr(leaderboard, "ROWS", leaderboard.ROWS[1:2])
    monkeypatch.setattr(leaderboard, "RATES", (1e-3, 1e-2))
    monkeypatch.setattr(leaderboard, "ENTRANTS", leaderboard.ENTRANTS[:1])
    # Ten of the recorded results at scale small are enough to compare with: all of them take seconds to read.
    (tmp_path / "pages/records").mkdir(parents=True)
    with gzip.open(shipped_docs() / "results/records/leaderboard.jsonl.gz") as shipped:
        (tmp_path / "pages/records/leaderboard.jsonl.gz").write_bytes(gzip.compress(b"".join(islice(shipped, 10))))
    folders = ("--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    own = ("--scale", "smoke", "--workers", "1", *folders)
    name = f"my-{mine.stem.replace('_', '-')}"
    assert exit_code("bench", "leaderboard", "--model", str(mine), *own) == 0
    printed = capsys.readouterr().out
    assert f"{name}: 2 runs" in printed
    assert f"{name}: learning rate 0.0" in printed
    lines = list(csv.DictReader((tmp_path / "pages/leaderboard-smoke.csv").read_text().splitlines()))
    assert [(line["part"], line["row"], line["column"], line["runs"]) for line in lines] == [
        ("last answer", "Parity", name, "1"),
        ("all prefixes", "Parity", name, "1"),
    ]
    page = (tmp_path / "pages/leaderboard-smoke.md").read_text()
    assert "2 of 4 runs are finished" in page
    assert "not run yet: RNN (2)" in page
    assert f"These models are not from this package, and come last in all tables: {name}." in page
    assert f"lengthwise bench leaderboard --model {mine} {' '.join(folders)} --scale smoke" in page
    assert (tmp_path / "pages/leaderboard-smoke.svg").read_bytes().startswith(b"<svg")
    results = read_records(tmp_path / "pages/records/leaderboard-smoke.jsonl.gz")
    assert [result.spec["model"]["name"] for result in results] == [name] * 2
    assert float(lines[0]["mean"]) == pytest.approx(results[0].dense.mean(), abs=1e-6)
    assert [line[results[0].certificate.level] for line in lines[:1]] == ["1"]
    del MODELS._members[name]  # as another user has it, who adds another one
    monkeypatch.setenv(EXTENSIONS, "")
    other = mine.with_name(f"other_{mine.name}")
    other.write_text(mine.read_text().replace("my-", "other-"))
    try:
        assert exit_code("bench", "leaderboard", "--model", str(other), *own) == 0
    finally:
        MODELS._members.pop(name.replace("my-", "other-"), None)
    printed = capsys.readouterr().out
    assert "is on record" not in printed
    assert "the other models' results come from" not in printed
    assert f"but not shown on the page: {name}; to show them, put all models into one file" in printed
    file = tmp_path / "file"
    file.touch()
    assert exit_code("bench", "leaderboard", "--model", str(mine), "--scale", "smoke", "--pages", str(file)) == 2
    assert "--pages: expected a folder, got" in capsys.readouterr().err
    kept = read_records(tmp_path / "pages/records/leaderboard-smoke.jsonl.gz")
    assert {result.run_id for result in results} < {result.run_id for result in kept}
    assert len(kept) == 4
    assert exit_code("evaluate", str(tmp_path / "runs" / results[0].run_id), "--lengths", "3") == 2
    assert f"unknown model '{name}'" in (error := capsys.readouterr().err)
    assert "if you registered this name, add its Python file to LENGTHWISE_EXTENSIONS" in error


def test_a_part_of_the_cells_is_run_and_shown(mine: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    """One row; and what is finished, where the command is stopped."""
    monkeypatch.setattr(leaderboard, "ROWS", leaderboard.ROWS[:2])
    monkeypatch.setattr(leaderboard, "RATES", (1e-3,))
    monkeypatch.setattr(leaderboard, "ENTRANTS", leaderboard.ENTRANTS[:1])
    run_all = progress.run_all

    def stopped(specs, plans, *more, **other):
        run_all(specs[:1], plans[:1], *more, **other)
        if len(specs) > 1:
            raise Interrupted("stopped")
        return run_all(specs, plans, *more, **other)

    monkeypatch.setattr(progress, "run_all", stopped)
    own = ("--model", str(mine), "--scale", "smoke", "--workers", "1")
    own = (*own, "--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    assert exit_code("bench", "leaderboard", *own, "--rows", "party") == 2
    assert "--rows: expected names of rows, got 'party'; did you mean" in (capsys.readouterr().err)
    assert not (tmp_path / "runs").exists()
    assert exit_code("bench", "leaderboard", *own, "--rows", "parity") != 0
    assert "has no records of other models" in capsys.readouterr().out
    lines = list(csv.DictReader((tmp_path / "pages/leaderboard-smoke.csv").read_text().splitlines()))
    assert [(line["part"], line["row"], line["runs"]) for line in lines] == [("last answer", "Parity", "1")]


def test_a_model_that_cannot_join_is_rejected_in_one_sentence(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv(EXTENSIONS, "")
    (tmp_path / "empty.py").touch()
    for given, sentence in (
        ("rnn", "--model: expected a model that is not in the benchmark, got rnn, which has the column 'RNN'"),
        ("rn", "unknown model 'rn'; did you mean 'rnn'?"),
        (str(tmp_path / "empty.py"), "--model: expected a file that registers a model, got"),
        (str(tmp_path / "none.py"), "--model: expected a model or its file, got "),
    ):
        monkeypatch.setenv(EXTENSIONS, "")
        assert exit_code("bench", "leaderboard", "--model", given, "--pages", str(tmp_path)) == 2
        assert capsys.readouterr().err.startswith(f"lengthwise: {sentence}")


def test_a_model_with_the_name_of_a_line_of_the_table_is_rejected() -> None:
    for name in ("RNN", "PD-SSM"):
        with pytest.raises(ValueError, match=f"^model: expected a name that is not in .*, got {name}; register your"):
            _entrants([name], BENCHMARKS["leaderboard"]())


@pytest.mark.parametrize(
    ("recorded", "sentence"),
    [
        ([], "f has no records of other models, so the page will show only this run's models\n"),
        (["gru"], "f has no records of other models, so the page will show only this run's models\n"),
        (["gru", "lstm"], "the other models' results come from f\n"),
        (["his"], "these models are recorded in f, but not shown on the page: his; to show them, put all"),
    ],
)
def test_the_origin_of_other_results_is_named_if_there_are_any(recorded: list[str], sentence: str, capsys) -> None:
    benchmark = BENCHMARKS["pd-ssm"]()
    own = _entrants(["gru"], benchmark)
    before = [SimpleNamespace(spec={"model": {"name": name}}) for name in recorded]
    whole = benchmark.make([*benchmark.entrants, *own], "smoke")
    _announce(benchmark.make(own, "smoke"), whole, Path("f"), before, Output())
    first, *rest = capsys.readouterr().out.splitlines(keepends=True)
    assert first.startswith("gru: ")
    assert "".join(rest).startswith(sentence)


def test_a_budget_counts_recorded_seconds_of_this_command_even_in_diverged_runs(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    folder, budget = RunFolder(tmp_path / "run"), Budget(5, tmp_path)
    folder.write_status(RunStatus(cpu_seconds=3.0))
    budget.ignore(["run"])
    budget.count(Progress("run", "training", 1, 9))
    folder.write_status(RunStatus(status="diverged", cpu_seconds=7.9))
    assert not budget.is_spent()
    folder.write_status(RunStatus(status="diverged", cpu_seconds=8.0))
    assert budget.is_spent()
    budget.ignore(["run"])
    assert budget.is_spent(), "a second sweep does not reset the count"


def test_a_file_is_named_where_its_name_alone_is_given(mine: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(mine.parent)
    assert exit_code("bench", "leaderboard", "--model", mine.stem) == 2
    assert f"--model: expected a model's name or a file that registers a model, got {mine.stem}; give {mine.name}" in (
        capsys.readouterr().err
    )
    monkeypatch.setenv(EXTENSIONS, str(mine))
    load_extensions()
    name = f"my-{mine.stem.replace('_', '-')}"
    assert exit_code("show", name) == 0
    assert f"Mine in {mine}" in capsys.readouterr().out.replace("\n", " ")
    assert exit_code("train", "parity", name, "--set", "model.d_model=2.5") == 2
    assert "model.d_model: expected a valid integer, got 2.5" in capsys.readouterr().err


def test_files_of_users_are_loaded_once_and_fail_in_a_sentence(tmp_path: Path, monkeypatch) -> None:
    counted = tmp_path / "counted.py"
    counted.write_text("import os\nos.environ['COUNT'] = str(int(os.environ['COUNT']) + 1)\n")
    monkeypatch.setenv("COUNT", "0")
    monkeypatch.setenv(EXTENSIONS, os.pathsep.join([str(counted), "", str(counted)]))
    load_extensions()
    load_extensions()
    assert os.environ["COUNT"] == "1"
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    monkeypatch.setenv(EXTENSIONS, str(broken))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"broken.py, line \d+: ZeroDivisionError: division by zero"):
            load_extensions()
    first = tmp_path / "first.py"
    first.write_text(f"from lengthwise.registry import load_extensions\nload_extensions([{str(broken)!r}])\n")
    with pytest.raises(ValueError, match=r"^\S+broken.py, line \d+: ZeroDivisionError: division by zero"):
        load_extensions([str(first)])


def test_a_file_named_as_another_module_is_its_own(tmp_path: Path, monkeypatch) -> None:
    """Classes of two such files are two, and their source is there to read."""
    for folder, words in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "json.py").write_text(
            f"from lengthwise import MODELS\nclass Net:\n    '{words}'\nMODELS.kinds.append(Net)\n"
        )
    files = [str(tmp_path / folder / "json.py") for folder in "ab"]
    monkeypatch.setattr(MODELS, "kinds", [], raising=False)
    load_extensions(files)
    assert [inspect.getsourcefile(kind) for kind in MODELS.kinds] == files
    assert [pickle.loads(pickle.dumps(kind)) for kind in MODELS.kinds] == MODELS.kinds
    assert "dumps" in vars(sys.modules["json"])


def test_a_module_of_users_that_was_imported_is_not_run_again(tmp_path: Path, monkeypatch) -> None:
    name = f"imported_{os.getpid()}"
    (tmp_path / f"{name}.py").write_text("import os\nos.environ['COUNT'] = str(int(os.environ['COUNT']) + 1)\n")
    monkeypatch.setenv("COUNT", "0")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(name)
    load_extensions([str(tmp_path / f"{name}.py")])
    assert os.environ["COUNT"] == "1"


@pytest.mark.parametrize("with_model", [False, True])
def test_the_environment_names_its_device_too(
    mine: Path, with_model: bool, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("LENGTHWISE_DEVICE", "mps")
    own = ("--scale", "smoke", "--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    assert exit_code("bench", "leaderboard", *(("--model", str(mine)) if with_model else ()), *own) == 2
    assert "--device: expected a device of this machine, got 'mps'" in capsys.readouterr().err


def test_the_model_of_the_page_is_measured_within_a_budget_and_written(tmp_path: Path, monkeypatch, capsys) -> None:
    """The page's file, under another name; a second command continues where the budget ended the first."""
    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text(encoding="utf-8")
    code, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    name, file = f"mine-{os.getpid()}", tmp_path / f"page_{os.getpid()}.py"
    file.write_text(code.replace('"mine"', f'"{name}"'))
    monkeypatch.setenv(EXTENSIONS, "")
    monkeypatch.setattr(leaderboard, "RATES", (1e-2,))
    table, papers, text = (tmp_path / each for each in ("table.csv", "papers.bib", "table.md"))
    own = ("bench", "pd-ssm", "--model", str(file), "--rows", "parity", "--scale", "smoke", "--workers", "1")
    folders = ("--runs", str(tmp_path / "runs"), "--pages", str(tmp_path / "pages"))
    own = (*own, "--columns", name, *folders)
    try:
        assert exit_code(*own, "--budget", "0") == 1
        printed = capsys.readouterr()
        assert "the budget is spent; the same command continues" in printed.out
        assert "the learning rate is not chosen yet, because some runs have not ended" in printed.err
        assert exit_code(*own, "--out", str(table), "--out", str(papers), "--out", str(text)) == 0
        lines = list(csv.DictReader(table.read_text().splitlines()))
        assert [(line["model"], line["Parity"]) for line in lines if line["from"] == "[1]"][-1] == ("PD-SSM", "99.9")
        assert (lines[-1]["model"], lines[-1]["runs"], lines[-1]["from"]) == (name, "1", "scale smoke")
        assert papers.read_text().startswith("@inproceedings{terzic2025structured,")
        command = f"bench pd-ssm --model {file} {' '.join(folders)} --rows parity --columns {name} --scale smoke"
        assert f"lengthwise {command}\n" in text.read_text()
        (result,) = read_records(tmp_path / "pages/records/bench-pd-ssm-smoke.jsonl.gz")
        assert Budget(1, tmp_path / "runs")._recorded(result.run_id) == result.training.cpu_seconds > 0
        assert not Budget(None, tmp_path).is_spent()
        capsys.readouterr()
        file.write_text(file.read_text() + "# another version\n")
        assert exit_code(*own, "--out", str(table)) == 0
        note = f"older {file.name}: 1 run was made before this file changed; another folder of runs trains again\n"
        assert capsys.readouterr().out.count(note) == 2, "for the run that chose the rate, and for the row"
        lines = list(csv.DictReader(table.read_text().splitlines()))
        assert lines[-1]["from"] == f"scale smoke, older {file.name}"
        assert not any("older" in line["from"] for line in lines[:-1])
    finally:
        MODELS._members.pop(name, None)


def test_benchmarks_are_listed_and_a_faulty_request_is_one_sentence(tmp_path: Path, capsys) -> None:
    assert exit_code("bench") == 0
    assert "pd-ssm: Cycle navigation" in capsys.readouterr().out
    for given, sentence in (
        (("pd-sm",), "unknown benchmark 'pd-sm'; did you mean 'pd-ssm'?"),
        (("pd-ssm", "--out", str(tmp_path / "x.xls")), "--out: expected a name that ends in .md, "),
        (("pd-ssm", "--scale", "large"), "--scale: expected 'smoke' or 'small' or 'paper', got 'large'; choose one"),
        (("--scale", "zz"), "--scale: expected 'smoke' or 'small' or 'paper', got 'zz'; choose one"),
        (("leaderboard", "--scale", "paper"), "--scale: expected 'small' or 'smoke', got 'paper'"),
        (("leaderboard", "--columns", "GUR"), "--columns: expected names of columns, got 'GUR'; did you mean 'GRU'?"),
    ):
        assert exit_code("bench", *given, "--pages", str(tmp_path)) == 2
        assert sentence in capsys.readouterr().err


def test_a_table_of_a_paper_that_the_user_has_joins_the_table(tmp_path: Path, monkeypatch, capsys) -> None:
    """The example of docs/benchmarks.md; the saved command repeats the option."""
    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text()
    (text,) = re.findall(r"```toml\n(source = .*?)```", page, re.DOTALL)
    table, out = tmp_path / "table.toml", tmp_path / "table.json"
    table.write_text(text)
    monkeypatch.chdir(tmp_path)
    given = ("--published", str(table), "--rows", "parity", "--columns", "lstm", "--scale", "smoke", "--out", str(out))
    assert exit_code("bench", "pd-ssm", "--workers", "1", *given) == 0
    assert "Me (2026), Table 1: best of 3 seeds, in percent." in capsys.readouterr().out
    saved = json.loads(out.read_text())
    assert [line["Parity"] for line in saved["tables"] if line["model"] == "my LSTM"] == ["100"]
    assert f"--published {table}" in saved["command"]
