"""The page of an experiment, from made-up results."""

from datetime import date
from pathlib import Path

import pytest
from synthetic_runs import PLAN, synthetic_run

from lengthwise.certification.certificate import Certificate
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.experiment import Cell, Experiment, Scoring
from lengthwise.report.pages.results import markdown_page, write_page
from lengthwise.report.tables.experiment import cell_table, detail_table, main_table
from lengthwise.report.tables.levels import LEVELS
from lengthwise.runs.journal import Probe
from lengthwise.runs.pools.outcome import NOT_RUN, Outcome
from lengthwise.runs.spec import make_spec


def experiment_with(outcomes: list[Outcome]) -> Experiment:
    specs = tuple(outcome.spec for outcome in outcomes)
    return Experiment("Title", "About.", [Cell("Parity", "C=2", specs, "100.0 / 88.7")], PLAN)


def outcome(seed: int, **numbers) -> Outcome:
    return Outcome(make_spec("parity", "regular-gpt", {}, seed=seed), synthetic_run(seed=seed, **numbers).result)


def half_right_at_50(length: int, num_strings: int) -> int:
    return num_strings // 2 if length == 50 else num_strings


def test_a_cell_shows_mean_extremes_and_how_many_seeds_are_solved() -> None:
    outcomes = [outcome(0), outcome(1, num_correct=half_right_at_50), outcome(2)]
    header, (line,), _ = cell_table(experiment_with(outcomes), outcomes)
    cells = dict(zip(header, line, strict=True))
    assert cells["mean"] == "99.16 %"  # one of 3 x 20 points is 50 %
    assert cells["best run"] == "100 %"
    assert cells["lowest"] == "50.00 %"
    assert cells["lengths"] == "41-60"
    assert cells["solved"] == "2 of 3"
    assert (cells["at step"], cells["after CPU s"]) == ("1,000", "3")
    assert cells["1,000"] == "100 %"
    assert cells["structured"] == "100 % (50.00 %)"
    assert cells["chance"] == "50.00 %"
    assert cells["paper"] == "100.0 / 88.7"


def test_a_page_says_what_came_out_once_all_runs_are_finished() -> None:
    outcomes = [outcome(0), outcome(1)]
    experiment = experiment_with(outcomes)._replace(headline="All is right.\nTwice.", about="About.\nMore.")
    pending, lost = (outcomes[1]._replace(result=None, reason=reason) for reason in (NOT_RUN, "Diverged: NaN"))
    for last, is_said in ((outcomes[1], True), (lost, True), (pending, False)):
        page = markdown_page("a/b", "small", "command", experiment, [outcomes[0], last], date(2026, 1, 2))
        assert page.startswith(
            "# Title\n\nAll is right.\n\n- Twice.\n- About.\n- More.\n\n|"
            if is_said
            else "# Title\n\nAbout.\n\n- More.\n\n|"
        )


def test_a_smoke_run_has_no_headline() -> None:
    outcomes = [outcome(0)]
    experiment = experiment_with(outcomes)._replace(headline="{cells[of][scale][small]}", headline_scale="smoke")
    assert "\n\n- About.\n\n" in markdown_page("a/b", "smoke", "command", experiment, outcomes, date(2026, 1, 2))


def test_a_study_of_runs_without_a_result_is_left_out_in_a_sentence(tmp_path: Path) -> None:
    outcomes = [outcome(0), outcome(1)._replace(result=None, reason="Diverged: NaN")]
    experiment = experiment_with(outcomes)._replace(study=lambda runs: pytest.fail("it needs all runs"))
    write_page("looped/figure-5", "smoke", "command", experiment, outcomes, tmp_path, tmp_path / "page.md")
    assert "The results and pictures that need all runs of this experiment are left out until each" in (
        tmp_path / "page.md"
    ).read_text(encoding="utf-8")


