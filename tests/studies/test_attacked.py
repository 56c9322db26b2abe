"""The experiment that attacks transformers: which nets it trains, and what its page shows."""

from pathlib import Path

from lengthwise.certification.attacks.attack import Attack
from lengthwise.runs.records import read_records
from lengthwise.studies.leaderboard.experiments.attacked import Attacked, AttackedNet, attacked
from lengthwise.studies.leaderboard.experiments.positions import positions
from lengthwise.studies.leaderboard.pages.attacked import attacked_page

RECORDS = Path(__file__).parents[2] / "docs/results/records/transformers-positions.jsonl.gz"


def test_the_nets_are_those_without_an_error_in_the_records() -> None:
    right = {
        result.run_id for result in read_records(RECORDS) if all(point.accuracy == 1 for point in result.dense.points)
    }
    known = {spec.id for spec in positions("small").specs}
    assert {spec.id for spec in attacked("small").specs} == right & known
    assert len(right) == 54


def test_the_page_counts_wrong_nets_by_family_and_writes_powers() -> None:
    costs = {"max_length": 150, "num_answers": 10, "num_symbols": 20, "seconds": 4.0, "families": ()}
    right = Attack(**costs)
    wrong = Attack(
        **costs,
        string=("a",) * 112 + ("b",),
        family="runs x^n w",
        expected="1",
        got="0",
        margin=-0.12,
        found_length=113,
        found_margin=-0.12,
    )
    nets = (
        AttackedNet("Even Pairs", "fire", 1, wrong, None, 113, ""),
        AttackedNet("Even Pairs", "rotary", 0, right, None, 2_044, "the model errs"),
        AttackedNet("Even Pairs", "none", 0, right, 12, None, "bounds end there"),
        AttackedNet("Even Pairs", "learned", 2, right, None, None, "the encoding has no bounds"),
    )
    page = attacked_page(Attacked(nets, 5.0), "stem")
    text = "\n".join(page.sections)
    assert (
        page.headline
        == "2 of 4 transformers that made no error on random strings give a wrong answer to another string."
    )
    assert "`a^112 b`" in text
    assert "| runs x^n w | 1 of 4 |" in text
    assert "| Even Pairs | 4 | 2 | 1 | 113-113 | 4.0 |" in text
    assert "| Even Pairs | none | 0 | 12 | bounds end there |" in text
    assert "| Even Pairs | learned | 2 | - | the encoding has no bounds |" in text
    assert "| Even Pairs | rotary | 0 | - | - | - | - | 4.0 | 2,044 |" in text
    assert "| Even Pairs | rotary | 0 | - | the model errs |" not in text
