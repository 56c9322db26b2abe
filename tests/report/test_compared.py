"""Models compared on a task, from made-up results."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console
from synthetic_runs import PLAN, synthetic_run

from lengthwise.evaluation.error_curve import ErrorCurve, ErrorPoint
from lengthwise.report.pages.compared import length_table, print_comparison
from lengthwise.report.pages.comparison import write_comparison
from lengthwise.report.tables.compared import (
    Comparison,
    accuracies_by_length,
    compare_models,
    differing_settings,
    model_difference_table,
    model_differences,
    model_table,
)
from lengthwise.report.tables.differences import multiplicity, paired_differences
from lengthwise.runs.result import RunResult


def result(model: str = "rnn", *, seed: int = 0, wrong_at_1000: int = 0, **options) -> RunResult:
    def num_correct(length: int, num_strings: int) -> int:
        return num_strings - (wrong_at_1000 if length == 1_000 else 0)

    measured = synthetic_run(model=model, seed=seed, num_correct=num_correct, **options).result
    assert measured is not None
    return measured


@pytest.fixture
def comparison() -> Comparison:
    """Two models, seeds 0 to 2; at length 1,000 the second errs on 128, 64 and none of 256 strings."""
    results = [result(seed=seed) for seed in range(3)]
    return compare_models([*results, *(result("gru", seed=seed, wrong_at_1000=64 * (2 - seed)) for seed in range(3))])


def cells(table) -> list[dict[str, str]]:
    return [dict(zip(table.header, line, strict=True)) for line in table.lines]


def test_models_are_in_a_table_with_accuracies_and_cost(comparison: Comparison) -> None:
    rnn, gru = cells(model_table(comparison))
    assert (rnn["model"], rnn["mean"], rnn["1,000"], rnn["CPU s"]) == ("rnn", "100 %", "100 %", "30.2 to 30.2")
    assert (gru["model"], gru["mean"], gru["1,000"], gru["parameters"]) == ("gru", "100 %", "50.00 %", "25,216")
    assert ("chance", "50.00 %") in model_table(comparison).shared
    assert accuracies_by_length(comparison.models[1])[1_000] == [0.5, 0.75, 1.0]
    (row, *_) = comparison.models[1].rows
    again = row.dense.points[0].model_copy(update={"num_strings": 10_000, "num_correct": 2_500})
    both = comparison.models[1]._replace(rows=(row._replace(long={again.length: again}),))
    assert accuracies_by_length(both)[again.length] == [0.25], "each seed counts once"


def test_differences_are_paired_by_seed_with_students_interval(comparison: Comparison) -> None:
    """Gaps of 50, 25 and 0 points: 25 with a standard deviation of 25, times 4.3027 / sqrt(3), is 62.10."""
    compared = {line["measured at"]: line for line in cells(model_difference_table(model_differences(comparison)))}
    at_1000 = compared["length 1,000"]
    assert (at_1000["first"], at_1000["second"], at_1000["difference"]) == ("rnn", "gru", "+25.00")
    assert at_1000["95 % interval"] == "-37.10 to +87.10"
    assert at_1000["better"] == "-"
    assert (compared["dense range"]["difference"], compared["dense range"]["p, Holm"]) == ("+0.00", "1")
    assert float(at_1000["p, Holm"]) == pytest.approx(4 * 0.2254, abs=0.01), (
        "four differences, of which it is the least"
    )


def test_only_common_seeds_are_compared_in_any_order() -> None:
    results = [result("gru", seed=2), result(seed=1), result("gru", seed=1, wrong_at_1000=256), result(seed=2)]
    extra = result(seed=7)
    compared = compare_models([*results, extra])
    assert (compared.seeds, compared.left_out) == ((1, 2), (extra.run_id,))
    gaps = {difference.row: difference.mean for difference in model_differences(compared)}
    assert gaps["length 1,000"] == -0.5, "gru is the first model here"


def test_settings_tell_models_of_one_name_apart() -> None:
    results = [result("regular-gpt", settings={"model": {"chunk_size": size}}) for size in (2, 3)]
    names = [model.name for model in compare_models(results).models]
    assert names == ["regular-gpt (model.chunk_size=2)", "regular-gpt (model.chunk_size=3)"]
    assert differing_settings(compare_models(results)).lines == (("model.chunk_size", "2", "3"),)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "expected two or more runs to compare, got 1"),
        ([{"task": "even-pairs"}], "expected runs of one task, got .* of parity and .* of even-pairs; compare"),
        (
            [{"plan": PLAN.model_copy(update={"dense": (41, 50)})}],
            r"measured by one plan, got `dense` \(41, 60\) in parity-\S+ and \(41, 50\) in \S+; `lengthwise resume",
        ),
        ([{"model": "rnn"}], "expected each run once, got parity-rnn-seed0-.* twice"),
        ([{"model": "rnn", "seed": 1}], "expected runs of two or more models, .* got only runs of rnn"),
        ([{"seed": 1}], "expected a seed that all models have, .*, got seeds 0 of rnn, seeds 1 of gru; train"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(others, message: str) -> None:
    with pytest.raises(ValueError, match=f"^results: .*{message}") as raised:
        compare_models([result(), *(result(**{"model": "gru", **other}) for other in others)])
    assert "\n" not in str(raised.value)


def test_models_without_a_balanced_length_in_the_dense_range_are_compared_by_the_others(tmp_path: Path) -> None:
    """Of a task such as `regex` with the pattern ab, whose only string is shorter than those measured."""
    names = [(model, seed) for model in ("rnn", "gru") for seed in (0, 1)]
    comparison = compare_models([result(name, seed=seed, is_balanced=lambda n: n >= 1_000) for name, seed in names])
    for line in cells(model_table(comparison)):
        assert line["1,000"] == "100 %"
        assert not {"mean", "95 % interval", "lowest"} & line.keys(), "nothing is left of columns that are empty"
    assert "dense range" not in [difference.row for difference in model_differences(comparison)]
    print_comparison(Console(file=io.StringIO(), width=100), comparison)
    assert write_comparison(comparison, tmp_path / "page.md")[0].exists()


def test_one_difference_is_counted_in_the_singular() -> None:
    (sentence,) = multiplicity(paired_differences([("a", "x", "y", [0.3, 0.1])]))
    assert sentence.startswith("With 2 seeds, 0 of 1 difference would be statistically significant")


def test_a_certificate_changes_no_plan_and_errors_are_another_experiments() -> None:
    certified = result("gru", plan=PLAN.model_copy(update={"certificate": True}))
    assert len(compare_models([result(), certified]).models) == 2
    curve = ErrorCurve(
        length=9, num_prompts=8, input_dim=2, baseline=1.0, points=(ErrorPoint(num_examples=0, error=1, low=1, high=1),)
    )
    with pytest.raises(ValueError, match="expected runs whose answers are classes"):
        compare_models([result(), certified.model_copy(update={"errors": curve})])


@pytest.mark.parametrize("width", [30, 70, 160])
def test_a_terminal_of_any_width_shows_all_numbers(comparison: Comparison, width: int) -> None:
    file = io.StringIO()
    print_comparison(Console(file=file, width=width), comparison)
    text = " ".join(file.getvalue().split())
    assert "+25.00" in text
    assert "-37.10 to" in text
    assert text.count("100,000") >= 2
    assert "75.00 %" in text, "the mean at length 1,000"
    bars = re.findall("#+", file.getvalue())
    assert bool(bars) == (width > 30)
    if bars:
        assert sorted({len(bar) for bar in bars}) == [15, 20]


def test_curves_are_shown_at_the_ends_and_at_long_lengths(comparison: Comparison) -> None:
    lengths = [line[0] for line in length_table(comparison, 160).lines]
    assert (lengths[0], lengths[-3:]) == ("41", ["60", "1,000", "100,000"])
    assert len(lengths) <= 12


def test_pages_hold_tables_chart_and_points(comparison: Comparison, tmp_path: Path) -> None:
    paths = write_comparison(comparison, tmp_path / "new" / "page.html")
    assert [path.name for path in paths] == ["page.html", "page-accuracy.png", "page-accuracy.svg", "page.csv"]
    html = paths[0].read_text()
    assert "<td>-37.10 to +87.10</td>" in html
    assert "id='accuracy'" in html
    assert '"model":"gru"' in html, "the chart has both models"
    assert not re.search(r"(src|href)=.https?:", html)
    svg = paths[2].read_text()
    assert "gru" in svg
    assert len(paths[3].read_text().splitlines()) == 1 + 6 * (20 + 2 + 2)
    page, *_ = write_comparison(comparison, tmp_path / "page.md")
    text = page.read_text()
    assert "| length 1,000 | rnn | gru | +25.00 | -37.10 to +87.10 | - |" in text
    assert "![Accuracy against length](page-accuracy.svg)" in text
    regex = {"task": {"pattern": "(a*b)*"}}
    starred = compare_models([result(name, task="regex", settings=regex) for name in ("rnn", "gru")])
    page, *_ = write_comparison(starred, tmp_path / "starred.md")
    text = page.read_text()
    assert text.startswith(r"# Models compared on regex pattern=(a\*b)\*")
    assert r"The best constant answer would score: regex pattern=(a\*b)\* 50.00 %." in text
    assert "(a*b)*" not in text