def test_chance_is_a_mean_over_runs() -> None:
    first, second = outcome(0), outcome(1)
    points = tuple(point.model_copy(update={"baseline": 0.9}) for point in second.result.dense.points)
    easier = second.result.dense.model_copy(update={"points": points})
    outcomes = [first, second._replace(result=second.result.model_copy(update={"dense": easier}))]
    header, (line,), _ = cell_table(experiment_with(outcomes), outcomes)
    assert dict(zip(header, line, strict=True))["chance"] == "70.00 %"


def test_an_experiment_may_say_what_its_first_table_shows() -> None:
    outcomes = [outcome(0), outcome(1)]
    experiment = experiment_with(outcomes)._replace(main=("row", "steps", "CPU s", "paper"))
    assert main_table(experiment, outcomes).header == ("row", "steps", "CPU s", "paper")
    details = detail_table(experiment, outcomes)
    assert "mean" in {*details.header, *dict(details.shared)}


def test_a_solved_run_whose_last_probe_erred_has_no_step() -> None:
    one = outcome(0)
    probes = (*one.result.probes, Probe(1500, 0.9, 4.5))
    one = one._replace(result=one.result.model_copy(update={"probes": probes}))
    header, (line,), _ = cell_table(experiment_with([one]), [one])
    cells = dict(zip(header, line, strict=True))
    assert (cells["solved"], cells["at step"]) == ("1 of 1", "-")


def test_a_window_scores_its_lengths_only() -> None:
    one = outcome(0, num_correct=half_right_at_50)
    cells = [Cell(str(window), "C=2", (one.spec,), "", window) for window in ((41, 49), (50, 50))]
    header, lines, _ = cell_table(Experiment("Title", "About.", cells, PLAN), [one])
    assert [dict(zip(header, line, strict=True))["mean"] for line in lines] == ["100 %", "50.00 %"]


def test_the_best_test_stands_next_to_what_guesses_would_give() -> None:
    tests = {0: (0.5, 0.75), 1: (1.0, 0.25)}
    outcomes = []
    for seed, accuracies in tests.items():
        probes = tuple(Probe(1_000 * n, 0.5, 1.0, fresh) for n, fresh in enumerate(accuracies, 1))
        one = outcome(seed)
        outcomes.append(one._replace(result=one.result.model_copy(update={"probes": probes})))
    experiment = experiment_with(outcomes)._replace(scoring=Scoring(best_test=True))
    header, (line,), _ = cell_table(experiment, outcomes)
    cells = dict(zip(header, line, strict=True))
    assert cells["best test"] == "87.50 %"
    assert 50 < float(cells["guesses"].removesuffix(" %")) < 55  # the better of two tests of 128 guesses
    page = markdown_page(
        "linear-rnn/table-2", "small", "lengthwise reproduce linear-rnn/table-2", experiment, outcomes, date(2026, 1, 2)
    )
    assert "selects on test data" in page
    header, (line,), _ = cell_table(experiment, [o._replace(result=None, reason="failed") for o in outcomes])
    assert len(header) == len(line)
    header, (line,), _ = cell_table(experiment_with(outcomes), outcomes)
    assert "best test" not in header


def test_all_lengths_count_where_the_experiment_says_so() -> None:
    spec = make_spec("bounded-dyck", "regular-gpt", {})
    points = tuple(
        LengthPoint(
            length=n, num_strings=4, num_correct=4 if n % 2 else 2, baseline=1.0 if n % 2 else 0.5, balanced=n % 2 == 0
        )
        for n in range(41, 61)
    )
    dense = LengthCurve(protocol="independent", points=points)
    done = Outcome(spec, synthetic_run().result.model_copy(update={"run_id": spec.id, "dense": dense}))
    cells = {}
    for scored in ("balanced", "legal"):
        header, (line,), _ = cell_table(
            Experiment("T", "A.", [Cell("D", "C", (spec,))], PLAN, scoring=Scoring(measure=scored)), [done]
        )
        cells[scored] = dict(zip(header, line, strict=True))
    assert (cells["balanced"]["mean"], cells["balanced"]["chance"]) == ("50.00 %", "50.00 %")
    assert (cells["legal"]["mean"], cells["legal"]["chance"]) == ("75.00 %", "75.00 %")


