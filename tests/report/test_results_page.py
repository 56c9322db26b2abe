"""The page of an experiment, from made-up results."""

from datetime import date

from synthetic_runs import PLAN, synthetic_run

from lengthwise.experiments import Experiment
from lengthwise.experiments.base import Cell
from lengthwise.report.results_page import cell_lines, markdown_page
from lengthwise.runs.pool import Outcome
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
    header, (line,) = cell_lines(experiment_with(outcomes), outcomes)
    said = dict(zip(header, line, strict=True))
    assert said["mean, 41-60"] == "99.16 %"  # one of 3 x 20 points is 50 %
    assert said["best seed"] == "100 %"
    assert said["lowest"] == "50.00 %"
    assert said["solved"] == "2 of 3"
    assert said["1,000"] == said["structured"] == "100 %"
    assert said["chance"] == "50.00 %"
    assert said["paper"] == "100.0 / 88.7"


def test_long_lengths_show_the_lowest_seed() -> None:
    outcomes = [outcome(0), outcome(1, num_correct=lambda length, n: n // 4 if length == 1_000 else n)]
    header, (line,) = cell_lines(experiment_with(outcomes), outcomes)
    assert dict(zip(header, line, strict=True))["1,000"] == "25.00 %"


def test_failed_runs_stay_visible_with_their_reason() -> None:
    done, failed = outcome(0), Outcome(make_spec("parity", "regular-gpt", {}, seed=1), None, "Diverged: at step 7")
    experiment = experiment_with([done, failed])
    page = markdown_page("name", "small", experiment, [done, failed], date(2026, 11, 21))
    assert "| Parity | C=2 | 1 of 2 | 100 % |" in page
    assert f"- {failed.spec.id}: Diverged: at step 7" in page
    assert "- date: 2026-11-21" in page


def test_a_cell_without_any_run_is_empty_not_missing() -> None:
    failed = Outcome(make_spec("parity", "regular-gpt", {}), None, "ValueError: no")
    header, (line,) = cell_lines(experiment_with([failed]), [failed])
    assert len(line) == len(header)
    assert line[:4] == ("Parity", "C=2", "0 of 1", "-")
    assert markdown_page("name", "small", experiment_with([failed]), [failed], date(2026, 1, 1))
