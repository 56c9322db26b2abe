import csv
import io
import math
import re
import tomllib
from fractions import Fraction
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from synthetic_runs import PLAN, synthetic_run

from lengthwise.display import literal
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.models import MODELS
from lengthwise.presets import PRESETS
from lengthwise.report.tables.markdown import table_paragraphs
from lengthwise.report.tables.numbers import NOTHING, percent
from lengthwise.report.tables.runs import MAX_LENGTHS, as_csv, curve_table, run_rows, summary_table, unbalanced_table
from lengthwise.report.tables.settings import as_toml, preset_below, task_in, variations
from lengthwise.report.tables.table import Table
from lengthwise.runs.spec import RunSpec, make_spec
from lengthwise.tasks import TASKS, SymbolTask


def one_wrong_at_50(length: int, num_strings: int) -> int:
    return num_strings - (length == 50)


def test_the_table_of_a_curve_has_a_line_for_each_family_and_a_column_for_each_of_few_lengths() -> None:
    def point(length: int, family: str, num_correct: int, **others: object) -> LengthPoint:
        return LengthPoint(length=length, num_strings=4, num_correct=num_correct, family=family, baseline=0.5, **others)

    few = [point(5, "constant", 4), point(5, "sparse", 1), point(1_000, "sparse", 3)]
    table = curve_table("net", LengthCurve(protocol="structured", points=tuple(few)))
    assert table.header == ("model", "family", "right", "5", "1,000", "mean", "lowest", "chance")
    assert table.lines == (
        ("net", "constant", "4/4", "100 %", "-", "100 %", "100 %", "50.00 %"),
        ("net", "sparse", "4/8", "25.00 %", "75.00 %", "50.00 %", "25.00 % at 5", "50.00 %"),
    )
    many = tuple(point(length, "random", 2, balanced=length > 1) for length in range(1, MAX_LENGTHS + 2))
    table = curve_table("net", LengthCurve(protocol="independent", points=many))
    assert table.to_rows() == [
        {
            "model": "net",
            "lengths": "1-13",
            "right": "26/52",
            "mean": "50.00 %",
            "lowest": "50.00 % at 2",
            "chance": "50.00 %",
            "family": "random",
        }
    ]


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_percentage_is_cut_and_only_all_right_is_100(counts: tuple[int, int]) -> None:
    num_correct, num_strings = counts
    quoted = Fraction(percent(num_correct / num_strings).removesuffix(" %")) / 100
    share = Fraction(num_correct, num_strings)
    assert quoted <= share < quoted + Fraction(1, 10_000)
    assert (percent(num_correct / num_strings) == "100 %") == (num_correct == num_strings)


def test_what_was_not_measured_is_no_percentage() -> None:
    assert percent(math.nan) == NOTHING


def test_rows_equal_the_result() -> None:
    run = synthetic_run(num_correct=one_wrong_at_50)
    result = run.result
    (row,) = run_rows([result])
    assert row.dense.mean() == result.dense.mean() < 1
    assert row.lowest == result.dense.points[9]
    assert row.long == {1_000: result.long.points[0], 100_000: result.long.points[1]}
    assert (row.task, row.model, row.seed, row.steps) == ("parity", "regular-gpt", 0, result.spec["train"]["steps"])
    table = summary_table([row])
    cells = dict(zip(table.header, table.lines[0], strict=True)) | dict(table.shared)
    assert cells["mean"] == "99.98 %"
    assert cells["lowest"] == "99.60 % at 50"
    assert cells["100,000"] == "100 %"
    assert cells["structured"] == "100 %"
    assert cells["lengths"] == "41-60"
    assert cells["strings"] == "256, one-pass"
    assert cells["chance"] == "50.00 %"


