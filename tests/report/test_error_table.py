"""Squared errors on a page, and accuracies next to shallow baselines, from made-up and tiny results."""

import io
import math
from datetime import date
from pathlib import Path

import pytest
from rich.console import Console
from synthetic_runs import PLAN, synthetic_run

from lengthwise.evaluation.error_curve import ErrorCurve, ErrorPoint
from lengthwise.evaluation.interval import (
    accuracy_interval,
    are_equal,
    difference_from_zero,
    holm,
    mean_interval,
    wilson_interval,
)
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.experiment import Cell, Experiment, Scoring
from lengthwise.report.pages.results import markdown_page
from lengthwise.report.pages.run import MeasuredRun, write_report
from lengthwise.report.pages.terminal import print_results
from lengthwise.report.tables.differences import compared_columns, paired_differences
from lengthwise.report.tables.errors import error_run_table
from lengthwise.report.tables.experiment import cell_table
from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.shallow_baselines import best_shallow_baseline, shallow_baseline_sentences
from lengthwise.runs.execute import execute
from lengthwise.runs.folder import RunFolder, load_run
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.predict import predict_text
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import make_spec
from lengthwise.tasks import make_task

TREES = {
    "task": {"depth": 2, "dims": 4, "max_points": 6},
    "model": {"d_model": 8, "num_heads": 2, "num_loops": 1},
    "train": {"steps": 3, "batch_size": 4, "min_length": 2, "max_length": 6, "supervision": "prefix"},
}
TODAY = date(2026, 1, 2)
TREE_PLAN = EvaluationPlan(dense=(6, 6), dense_strings=20, long=(), structured=())


def tree_outcome(seed: int, errors: tuple[float, ...], num_loops: int = 1) -> Outcome:
    settings = {**TREES, "model": {**TREES["model"], "num_loops": num_loops}}
    spec = make_spec("decision-tree", "looped-transformer", settings, seed=seed)
    points = [ErrorPoint(num_examples=n, error=e, low=e / 2, high=2 * e) for n, e in enumerate(errors)]
    curve = ErrorCurve(length=len(errors), num_prompts=20, input_dim=4, baseline=1.0, points=tuple(points))
    other = synthetic_run(seed=seed).result
    assert other is not None
    unmeasured = {part: LengthCurve(protocol="independent", points=()) for part in ("dense", "long", "structured")}
    changes = {"run_id": spec.id, "spec": spec.to_json(), "errors": curve, "plan": TREE_PLAN, **unmeasured}
    return Outcome(spec, other.model_copy(update=changes))


def test_errors_are_divided_by_the_dimension_and_have_an_interval_over_runs() -> None:
    outcomes = [tree_outcome(0, (1.2, 0.4)), tree_outcome(1, (1.0, 0.8)), tree_outcome(2, (0.8, 0.6))]
    cell = Cell("trees", "R=1", tuple(outcome.spec for outcome in outcomes), "1.70e-03")
    experiment = Experiment("Title", "About.", [cell], TREE_PLAN, scoring=Scoring(measure="error"))
    header, (line,), _ = cell_table(experiment, outcomes)
    cells = dict(zip(header, line, strict=True))
    assert cells["error"] == "1.50e-01"  # the mean of 0.1, 0.2 and 0.15
    assert cells["95 % interval"] == "2.58e-02 to 2.74e-01"  # 4.303 standard errors of 0.05 / sqrt(3)
    assert (cells["lowest run"], cells["over all"], cells["mean predicted"]) == ("1.00e-01", "2.00e-01", "2.50e-01")
    assert (cells["examples"], cells["paper"]) == ("1", "1.70e-03")
    page = markdown_page("looped/table-2", "small", "lengthwise reproduce looped/table-2", experiment, outcomes, TODAY)
    assert "| trees | 1.50e-01 |" in page
    assert "column R=1" in page
    assert "*error*: squared error of the last answer" in page
    assert "Accuracy" not in page
    _, (missing,), _ = cell_table(experiment, [Outcome(outcome.spec, None, "stopped") for outcome in outcomes])
    assert missing[:4] == ("trees", "R=1", "0 of 3", "-")
    assert len(missing) == len(header)


