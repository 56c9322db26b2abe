import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.regular.recognition import REPEAT_WEIGHT


@pytest.mark.parametrize(
    ("index", "inside", "outside"),
    [
        (1, "1 11 111", "0 10 01 110"),
        (2, "10 1010", "1 01 100 101"),
        (3, "0 1 01 100 110 1101 10011", "10 010 1011 1110 10001"),
        (4, "00 0010011", "000 10001"),
        (5, "00 11 0110 1001", "0 01 0010"),
        (6, "01 000 111 10", "0 1 00 011"),
        (7, "0101 1 0011 100", "1010 01010 10010"),
    ],
)
def test_examples_of_each_language(index: int, inside: str, outside: str) -> None:
    task = make_task("tomita", index=index)
    for text, answer in [*((t, 1) for t in inside.split()), *((t, 0) for t in outside.split())]:
        assert task.solve(task.encode(text)[None])[0, -1] == answer, text


def test_strings_outside_are_edited_in_three_ways() -> None:
    task = make_task("tomita", index=2)
    inputs, targets = task.sample(600, 40, seeded(0))
    outside = inputs[targets[:, -1] == 0]
    changed = (outside != torch.tensor([1, 0] * 20)).sum(dim=1)
    assert (changed <= 2).sum() == 225  # no window of another string leads outside: there is but one string inside
    assert ((changed == 2) & (outside.sum(dim=1) == 20)).sum() >= 75


def test_swaps_that_cannot_lead_outside_give_way_to_substitutions() -> None:
    # The only string inside is all 1s: it has no two different symbols to swap.
    inputs, targets = make_task("tomita", index=1).sample(600, 40, seeded(0))
    zeros = (inputs[targets[:, -1] == 0] == 0).sum(dim=1)
    assert ((zeros == 1) | (zeros == 2)).sum() == 225
    assert (zeros >= 8).sum() == 75


@pytest.mark.parametrize("index", [4, 7])
def test_strings_inside_are_uniform_or_persistent(index: int) -> None:
    task = make_task("tomita", index=index)
    strings = all_strings(2, 6)
    inside = strings[task.solve(strings)[:, -1] == 1]
    odds = REPEAT_WEIGHT ** (inside[:, 1:] == inside[:, :-1]).sum(dim=1).double()
    expected = 10_000 * (1 / len(inside) + odds / odds.sum())
    inputs, targets = task.sample(40_000, 6, seeded(0))
    drawn, counts = inputs[targets[:, -1] == 1].unique(dim=0, return_counts=True)
    assert torch.equal(drawn, inside)
    assert ((counts - expected) ** 2 / expected).sum().item() < 2 * len(counts)


def test_the_papers_first_language_is_half_inside_and_half_uniform() -> None:
    task = make_task("tomita", index=1, sampling="chi2023")
    answers = task.sample(40_000, 2, seeded(0)).targets[:, -1].double().mean().item()
    assert task.baseline(2) == 0.625
    assert answers == pytest.approx(0.625, abs=0.01)


def test_the_papers_third_language_has_few_runs() -> None:
    inputs = make_task("tomita", index=3, sampling="chi2023").sample(2_000, 60, seeded(0)).inputs[:1_000]
    runs = 1 + (inputs[:, 1:] != inputs[:, :-1]).sum(dim=1)
    assert runs.double().mean() < 6
    assert runs.max() > 3


def test_the_papers_fourth_language_is_a_coin_that_avoids_000() -> None:
    inputs = make_task("tomita", index=4, sampling="chi2023").sample(80_000, 4, seeded(0)).inputs[:40_000]
    strings, counts = inputs.unique(dim=0, return_counts=True)
    # 0010 and 0011 are forced in their third symbol, and 1001 in its fourth.
    expected = torch.tensor([2 ** (-4 + ("00" in _text(s)[:3])) for s in strings])
    torch.testing.assert_close(counts / 40_000, expected, rtol=0.06, atol=0)


def _text(string: torch.Tensor) -> str:
    return "".join(map(str, string.tolist()))


def test_the_papers_seventh_language_draws_its_runs_in_turn() -> None:
    task = make_task("tomita", index=7, sampling="chi2023")
    assert not task.is_balanced_length(4)
    assert task.sample(100, 4, seeded(0)).targets[:, -1].all()
    inputs = task.sample(60_000, 5, seeded(0)).inputs[:30_000]
    zeros_first = (inputs.cumsum(dim=1) == 0).sum(dim=1)
    shares = zeros_first.bincount(minlength=6) / 30_000
    # n zeros are drawn with probability 1/6; no ones drawn after them (1 in 6 - n) lets the second run of 0s follow on.
    assert shares[5] > shares[0]
    assert shares[0].item() == pytest.approx(1 / 6 * (1 - 1 / 6) + 1 / 6 * 1 / 6 * 1 / 6, abs=0.01)


def test_every_string_of_the_language_may_be_drawn_by_the_papers_third_sampler() -> None:
    task = make_task("tomita", index=3, sampling="chi2023")
    inputs = task.sample(20_000, 5, seeded(0)).inputs[:10_000]
    every = all_strings(2, 5)
    assert torch.equal(inputs.unique(dim=0), every[task.solve(every)[:, -1] == 1])
