import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from task_strings import seeded

from lengthwise.conventions import NUM_SPECIAL
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.knapsack import best_value, best_value_by_definition


def rows(count: int, largest: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(st.integers(1, largest), min_size=count, max_size=count), min_size=3, max_size=3)


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(rows(n, 20), rows(n, 10))),
    st.lists(st.integers(1, 60), min_size=3, max_size=3),
)
def test_the_table_finds_the_best_of_all_choices(
    items: tuple[list[list[int]], list[list[int]]], capacities: list[int]
) -> None:
    given = *(torch.tensor(part) for part in items), torch.tensor(capacities)
    assert torch.equal(best_value(*given), best_value_by_definition(*given))


def test_the_papers_example() -> None:
    weights = [9, 10, 13, 1, 17, 5, 12, 3, 12, 2, 4, 8, 11, 8, 2, 10, 8, 17, 10, 16]
    values = [8, 3, 8, 7, 9, 6, 7, 2, 8, 2, 3, 5, 4, 2, 5, 7, 10, 8, 6, 7]
    for first, second, answer in ((weights, values, 52), (values, weights, 104)):
        assert best_value(torch.tensor([first]), torch.tensor([second]), torch.tensor([48])).tolist() == [answer]


def test_samples_say_what_was_drawn() -> None:
    inputs, targets = make_task("knapsack").sample(4_000, 20, seeded(0))
    weights, values, capacities = inputs[:, :20], inputs[:, 21:41], inputs[:, 42]
    for part, largest in ((weights, 20), (values, 10), (capacities, 50)):
        assert (part - NUM_SPECIAL).unique().tolist() == list(range(1, largest + 1))
    answers = best_value(weights - NUM_SPECIAL, values - NUM_SPECIAL, capacities - NUM_SPECIAL)
    assert torch.equal(targets[:, -1], answers)
    assert inputs.shape[1] == 44


def test_the_likeliest_answer_is_as_rare_as_computed_for_the_paper() -> None:
    """2.4 % for values up to 10, to 0.3 points."""
    rates = make_task("knapsack").base_rates(20)
    assert rates["majority class"] == pytest.approx(0.024, abs=0.003)
    assert 0.6 < rates["greedy value"] < 0.8


def test_shallow_features_bound_the_answer() -> None:
    task = make_task("knapsack")
    inputs, targets = task.sample(2_000, 12, seeded(0))
    features = task.shallow_features(inputs)
    assert (features["greedy value"] <= targets[:, -1]).all()
    assert (features["fractional value"] >= targets[:, -1]).all()


def test_what_is_not_positive_is_refused() -> None:
    one = torch.ones(1, 1, dtype=torch.int64)
    for name, wrong in {
        "weights": (-one, one, one[0]),
        "values": (one, 0 * one, one[0]),
        "capacities": (one, one, -one[0]),
    }.items():
        with pytest.raises(
            ValueError, match=rf"^{name}: expected integers of at least 1, got -?\d; give positive integers$"
        ):
            best_value(*wrong)
