from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from task_strings import seeded

from lengthwise.conventions import NUM_SPECIAL
from lengthwise.tasks import make_task
from lengthwise.tasks.algorithmic.subset_sum import greedy_rest, reachable_sums, reachable_sums_by_definition

HARD = make_task("subset-sum", sampling="hard")


def problems(task, count: int, length: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Items, targets and answers."""
    inputs, targets = task.sample(count, length, seeded(seed))
    return inputs[:, :length] - NUM_SPECIAL, inputs[:, -2] - NUM_SPECIAL, targets[:, -1]


@given(st.integers(1, 7).flatmap(lambda n: st.lists(st.lists(st.integers(1, 200), min_size=n, max_size=n), min_size=1)))
def test_bits_are_the_sums_of_the_definition(items: list[list[int]]) -> None:
    assert torch.equal(reachable_sums(torch.tensor(items)), reachable_sums_by_definition(torch.tensor(items)))


def test_shifts_by_whole_words_and_by_none() -> None:
    items = torch.tensor([[64, 128, 63], [1, 64, 65], [63, 63, 2]])
    assert torch.equal(reachable_sums(items), reachable_sums_by_definition(items))


@pytest.mark.parametrize("task", [make_task("subset-sum"), HARD], ids=["published", "hard"])
def test_answers_are_those_of_trying_every_subset(task) -> None:
    items, targets, answers = problems(task, 60, 8)
    for row, target, answer in zip(items.tolist(), targets.tolist(), answers.tolist(), strict=True):
        assert answer == any(sum(subset) == target for size in range(9) for subset in combinations(row, size))


def test_the_papers_example() -> None:
    items = torch.tensor([[67, 93, 81, 29, 2, 19, 77, 74, 50, 98]])
    assert reachable_sums(items)[0, 195]


def test_published_problems_have_the_published_base_rates() -> None:
    """70 % can be reached, a threshold answers 82 % (computed for the paper's task; ours to one point)."""
    rates = make_task("subset-sum").base_rates(10)
    assert rates["majority class"] == pytest.approx(0.70, abs=0.01)
    assert rates["|target/sum - 1/2|"] == pytest.approx(0.82, abs=0.01)
    items, targets, answers = problems(make_task("subset-sum"), 20_000, 10)
    assert items.unique().tolist() == list(range(1, 100))
    share = targets / items.sum(1)
    assert share.mean().item() == pytest.approx(0.5, abs=0.01)
    rejected = torch.minimum(share, 1 - share) < 0.125
    assert ((answers == 1) != rejected).double().mean().item() == pytest.approx(0.82, abs=0.01)


@pytest.mark.parametrize("length", [6, 8, 10])
def test_hard_problems_are_balanced_and_in_the_middle(length: int) -> None:
    items, targets, answers = problems(HARD, 4_000, length)
    assert answers.double().mean().item() == pytest.approx(0.5, abs=0.03)
    total = items.sum(1)
    assert (torch.minimum(targets, total - targets) >= total // 4).all()
    assert (torch.minimum(targets, total - targets) > items.max(1).values).all()
    one, other = torch.triu_indices(length, length, 1)
    pairs = items[:, one] + items[:, other]
    for part in (targets, total - targets):
        assert not (pairs == part[:, None]).any()
        assert (greedy_rest(items, part) > 0).all()


@pytest.mark.parametrize("length", [6, 8, 10])
def test_no_shallow_baseline_answers_over_60_percent_of_hard_problems(length: int) -> None:
    rates = HARD.base_rates(length)
    assert len(rates) >= 6
    assert max(rates.values()) < 0.6


@pytest.mark.parametrize(("length", "accuracy"), [(6, 1.0), (10, 0.79)])
def test_trying_all_sums_of_three_items_is_expensive_but_helps(length: int, accuracy: float) -> None:
    items, targets, answers = problems(HARD, 4_000, length)
    sums = items[:, torch.combinations(torch.arange(length), 3)].sum(2)
    actual = [(sums == part[:, None]).any(1) for part in (targets, items.sum(1) - targets)]
    assert ((actual[0] | actual[1]) == (answers == 1)).double().mean().item() == pytest.approx(accuracy, abs=0.02)


@pytest.mark.parametrize(
    ("task", "solved"), [(make_task("subset-sum"), True), (HARD, False)], ids=["published", "hard"]
)
def test_logistic_regression_on_shallow_features(task, solved: bool) -> None:
    """It finds the threshold in published problems, and nothing to speak of in hard ones."""
    items, targets, answers = problems(task, 20_000, 10)
    total = items.sum(1)
    share = targets / total
    ordered = items.sort(dim=1).values
    numbers = [
        *(share, share.square(), (share - 0.5).abs(), total, total.square(), targets, targets % 2, total % 2),
        *((items % 2).sum(1), (items <= targets[:, None]).sum(1), (items < 50).sum(1), targets % 3, targets % 10),
        *(greedy_rest(items, targets), greedy_rest(items, total - targets), *ordered.T, *(ordered % 2).T),
    ]
    features = torch.stack([number.double() for number in numbers], 1)
    features = (features - features.mean(0)) / (features.std(0) + 1e-9)
    features = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], 1)
    fitted, scored = features.chunk(2)
    labels = answers.double()
    weights = torch.zeros(features.shape[1], dtype=torch.float64)
    for _ in range(15):  # Newton's method, with a little of a ridge
        odds = torch.sigmoid(fitted @ weights)
        slope = fitted.T @ (labels[:10_000] - odds) - weights
        curvature = (fitted.T * (odds * (1 - odds))) @ fitted + torch.eye(len(weights), dtype=torch.float64)
        weights += torch.linalg.solve(curvature, slope)
    accuracy = ((scored @ weights > 0) == (answers[10_000:] == 1)).double().mean().item()
    assert (accuracy > 0.8) if solved else (accuracy < 0.6)


@pytest.mark.parametrize(("max_value", "legal"), [(99, range(6, 11)), (64, range(6, 11)), (300, range(6, 13))])
def test_hard_problems_have_lengths_of_their_own(max_value: int, legal: range) -> None:
    task = make_task("subset-sum", sampling="hard", max_value=max_value, max_length=20)
    assert [length for length in range(1, 21) if task.is_legal_length(length)] == list(legal)


@pytest.mark.parametrize("item", [0, -3])
def test_items_that_are_not_positive_are_refused(item: int) -> None:
    with pytest.raises(
        ValueError, match=rf"^items: expected integers of at least 1, got {item}; give positive integers$"
    ):
        reachable_sums(torch.tensor([[4, item]]))


def test_lengths_far_beyond_are_said_at_once() -> None:
    for sampling in ("hard", "published"):
        with pytest.raises(ValueError, match=r"has no strings of length 10000000000; legal lengths near it: \[1"):
            make_task("subset-sum", sampling=sampling).check_length(10**10)