def test_the_lowest_structured_accuracy_names_its_family() -> None:
    run = synthetic_run(num_correct=lambda length, num_strings: num_strings // 2 if length == 500 else num_strings)
    table = summary_table(run_rows([run.result]))
    assert table.lines[0][table.header.index("structured")] == "50.00 % at 500, constant"


def test_columns_that_differ_stay_and_others_fold() -> None:
    rows = run_rows([synthetic_run(seed=seed).result for seed in (0, 1)])
    assert "steps" not in summary_table(rows).header
    rows.append(run_rows([synthetic_run(settings={"train": {"steps": 10}}, seed=2).result])[0])
    assert "steps" in summary_table(rows).header


def test_unbalanced_lengths_are_apart() -> None:
    run = synthetic_run(
        num_correct=lambda length, num_strings: num_strings * (length % 2 == 0), is_balanced=lambda n: n % 2 == 0
    )
    rows = run_rows([run.result])
    assert rows[0].dense.mean() == 1
    table = unbalanced_table(rows)
    assert table is not None
    assert dict(zip(table.header, table.lines[0], strict=True))["how many"] == "10"
    assert table.lines[0][-2:] == ("0 %", "0 %")
    assert unbalanced_table(run_rows([synthetic_run().result])) is None


def test_long_lengths_are_not_taken_for_the_dense_range() -> None:
    point = LengthPoint(length=999, num_strings=4, num_correct=4, baseline=0.5)
    long, empty = (LengthCurve(protocol="independent", points=points) for points in ((point,), ()))
    only_long = synthetic_run().result.model_copy(update={"dense": empty, "long": long, "structured": empty})
    table = summary_table(run_rows([only_long]))
    cells = dict(zip(table.header, table.lines[0], strict=True)) | dict(table.shared)
    assert cells["mean"] == cells["lengths"] == cells["structured"] == NOTHING
    assert cells["1,000"] == "100 % at 999"


def test_a_run_measured_at_fewer_long_lengths_has_a_gap() -> None:
    shorter = EvaluationPlan(dense=(41, 60), long=((1_000, 256),))
    rows = run_rows([synthetic_run(plan=plan, seed=seed).result for seed, plan in enumerate((PLAN, shorter))])
    table = summary_table(rows)
    assert [line[table.header.index("100,000")] for line in table.lines] == ["100 %", NOTHING]


def test_csv_holds_every_point_in_full_precision() -> None:
    results = [synthetic_run(seed=seed, num_correct=one_wrong_at_50).result for seed in (0, 1)]
    lines = list(csv.DictReader(io.StringIO(as_csv(results))))
    points = [(r, c.protocol, p) for r in results for c in r.curves for p in c.points]
    assert len(lines) == len(points)
    for line, (result, protocol, point) in zip(lines, points, strict=True):
        assert (line["run_id"], line["protocol"], line["family"]) == (result.run_id, protocol, point.family)
        assert (int(line["seed"]), int(line["length"])) == (result.spec["seed"], point.length)
        assert (int(line["num_correct"]), int(line["num_strings"])) == (point.num_correct, point.num_strings)
        assert (float(line["interval_low"]), float(line["interval_high"])) == point.interval
        assert float(line["accuracy"]) == point.accuracy
        assert (line["balanced"], float(line["baseline"])) == ("true", point.baseline)


def test_variations_name_the_settings_that_differ() -> None:
    alike = [synthetic_run(seed=seed).result for seed in (0, 1)]
    assert set(variations(alike).values()) == {""}
    other = synthetic_run(settings={"model": {"chunk_size": 3}, "train": {"augmentation": {"late_state_noise": 0.0}}})
    elsewhere = synthetic_run("even-pairs").result
    texts = variations([*alike, other.result, elsewhere])
    assert texts[alike[0].run_id] == "model.chunk_size=2, train.augmentation.late_state_noise=0.3"
    assert texts[other.result.run_id] == "model.chunk_size=3, train.augmentation.late_state_noise=0.0"
    assert texts[elsewhere.run_id] == ""


def repeated(spec: RunSpec) -> RunSpec:
    """What the file of a page trains, over its preset."""
    content = spec.to_json()
    goal = {} if spec.goal is None else {"goal": spec.goal.level, "budget": spec.goal.budget}
    names, settings = (content[section]["name"] for section in ("task", "model")), tomllib.loads(as_toml(content))
    return make_spec(*names, settings, preset=preset_below(content), seed=spec.seed, **goal)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_file_of_a_configuration_repeats_it(preset: str) -> None:
    is_counting = PRESETS[preset].train.get("optimizer", {}).get("name") == "baum-welch"
    optimizer = {"floor": 1e-4} if is_counting else {"learning_rate": 1e-5}
    settings = {"train": {"optimizer": optimizer}, "task": {"p": 0.3}}
    model = next(iter(PRESETS[preset].models), "regular-gpt")
    spec = make_spec("parity", model, settings, preset=preset, seed=3)
    assert repeated(spec) == spec


@pytest.mark.parametrize("task", [name for name, kind in TASKS.items() if issubclass(kind, SymbolTask)])
def test_the_file_of_a_configuration_repeats_every_task_even_without_sections_of_its_preset(task: str) -> None:
    spec = make_spec(task, "gru", {"train": {"min_length": 1}}, preset="recurrent")
    assert repeated(spec) == spec


@pytest.mark.parametrize(
    ("task", "model"),
    [("parity", "block-linear-rnn"), ("parity", "regular-gpt"), ("levenshtein-distance", "grid-recurrence")],
)
@pytest.mark.parametrize("model_settings", [{}, {"d_model": 16, "block_dim": 16}])
def test_the_file_of_a_configuration_repeats_a_run_with_a_goal(task: str, model: str, model_settings: dict) -> None:
    kept = {key: value for key, value in model_settings.items() if key in MODELS[model].Config.model_fields}
    spec = make_spec(task, model, {"model": kept}, goal="proved", budget=12.5)
    assert repeated(spec) == spec


def test_a_regular_expression_is_named_even_where_it_is_the_default() -> None:
    assert task_in(make_spec("regex", "gru").to_json()) == "regex pattern=(a|b)*abb"
    assert task_in(make_spec("parity", "gru").to_json()) == "parity"


@pytest.mark.parametrize("pattern", ["(é|🙂)*é", r"(\(|\.)*\."])
def test_the_file_of_a_configuration_keeps_every_symbol(pattern: str) -> None:
    spec = make_spec("regex", "regular-gpt", {"task": {"pattern": pattern}})
    assert make_spec("regex", "regular-gpt", tomllib.loads(as_toml(spec.to_json()))).id == spec.id


@given(st.text("a b*_<>[]()|\\\\`&;!#\n", min_size=1, max_size=12) | st.sampled_from(["(a*b)*|__a__", "d_model=8"]))
def test_a_page_shows_text_as_it_is(text: str) -> None:
    """As a reader of Markdown renders it: regular expressions and file names have characters that are markup."""
    expected = " ".join(text.split())
    pages = table_paragraphs(Table(("task",), ((f"x {text} x",),), (("task", f"x {text} x"),)))
    html = MarkdownIt("commonmark").enable("table").render("\n\n".join(pages))
    for pattern in ("<td>x(.*)x</td>", "The same in every row: task x(.*)x[.]</p>"):
        (matched,) = re.findall(pattern, html)
        assert " ".join(unescape(matched).split()) == expected


def test_text_without_markup_stays_as_it_is() -> None:
    text = "RegularGPT, d_model=8, betas=[0.9, 0.95], p < 0.01, (a|b), C:\\dir & more!"
    assert literal(text) == text
