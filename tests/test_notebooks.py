"""Notebooks in examples/: clean as committed, and every cell runs."""

import json
import re
from pathlib import Path

import pytest
from notebook import code_cells, run_cells

from lengthwise.certification.certificate import Certificate
from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
DOUBT, COMPARE = (EXAMPLES / f"{name}.ipynb" for name in ("from_a_doubt_to_a_proof", "compare_models_on_a_task"))

full = pytest.param(None, marks=pytest.mark.slow)


def at_scale(steps: int | None):
    """Cells with as many steps as they say or, at smoke scale, with few, short strings and two seeds."""

    def change(code: str) -> str:
        if steps is None:
            return code
        code = re.sub(r"^STEPS = \d+$", f"STEPS = {steps}", code, flags=re.MULTILINE)
        code = code.replace("STEPS, SEEDS = 600, range(3)", f"STEPS, SEEDS = {steps}, range(2)")
        return code.replace(", (5_000, 32)", ",").replace(", 1_000, 10_000]", "]")

    return change


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_clean(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells(path))
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert content["metadata"]["kernelspec"]["name"] == "python3"
    assert path in (DOUBT, COMPARE), "it is run below"


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


def test_an_error_in_a_cell_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    cells = [{"cell_type": "code", "source": ["x = 1\n", "x"]}, {"cell_type": "code", "source": ["x + missing"]}]
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(NameError, match="missing"):
        run_cells(path, str)
    path.write_text(json.dumps({"cells": cells[:1]}))
    assert run_cells(path, str) == [(1, "1")]