def test_long_lengths_show_the_lowest_seed() -> None:
    outcomes = [outcome(0), outcome(1, num_correct=lambda length, n: n // 4 if length == 1_000 else n)]
    header, (line,), _ = cell_table(experiment_with(outcomes), outcomes)
    assert dict(zip(header, line, strict=True))["1,000"] == "25.00 %"


def test_failed_runs_stay_visible_with_their_reason() -> None:
    done, failed = outcome(0), Outcome(make_spec("parity", "regular-gpt", {}, seed=1), None, "Diverged: (a*b)*")
    experiment = experiment_with([done, failed])
    page = markdown_page("name", "small", "lengthwise reproduce name", experiment, [done, failed], date(2026, 11, 21))
    assert "| Parity | 100\xa0% |" in page
    assert "1 of 2 runs" in page
    assert rf"- Parity, C=2 ({failed.spec.id}): Diverged: (a\*b)\*" in page
    assert "- page written: 2026-11-21" in page


def test_a_cell_without_any_run_is_empty_not_missing() -> None:
    failed = Outcome(make_spec("parity", "regular-gpt", {}), None, "ValueError: no")
    header, (line,), _ = cell_table(experiment_with([failed]), [failed])
    assert len(line) == len(header)
    assert line[:5] == ("Parity", "C=2", "0 of 1", "41-60", "-")
    assert markdown_page(
        "name", "small", "lengthwise reproduce name", experiment_with([failed]), [failed], date(2026, 1, 1)
    )


def test_the_table_of_a_page_has_eight_columns_and_the_folded_one_all_others() -> None:
    outcomes = [outcome(0), outcome(1)]
    for best_test in (False, True):
        experiment = experiment_with(outcomes)._replace(scoring=Scoring(best_test=best_test))
        experiment = experiment._replace(cells=[experiment.cells[0], experiment.cells[0]._replace(column="C=3")])
        table, details = main_table(experiment, outcomes), detail_table(experiment, outcomes)
        assert len(table.header) <= 8
        assert table.header[:3] == ("row", "column", "mean")
        assert {"chance", "paper"} <= set(table.header)
        columns = {*table.header, *details.header, *dict(details.shared)}
        assert columns == set(cell_table(experiment, outcomes).without_empty().header)
        page = markdown_page("name", "small", "lengthwise reproduce name", experiment, outcomes, date(2026, 1, 1))
        assert page.index("| row | column | mean |") < page.index("```console") < page.index("<details")


def certified(seed: int, level: str, reason: str) -> Outcome:
    certificate = Certificate.model_construct(level=level, reason=reason)
    one = outcome(seed)
    return one._replace(result=one.result.model_copy(update={"certificate": certificate}))


def test_reasons_stand_once_with_their_cells_and_levels_are_explained() -> None:
    outcomes = [
        certified(0, "proved", ""),
        certified(1, "extracted", "merges: expected at most 700, got 1,080"),
        certified(2, "extracted", "merges: expected at most 524, got 812"),
        certified(3, "tested", "no machine was found of (a*b)*"),
    ]
    cells = [Cell(name, "C=2", (done.spec,), "") for name, done in zip("ABCD", outcomes, strict=True)]
    plan = PLAN.model_copy(update={"certificate": True})
    page = markdown_page(
        "name", "small", "lengthwise reproduce name", Experiment("T", "A.", cells, plan), outcomes, date(2026, 1, 1)
    )
    section = page.partition("## Certificates")[2]
    assert "| merges: expected at most 524-700, got 812-1,080 | B (1); C (1) |" in section
    assert r"| no machine was found of (a\*b)\* | D (1) |" in section
    assert "| row | proved | extracted | tested |" in section
    assert "| B |  | 1 |  |" in section
    for level in ("proved", "extracted", "tested"):
        assert f"- *{level}*: {LEVELS[level]}\n" in section
    assert "*refuted*" not in section