def test_runs_that_answer_with_numbers_keep_their_errors(tmp_path: Path) -> None:
    spec = make_spec("decision-tree", "looped-transformer", TREES)
    result = execute(spec, tmp_path, TREE_PLAN)
    assert result.errors is not None
    assert len(result.errors.points) == 6
    assert not any(curve.points for curve in result.curves)
    assert result.probes == ()
    assert RunFolder(tmp_path / spec.id).read_result() == result
    _, (line,), _ = error_run_table([result])
    assert line[:5] == ("decision-tree depth=2 dims=4 max_points=6", "looped-transformer", "0", "20", "5")
    run = load_run(tmp_path / spec.id)
    with pytest.raises(
        ValueError, match="task: expected a task that reads text, got decision-tree, which reads vectors"
    ):
        predict_text(run.model, run.spec.task, "ab")
    with pytest.raises(ValueError, match="got a run whose answers are numbers; this page"):
        write_report([MeasuredRun(run.folder, run.metrics, result)], tmp_path / "report.html")


def test_results_with_accuracies_are_written_as_before_there_were_errors() -> None:
    result = synthetic_run().result
    assert isinstance(result, RunResult)
    assert "errors" not in result.model_dump(mode="json")


def test_a_shallow_baseline_is_computed_at_odd_and_even_lengths() -> None:
    """No string of odd length is in a Dyck language, so at odd lengths alone a constant answer would be right."""
    for num_lengths in (460, 500):
        best = best_shallow_baseline(make_task("bounded-dyck"), range(1, num_lengths + 1))
        assert best is not None
        assert 0.6 < best.accuracy < 0.99


def test_accuracies_stand_next_to_the_best_shallow_baseline() -> None:
    settings = {"task": {"max_length": 5, "alphabet": 4}, "train": {"min_length": 5, "max_length": 5}}
    outcomes = []
    for seed, right in enumerate((970, 980, 990)):
        spec = make_spec("longest-common-subsequence", "looped-transformer", settings, seed=seed)
        point = LengthPoint(length=5, num_strings=1_000, num_correct=right, baseline=0.6)
        made_up = synthetic_run(seed=seed).result
        assert made_up is not None
        changes = {
            "run_id": spec.id,
            "spec": spec.to_json(),
            "dense": LengthCurve(protocol="independent", points=(point,)),
        }
        outcomes.append(Outcome(spec, made_up.model_copy(update=changes)))
    specs = tuple(outcome.spec for outcome in outcomes)
    rates = specs[0].task.base_rates(5)
    cells = [Cell("LCS (5)", column, specs, "", (5, 5)) for column in ("one", "two")]
    experiment = Experiment("Title", "About.", cells, PLAN, scoring=Scoring(measure="legal", compared=[("one", "two")]))
    page = markdown_page("x", "small", "lengthwise reproduce x", experiment, outcomes, TODAY)
    _, _, section = page.partition("## Shallow baselines")
    assert "| LCS (5) | one | two | +0.00 | +0.00 to +0.00 | - |" in section
    assert max(rates.values()) < 0.95
    half, low = mean_interval([0.97, 0.98, 0.99])[1] - 0.98, 0.98 - wilson_interval(980, 1_000)[0]
    lowest = percent(0.98 - math.hypot(half, low)).replace(" ", "\xa0")
    assert f"| LCS (5) | one | 98.00\xa0% | {lowest} to 100\xa0% |" in section
    assert section.count("| yes |") == 2
    results = [outcome.result for outcome in outcomes if outcome.result]
    (sentence,) = shallow_baseline_sentences(results)
    name = max(rates, key=lambda name: rates[name])
    assert sentence == (
        f"longest-common-subsequence max_length=5 alphabet=4, length 5: {percent(rates[name])}, by {name}"
    )
    print_results(console := Console(record=True, width=100, file=io.StringIO()), results, "Title")
    assert f"  best shallow baseline: {sentence}" in console.export_text()


def test_runs_of_different_tasks_stand_next_to_the_mean_of_their_shallow_baselines() -> None:
    """Nothing is said of all of them by the baseline of the first."""
    tasks = [{"alphabet": alphabet, "max_length": 5} for alphabet in (2, 6)]
    outcomes = []
    for fields in tasks:
        settings = {"task": fields, "train": {"min_length": 5, "max_length": 5}}
        spec = make_spec("longest-common-subsequence", "looped-transformer", settings)
        point = LengthPoint(length=5, num_strings=1_000, num_correct=1_000, baseline=0.6)
        made_up = synthetic_run().result
        assert made_up is not None
        dense = LengthCurve(protocol="independent", points=(point,))
        changes = {"run_id": spec.id, "spec": spec.to_json(), "dense": dense}
        outcomes.append(Outcome(spec, made_up.model_copy(update=changes)))
    specs = tuple(outcome.spec for outcome in outcomes)
    bests = [best_shallow_baseline(spec.task, [5]) for spec in specs]
    assert bests[0] is not None
    assert bests[1] is not None
    assert abs(bests[0].accuracy - bests[1].accuracy) > 0.01
    mean = percent((bests[0].accuracy + bests[1].accuracy) / 2).replace(" ", "\xa0")
    experiment = Experiment(
        "Title", "About.", [Cell("LCS (5)", "one", specs, "", (5, 5))], PLAN, scoring=Scoring(measure="legal")
    )
    page = markdown_page("x", "small", "lengthwise reproduce x", experiment, outcomes, TODAY)
    _, _, section = page.partition("## Shallow baselines")
    low = percent(wilson_interval(2_000, 2_000)[0]).replace(" ", "\xa0")
    assert f"| LCS (5) | one | 100\xa0% | {low} to 100\xa0% | {mean} |" in section


