"""The seeds, lengths and commits next to the numbers of an experiment."""

from synthetic_runs import PLAN, synthetic_run

from lengthwise.experiment import Cell, Experiment, Scoring
from lengthwise.report.tables.sources import commits_text, seeds_text, source_lines
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import make_spec


def result(seed: int, commit: str = "a" * 40, begun: str = "a" * 40) -> RunResult:
    versions = {"commit": commit, "begun at commit": begun}
    return synthetic_run(seed=seed).result.model_copy(update={"versions": versions})


def test_seeds_are_sorted_and_successive_seeds_form_a_range() -> None:
    cases = {(0,): "0", (1, 0): "0, 1", (2, 1, 0): "0-2", (7, 0, 1, 2, 5): "0-2, 5, 7", (3, 3): "3", (): "-"}
    assert {seeds: seeds_text([result(seed) for seed in seeds]) for seeds in cases} == cases


def test_commits_are_short_and_show_uncommitted_changes() -> None:
    changed = f"{'b' * 40} with changes"
    assert commits_text([result(0, changed), result(1), result(2, changed)]) == "aaaaaaaa, bbbbbbbb+"
    assert commits_text([result(0, "unknown (not run from a checkout)", "")]) == "unknown"


def test_lines_name_the_lengths_that_were_measured_and_the_protocol() -> None:
    outcomes = [Outcome(make_spec("parity", "regular-gpt", {}, seed=seed), result(seed)) for seed in (0, 1)]
    specs = tuple(outcome.spec for outcome in outcomes)
    cells = [Cell("Parity", "C=2", specs), Cell("Parity", "C=3", specs, window=(41, 500))]
    experiment = Experiment("T", "A.", cells, PLAN)
    seeds, lengths, commits, protocol, *_ = source_lines(experiment, outcomes)
    assert (seeds, lengths, commits) == ("seeds: 0, 1", "lengths scored: 41-60", "commits: aaaaaaaa")
    assert protocol.startswith("dense range: ")
    of_errors = experiment._replace(scoring=Scoring(measure="error"))
    assert not any(line.startswith("lengths") for line in source_lines(of_errors, outcomes))
    assert source_lines(experiment, [outcome._replace(result=None) for outcome in outcomes]) == []
