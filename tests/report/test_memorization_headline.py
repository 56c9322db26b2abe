"""What the page on standard RNNs says first is what its tables say."""

from pathlib import Path

from lengthwise.experiment import EXPERIMENTS
from lengthwise.studies.claims.claim import TableNumber
from lengthwise.studies.claims.numbers import number_in
from lengthwise.studies.memorization.experiments.standard import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "results" / "rnn-memorization-standard.md"


def counts(kind: str, where: str, column: str) -> str:
    return number_in(PAGE.read_text(encoding="utf-8"), TableNumber(PAGE.name, column, (kind, where)))


def test_the_headline_has_the_numbers_of_the_page() -> None:
    headline = EXPERIMENTS["rnn-memorization/standard"]("small").headline
    linear, linear_fed, tanh, tanh_fed = KINDS
    assert {counts(kind, "below d_min", "right") for kind in (linear, tanh)} == {"0 of 64"}
    (right,) = {counts(kind, "at d_min", "right") for kind in (linear, tanh)}
    assert f"at it {right} are" in headline
    lasting = {kind: counts(kind, "at d_min", "lasting").partition(" ")[0] for kind in (linear, tanh)}
    assert f"{lasting[tanh]} of {right.partition(' ')[0]} are right for a hundred times as long" in headline
    assert f"of linear ones {lasting[linear]}." in headline
    below = [counts(kind, "below d_min", "right") for kind in (linear_fed, tanh_fed)]
    assert f"{below[0].partition(' ')[0]} and {below[1]} do with less than d_min" in headline