def test_only_tasks_of_this_process_have_shallow_baselines() -> None:
    parity = synthetic_run().result
    assert parity is not None
    elsewhere = parity.model_copy(update={"spec": {**parity.spec, "task": {"name": "somebody's"}}})
    assert shallow_baseline_sentences([parity, elsewhere]) == []


def test_a_shallow_baseline_is_that_of_the_last_length_that_counts() -> None:
    """At the lengths that do not count a constant answer is right, which says nothing of those that do."""
    settings = {"task": {"max_length": 5, "alphabet": 4}, "train": {"min_length": 5, "max_length": 5}}
    spec = make_spec("longest-common-subsequence", "looped-transformer", settings)
    made_up = synthetic_run().result
    assert made_up is not None
    points = [
        LengthPoint(length=n, num_strings=9, num_correct=9, baseline=0.5, balanced=n in balanced)
        for balanced in ((4,), ())
        for n in (3, 4, 5)
    ]
    results = [
        made_up.model_copy(
            update={"spec": spec.to_json(), "dense": LengthCurve(protocol="independent", points=tuple(curve))}
        )
        for curve in (points[:3], points[3:])
    ]
    (sentence,) = shallow_baseline_sentences(results)
    assert ", length 4: " in sentence


@pytest.mark.parametrize(("apart", "better"), [(0.4, "R=2"), (-0.4, "R=1"), (0.04, "-")])
def test_columns_are_compared_seed_by_seed(apart: float, better: str) -> None:
    """Errors that differ by `apart`, give or take 0.02, in two seeds; a third one is in the first column only."""
    columns = {
        "R=1": [tree_outcome(0, (1.2, 0.52 + apart)), tree_outcome(1, (1.2, 0.68 + apart)), tree_outcome(2, (1.2, 4))],
        "R=2": [tree_outcome(0, (1.2, 0.5), num_loops=2), tree_outcome(1, (1.2, 0.7), num_loops=2)],
    }
    cells = [Cell("trees", name, tuple(outcome.spec for outcome in outcomes)) for name, outcomes in columns.items()]
    compared = [("R=1", "R=2"), ("R=1", "a column that is in other rows")]
    experiment = Experiment("Title", "About.", cells, TREE_PLAN, scoring=Scoring(measure="error", compared=compared))
    page = markdown_page(
        "x",
        "small",
        "lengthwise reproduce x",
        experiment,
        [outcome for outcomes in columns.values() for outcome in outcomes],
        TODAY,
    )
    # Divided by 4 dimensions; Student's half-width of +-0.005 over two seeds is 12.706 * 0.005.
    low, high = apart / 4 - 0.06353, apart / 4 + 0.06353
    assert f"| trees | R=1 | R=2 | {apart / 4:+.2e} | {low:+.2e} to {high:+.2e} | {better} |" in page
    assert page.count("| trees | R=1 | R=2 |") == 1


def test_columns_with_several_runs_of_a_seed_are_not_compared() -> None:
    """Of six runs over seeds and rates two gaps were left, of the rate that stood last."""
    outcomes = [tree_outcome(seed, (1.2, 0.5), num_loops=loops) for loops in (1, 2) for seed in (0, 1)]
    specs = tuple(outcome.spec for outcome in outcomes)
    cells = [Cell("trees", "R=1, 2", specs), Cell("trees", "R=2", specs[2:])]
    experiment = Experiment(
        "Title", "About.", cells, TREE_PLAN, scoring=Scoring(measure="error", compared=[("R=2", "R=1, 2")])
    )
    sentence = r"^compared: expected one run of each seed in row 'trees', column 'R=1, 2', got 2 of seed 0; give each "
    with pytest.raises(ValueError, match=sentence):
        compared_columns(experiment, outcomes)


