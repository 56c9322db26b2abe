import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.conventions import PAD
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.levenshtein_distance import (
    CELLS,
    levenshtein_distance,
    levenshtein_distance_by_definition,
)
from lengthwise.tasks.algorithmic.longest_common_subsequence import CELLS as LCS_CELLS
from lengthwise.tasks.algorithmic.string_pairs import MAX_LONGER_BY, MAX_SHORTER_BY, draw_pairs
from lengthwise.tasks.algorithmic.two_strings import read


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("length", [2, 3, 7, 30])
def test_distances_are_those_of_the_definition(length: int) -> None:
    first, second = draw_pairs(100, length, 4, seeded(length))
    assert torch.equal(levenshtein_distance(first, second), levenshtein_distance_by_definition(first, second))
    assert torch.equal(levenshtein_distance(second, first), levenshtein_distance(first, second))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=9), st.integers(0, 8), st.integers(0, 2))
def test_one_edit_costs_one(letters: list[int], position: int, letter: int) -> None:
    position %= len(letters)
    string = torch.tensor([letters])
    inserted = torch.tensor([[*letters[:position], letter, *letters[position:]]])
    replaced = string.clone()
    replaced[0, position] = (letters[position] + 1) % 3
    assert levenshtein_distance(string, string).tolist() == [0]
    assert levenshtein_distance(string, inserted).tolist() == [1]
    assert levenshtein_distance(string, replaced).tolist() == [1]


def test_an_empty_string_is_rejected() -> None:
    with pytest.raises(ValueError, match="second: expected at least 1 letter in every string, got no letter in row 0"):
        levenshtein_distance(torch.tensor([[1]]), torch.tensor([[PAD]]))


@pytest.mark.parametrize("length", [2, 3, 5, 12])
def test_sizes_of_the_second_string_are_all_those_near_that_of_the_first(length: int) -> None:
    inputs = make_task("levenshtein-distance", alphabet=4).sample(2_000, length, seeded(0)).inputs
    first, second = ((string != PAD).sum(1) for string in read(inputs))
    assert (first == length).all()
    assert second.unique().tolist() == list(range(max(1, length - MAX_SHORTER_BY), length + MAX_LONGER_BY + 1))


def test_the_rule_is_the_minimum_that_defines_the_distance() -> None:
    """Of a cell whose upper left entry is 0; the table in the task was written down without it."""
    assert len(CELLS) == 18
    for (across, down, is_equal), made in CELLS.items():
        entry = min(across + 1, down + 1, 0 if is_equal else 1)
        assert made == (entry - down, entry - across)


def test_the_rule_of_common_subsequences_is_the_maximum_that_defines_them() -> None:
    assert len(LCS_CELLS) == 8
    for (across, down, is_equal), made in LCS_CELLS.items():
        entry = 1 if is_equal else max(across, down)
        assert made == (entry - down, entry - across)


def test_the_second_string_may_be_shorter_by_up_to_a_number_of_letters() -> None:
    task = make_task("longest-common-subsequence", alphabet=3, max_length=9, max_shorter=3)
    for length in (1, 2, 9):
        inputs, targets = task.sample(500, length, seeded(0))
        first, second = ((string != PAD).sum(1) for string in read(inputs))
        assert (first == length).all()
        assert second.unique().tolist() == list(range(max(1, length - 3), length + 1))
        assert torch.equal(task.solve(inputs), targets)
    assert "max_shorter" not in make_task("longest-common-subsequence").model_dump()
