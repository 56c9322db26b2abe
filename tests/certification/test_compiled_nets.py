"""Compiled nets of every construction are proved on the seventeen regular tasks."""

import pytest

from lengthwise.certification.certify import certify
from lengthwise.constructions import CONSTRUCTIONS, construct
from lengthwise.studies.languages import LANGUAGES
from lengthwise.tasks import make_task

TOO_LARGE = {("regular-gpt", "Modular Arithmetic")}
"""Refused by its construction."""
LARGE = {
    ("rnn", "Modular Arithmetic"),
    ("block-linear-rnn", "Modular Arithmetic"),
    ("rnn", "D_12"),
    ("regular-gpt", "D_12"),  # 339,074 merges of 338 numbers by 2,197 hidden units
}
TASKS = {language.row: make_task(language.task, **language.fields) for language in LANGUAGES}
PAIRS = [(target, row) for target in CONSTRUCTIONS for row in TASKS if (target, row) not in TOO_LARGE]


def test_there_are_seventeen_tasks() -> None:
    assert len(TASKS) == 17
    assert len(PAIRS) == 3 * 17 - len(TOO_LARGE)


@pytest.mark.sampled
@pytest.mark.usefixtures("fewer_strings")
@pytest.mark.parametrize(
    ("target", "row"), [pytest.param(*pair, marks=pytest.mark.slow) if pair in LARGE else pair for pair in PAIRS]
)
def test_is_proved(target: str, row: str) -> None:
    certificate = certify(construct(target, TASKS[row]).model, TASKS[row])
    assert certificate.level == "proved", certificate.reason


@pytest.mark.slow
@pytest.mark.parametrize(("target", "row"), PAIRS)
def test_is_proved_with_all_strings(target: str, row: str) -> None:
    certificate = certify(construct(target, TASKS[row]).model, TASKS[row])
    assert certificate.level == "proved", certificate.reason
    assert [tested.length for tested in certificate.tested] == pytest.approx([40, 500, 10_000], abs=1)