def test_an_interval_over_runs_is_students() -> None:
    quantile = math.tan(0.475 * math.pi)  # of one degree of freedom, Cauchy's
    assert mean_interval([0.25, 0.75]) == pytest.approx((0.5 - quantile * 0.25, 0.5 + quantile * 0.25))
    assert all(math.isnan(bound) for bound in mean_interval([0.5]))
    low, high = mean_interval([0.0, 1.0] * 10_000)  # of many, the normal distribution's
    assert (low, high) == pytest.approx((0.5 - 1.96 * 0.5 / 20_000**0.5, 0.5 + 1.96 * 0.5 / 20_000**0.5), rel=1e-4)


def test_an_interval_of_accuracies_is_students_with_many_strings_and_wilsons_with_equal_nets() -> None:
    accuracies = [0.25, 0.5, 0.75]
    assert accuracy_interval(accuracies, 10**12) == pytest.approx((0.0, 1.0))
    assert accuracy_interval([0.49, 0.51, 0.5], 10**12) == pytest.approx(mean_interval([0.49, 0.51, 0.5]))
    low, high = wilson_interval(50, 100)
    assert accuracy_interval([0.5, 0.5], 100) == pytest.approx((low, high))
    for right in (0, 1, 99, 100):  # where Wilson's interval is not centered on the mean
        assert accuracy_interval([right / 100] * 3, 100) == pytest.approx(wilson_interval(right, 100))
    assert all(math.isnan(limit) for limit in accuracy_interval([0.5], 100))


def test_p_values_are_students_and_corrected_by_holm() -> None:
    """Of two values Student's distribution is Cauchy's: p = 1 - 2 atan(t) / pi."""
    assert difference_from_zero([1.0, 3.0]) == pytest.approx(1 - 2 * math.atan(2.0) / math.pi)
    assert difference_from_zero([-1.0, -3.0]) == difference_from_zero([1.0, 3.0])
    assert difference_from_zero([0.0, 0.0]) == 1.0
    assert math.isnan(difference_from_zero([2.0, 2.0])), "no spread says nothing of other seeds"
    assert math.isnan(difference_from_zero([0.4 - 0.3, 0.3 - 0.2])), "gaps that differ by rounding have no spread"
    assert math.isnan(difference_from_zero([1.0]))
    assert difference_from_zero([1e-17, 2e-17, 1.5e-17]) == 1.0, "rounding is no difference"
    low, _ = mean_interval(values := [0.2, 0.5, 0.3])
    assert difference_from_zero([value - low for value in values]) == pytest.approx(0.05)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize("other", [math.nan, math.inf])
def test_of_values_that_are_not_numbers_nothing_is_known(other: float) -> None:
    for values in ([other, other], [other, 0.5], [0.5, other, 0.25]):
        assert all(map(math.isnan, (*mean_interval(values), *accuracy_interval(values, 10))))
        assert math.isnan(difference_from_zero(values))
        assert not are_equal(values)


def test_gaps_that_are_rounding_alone_speak_for_no_column() -> None:
    """Five gaps of one or two units in the last place would have p = 0.003."""
    unit = 2.0**-53
    (difference,) = paired_differences([("row", "one", "two", [unit, 2 * unit, unit, unit, 2 * unit])])
    assert (difference.mean, difference.low, difference.high, difference.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_page_says_how_many_differences_are_decided_after_the_correction() -> None:
    """Two differences of two seeds with p = 0.03, each decided alone, neither together."""
    gap = 0.04 / 4
    offsets = (gap * (1 + 1 / 20), gap * (1 - 1 / 20))
    columns = {
        f"R={loops}": [tree_outcome(seed, (1.2, 4 * (0.1 + rank * offsets[seed])), num_loops=loops) for seed in (0, 1)]
        for rank, loops in enumerate((1, 2, 3))
    }
    cells = [Cell("trees", name, tuple(outcome.spec for outcome in outcomes)) for name, outcomes in columns.items()]
    compared = [("R=2", "R=1"), ("R=3", "R=2")]
    experiment = Experiment("Title", "About.", cells, TREE_PLAN, scoring=Scoring(measure="error", compared=compared))
    outcomes = [outcome for outcomes in columns.values() for outcome in outcomes]
    p = 1 - 2 * math.atan(20.0) / math.pi
    assert 0.025 < p < 0.05
    lines = compared_columns(experiment, outcomes)
    assert [line.p_value for line in lines] == pytest.approx([p, p])
    assert [line.corrected for line in lines] == pytest.approx([2 * p, 2 * p])
    page = markdown_page("x", "small", "lengthwise reproduce x", experiment, outcomes, TODAY)
    assert (
        "With 2 seeds, 2 of 2 differences would be statistically significant if taken alone, and 0 after the correction"
        in page
    )
