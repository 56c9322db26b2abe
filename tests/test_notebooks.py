"""Notebooks in examples/: clean as committed, and every cell runs."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import exit_code
from notebook import code_cells, run_cells

from lengthwise.automata.labeled import difference
from lengthwise.certification.certificate import Certificate
from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LESSONS = (
    *("classes_of_strings", "learning_by_questions", "random_strings_and_parity"),
    *("from_logs_to_a_monitor", "certify_in_continuous_integration"),
)
DOUBT, COMPARE = (EXAMPLES / f"{name}.ipynb" for name in ("from_a_doubt_to_a_proof", "compare_models_on_a_task"))

full = pytest.param(None, marks=pytest.mark.slow)


def at_scale(steps: int | None):
    """Cells with as many steps as they say or, at smoke scale, with few, short strings and two seeds."""

    def change(code: str) -> str:
        if steps is None:
            return code
        code = re.sub(r"^STEPS = \d+$", f"STEPS = {steps}", code, flags=re.MULTILINE)
        code = code.replace("STEPS, SEEDS = 600, range(3)", f"STEPS, SEEDS = {steps}, range(2)")
        code = code.replace("attack(net, task, budget=2)", "attack(net, task, budget=1)")
        return code.replace(", (5_000, 32)", ",").replace(", 1_000, 10_000]", "]")

    return change


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_clean(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells(path))
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    assert path in (DOUBT, COMPARE) or path.stem in LESSONS, "it is run below"
    for cell in content["cells"]:
        for link in re.findall(r"\]\(([^)#:]+)\)", "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""):
            assert (path.parent / link).exists(), link


@pytest.mark.parametrize("steps", [3, full])
def test_from_a_doubt_to_a_proof(steps: int | None, tmp_path: Path, monkeypatch, capsys, request) -> None:
    if steps is not None:
        request.getfixturevalue("fewer_strings")
    monkeypatch.chdir(tmp_path)
    results = run_cells(DOUBT, at_scale(steps))
    (curve, _), (refuted, card), (proved, _), (_, drawing) = results
    assert isinstance(curve, LengthCurve)
    assert isinstance(refuted, Certificate)
    assert card.startswith("<div")
    assert drawing.startswith("<svg")
    assert refuted.level == "refuted"
    answer = re.search(r"the LSTM says (\d), right is (\d)", capsys.readouterr().out)
    assert answer is not None
    assert answer[1] != answer[2], "the string that is named is answered wrongly"
    if steps is None:
        assert curve.min() == 1.0, "the notebook says that no random string is answered wrongly"
        assert proved.level == "proved"


@pytest.mark.parametrize("steps", [3, full])
def test_models_are_compared_on_a_task(steps: int | None, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = [value for value, _ in run_cells(COMPARE, at_scale(steps))]
    result, models, differences, curve = values
    assert isinstance(result, RunResult)
    assert isinstance(models, Table)
    assert [line[0] for line in models.lines] == ["rnn", "gru"]
    assert isinstance(differences, Table)
    assert differences.lines[0][:3] == ("dense range", "rnn", "gru")
    assert isinstance(curve, LengthCurve)


def in_this_process(run: Callable[..., Any]) -> Callable[..., Any]:
    """`subprocess.run`, but commands of the package run in this process, which has imported torch already."""

    def run_or_call(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if words[1:3] != ["-m", "lengthwise"]:
            return run(words, **options)
        with chdir(options["cwd"]), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = exit_code(*words[3:])
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    return run_or_call


@pytest.fixture(params=["small", pytest.param("full", marks=pytest.mark.slow)])
def lesson(request, tmp_path: Path, monkeypatch, capsys) -> Callable[[str], SimpleNamespace]:
    """A function that runs a lesson and returns its variables, with what it has `shown` and `printed`.

    A small lesson makes certificates from fewer strings, and starts no processes for commands.
    """
    steps = None if request.param == "full" else 20
    monkeypatch.chdir(tmp_path)
    if steps is not None:
        request.getfixturevalue("fewer_strings")
        monkeypatch.setattr(subprocess, "run", in_this_process(subprocess.run))

    def run(name: str) -> SimpleNamespace:
        names: dict[str, Any] = {}
        results = run_cells(EXAMPLES / f"{name}.ipynb", at_scale(steps), names)
        assert not [*tmp_path.iterdir()], "a lesson leaves no files"
        assert not names.get("folder", tmp_path / "none").exists(), "also not in its temporary folder"
        return SimpleNamespace(**names, results=results, printed=capsys.readouterr().out)

    return run


def test_lesson_on_classes_of_strings(lesson) -> None:
    done = lesson("classes_of_strings")
    assert [text.startswith("<svg") for _, text in done.results] == [True, True]
    assert sum(map(len, done.groups)) == 63
    assert len(done.groups) == 4
    states = [{done.state_after(text) for text in members} for members in done.groups]
    assert sorted(states, key=min) == [{state} for state in range(done.machine.num_states)]
    endings = {(int(p), int(q)): end for p, q, end in re.findall("states (\\d) and (\\d): '(.*)'", done.printed)}
    assert [*endings] == [*combinations(range(4), 2)]
    accepting = done.machine.accepting.tolist()
    assert {pair for pair, ending in endings.items() if not ending} == {(0, 3), (1, 3), (2, 3)}
    assert accepting == [False, False, False, True]
    assert "states: 5, 4 in the smallest machine" in done.printed
    assert "equal after minimization: True" in done.printed
    assert done.first.machine.semiautomaton.table[0].tolist() == done.first.machine.semiautomaton.table[2].tolist()
    assert difference(done.first, done.solution) is None
    assert difference(done.second, done.solution).string == tuple("abbabb")
    assert re.findall("star-free: (yes|no)", done.printed) == ["yes", "yes", "yes", "no"]
    assert re.findall(r"(\d+) powers of a: +(\d+) classes", done.printed) == [(n, n) for n in ("2", "4", "8", "16")]


def test_lesson_on_learning_by_questions(lesson) -> None:
    done = lesson("learning_by_questions")
    assert re.findall(r"(\d) states: (?:wrong|right)", done.printed) == ["2", "3"]
    wrong = [machine for machine in done.accepted if not machine.equivalent(done.right.transducer)]
    assert len(wrong) == 100 - done.num_right > 50, "most of these machines are wrong"
    assert all(machine.num_states == 1 and machine.outputs.tolist() == [0] for machine in wrong)
    assert "accepts the wrong machine: 83%" in done.printed
    assert "show twenty a: 1.0%" in done.printed
    sizes = re.findall(r"A Mealy machine of (\d+) states?,.* at most (\d+) states", done.printed)
    assert sizes == [("1", "5"), ("1", "9"), ("11", "11")]
    counts = [int(number) for number in re.findall(r"(\d+) strings$", done.printed, re.MULTILINE)]
    assert all(1.9 < after / before < 2.1 for before, after in pairwise(counts))
    assert "11 states; equals the Python function if a machine of at most 11 states computes it" in done.printed
    assert done.task.language.equivalent(done.right)
    assert "system: expected one output to the string aa, got 'no' and later 'perhaps'" in done.printed
    assert "got 50; allow more states" in done.printed
    assert 0.04 < sum(done.mistaken(string) != done.is_member(string) for string in done.strings) / 1000 < 0.06
    assert done.learned.doubt is None, "held-out labels support it"
    assert "difference: None" in done.printed


def test_lesson_on_random_strings_and_parity(lesson) -> None:
    done = lesson("random_strings_and_parity")
    (_, machine), (curve, _), (certificate, card) = done.results
    assert machine.startswith("<svg")
    assert card.startswith("<div")
    assert curve.min() == 1.0, "the notebook says that no random string is answered wrongly"
    assert 6.5e6 < 2**10_000 / done.runs.count(10_000) < 7.5e6, "and that one in seven million has a run"
    families = dict(re.findall(r"^([\w-]+) +(\d+) of (?:2|15|20)$", done.printed, re.MULTILINE))
    assert 10 < int(families["few-runs"]) < 13, "nearly half of the strings of few runs are wrong"
    assert "wrong answer: b a^35: the model says 0, right is 1" in done.printed
    assert done.inside.num_states == 36
    assert done.inside.difference_string(done.task.transducer) == ("b", *"a" * 35)
    assert "6 of 6 right: a, b, aa, ab, ba, bb" in done.printed
    assert sum(map(done.test.num_symbols, range(35))) > 10**12
    members = [float(share) for share in re.findall("members: ([^ ]+) of", done.printed)]
    assert members[0] == 0.5
    assert all(share < 1e-4 for share in members[1:])
    assert re.findall(r"([\d.]+) of the task's", done.printed) == ["0.50"] * 4
    assert certificate.level == "proved"


def test_lesson_from_logs_to_a_monitor(lesson) -> None:
    done = lesson("from_logs_to_a_monitor")
    assert repr(done.few).startswith("NOT CONFIRMED")
    assert done.learned.doubt is None
    assert done.learned.machine.num_states == 4
    assert difference(done.learned.labeled.without_empty_string(), done.session) is None
    assert "(CONNECT (DATA ACK)* CLOSE)*" in done.printed
    if shutil.which("cc"):
        assert "same server: 0 of 1500 verdicts differ" in done.printed
        assert "the shortest is ('CONNECT DATA CLOSE', 'OK')" in done.printed
        assert all("DATA CLOSE" in trace for trace, _ in done.wrong)
    assert done.exit_codes == [0, 1]
    assert "string: CONNECT DATA CLOSE\n" in done.printed
    more = done.learn(done.rows[:200], separator=" ")
    assert more.held_out().num_correct == more.held_out().num_labels
    assert difference(more.labeled.without_empty_string(), done.session) is not None, "the notebook says so"


def test_lesson_on_certificates_in_continuous_integration(lesson) -> None:
    done = lesson("certify_in_continuous_integration")
    assert done.exit_codes == [0, 1, 2]
    assert re.findall("^(proved|refuted): ", done.printed, re.MULTILINE) == ["proved", "refuted"]
    assert "counterexample: FAIL FAIL FAIL: the model answers out; the right answer is in" in done.printed
    assert "did you mean --min-level?" in done.printed
    whole, pruned = done.comparisons.values()
    assert (whole.equal, whole.level) == (True, "proved")
    assert pruned.counterexample.string == ("FAIL",) * 3


def test_an_error_in_a_cell_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    cells = [{"cell_type": "code", "source": ["x = 1\n", "x"]}, {"cell_type": "code", "source": ["x + missing"]}]
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(NameError, match="missing"):
        run_cells(path, str)
    path.write_text(json.dumps({"cells": cells[:1]}))
    assert run_cells(path, str) == [(1, "1")]
