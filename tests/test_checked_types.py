"""Wrong shapes are found in a function's first calls, in every test again; and after many calls time is saved."""

import pytest
import torch
from checked_types import NUM_CALLS, begin
from jaxtyping import TypeCheckError

from lengthwise.ops.answers import answers_of
from lengthwise.ops.intervals import Intervals

LOGITS = torch.zeros(3, 2)


@pytest.fixture(autouse=True)
def shapes_are_checked(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--jaxtyping-packages"):
        pytest.skip("shapes are checked by `make quick` and `make test-cpus`")


def test_wrong_arguments_are_found_until_a_function_was_called_often() -> None:
    for _ in range(NUM_CALLS - 1):
        answers_of(LOGITS)
    with pytest.raises(TypeCheckError, match="answers_of"):
        answers_of(LOGITS.long())
    answers_of(LOGITS)
    assert answers_of(LOGITS.long()).tolist() == [0, 0, 0]
    with pytest.raises(TypeCheckError, match="around"):
        Intervals.around(0.0, 0.5)  # its calls are counted apart


def test_they_are_found_again_in_the_next_test() -> None:
    with pytest.raises(TypeCheckError, match="answers_of"):
        answers_of(LOGITS.long())
    begin(is_checked=False)
    assert answers_of(LOGITS.long()).tolist() == [0, 0, 0]


def test_methods_and_properties_are_left_alone_too() -> None:
    enclosure = Intervals.around(torch.zeros(2), 0.5)
    for _ in range(2 * NUM_CALLS):
        assert enclosure.radius.shape == (2,)
        Intervals.around(torch.zeros(2), 0.5)
    assert Intervals.around.__func__.__wrapped__.__no_type_check__
    assert Intervals.radius.fget.__wrapped__.__no_type_check__


def test_results_are_compared_with_the_sizes_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers_of(LOGITS).shape == (3,)
    monkeypatch.setattr(torch, "where", lambda *_: torch.zeros(4, dtype=torch.int64))
    with pytest.raises(TypeCheckError, match="return value"):
        answers_of(LOGITS)
