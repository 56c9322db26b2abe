"""Two runs compared, from made-up results."""

from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.pages.run import write_report
from lengthwise.report.tables.comparison import accuracy_differences, setting_differences


def half_right_at_50_and_1000(length: int, num_strings: int) -> int:
    return num_strings // 2 if length in (50, 1_000) else num_strings


def test_settings_that_differ_are_named_with_both_values() -> None:
    first, second = synthetic_run(), synthetic_run(settings={"model": {"chunk_size": 3}}, seed=4)
    lines = setting_differences(first.result, second.result).lines
    assert sorted(lines) == [("model.chunk_size", "2", "3"), ("seed", "0", "4")]
    assert setting_differences(first.result, first.result).lines == ()


def test_accuracies_are_compared_where_both_were_measured() -> None:
    first, second = synthetic_run(), synthetic_run(seed=1, num_correct=half_right_at_50_and_1000)
    table = accuracy_differences(first.result, second.result)
    assert table is not None
    lines = {line[0]: line[1:] for line in table.lines}
    assert lines["dense range"] == ("20", "100 %", "97.50 %", "-2.50", "1", "0")
    assert lines["length 1,000"] == ("1", "100 %", "50.00 %", "-50.00", "1", "0")
    assert lines["length 100,000"] == ("1", "100 %", "100 %", "+0.00", "0", "0")
    assert lines["structured strings"] == ("2", "100 %", "100 %", "+0.00", "0", "0")
    shorter = EvaluationPlan(dense=(41, 49), long=(), structured=())
    table = accuracy_differences(synthetic_run(plan=shorter).result, second.result)
    assert table is not None
    assert [line[:4] for line in table.lines] == [("dense range", "9", "100 %", "100 %")]


def test_accuracies_on_different_tasks_are_not_compared(tmp_path: Path) -> None:
    runs = [synthetic_run(), synthetic_run("even-pairs")]
    assert accuracy_differences(*(run.result for run in runs)) is None
    page = tmp_path / "report.html"
    write_report(runs, page)
    text = page.read_text(encoding="utf-8")
    assert "accuracies are not compared" in text
    assert "<td>task.name</td><td>parity</td><td>even-pairs</td>" in text


def test_long_settings_are_cut_where_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = synthetic_run().result, synthetic_run(seed=1).result
    assert first is not None
    assert second is not None
    beginning = "abc" * 30
    texts = iter([f"{beginning}X{'y' * 99}", f"{beginning}Z"])
    monkeypatch.setattr("lengthwise.report.tables.settings.setting_text", lambda value: next(texts, "same"))
    ((_, one, other),) = setting_differences(first, second).lines
    assert one == "...bcabcabcX" + "y" * (48 - 12 - 3) + "..."
    assert other == "...bcabcabcZ"
