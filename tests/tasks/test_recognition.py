"""What recognition tasks share: balance, near misses, and the paper's sampling."""

import numpy as np
import pytest
import torch
from task_strings import check_against_transducer, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.regular.recognition import RecognitionTask, substitute, swap, transplant

FORMULA = [
    *(make_task("tomita", index=index) for index in range(1, 8)),
    *(make_task("bounded-dyck", depth=depth) for depth in (1, 2, 3, 12)),
]
NEAR_MISS = [
    *FORMULA,
    make_task("regex", pattern="(a|b)*abb"),
    make_task("regex", pattern="(ab|b)*a?"),
    make_task("dfa"),
]
CHI2023 = [
    *(make_task("tomita", index=index, sampling="chi2023") for index in (1, 3, 4, 5, 6, 7)),
    *(make_task("bounded-dyck", depth=depth, sampling="chi2023") for depth in (1, 2, 3, 12)),
]
near_miss = pytest.mark.parametrize("task", NEAR_MISS, ids=repr)
either = pytest.mark.parametrize("task", NEAR_MISS + CHI2023, ids=repr)


@pytest.mark.parametrize("task", FORMULA, ids=repr)
def test_formula_and_machine_agree(task: RecognitionTask) -> None:
    check_against_transducer(task, longest=10)


@near_miss
@pytest.mark.parametrize("batch_size", [1, 2, 7, 64, 129])
def test_near_miss_batches_are_balanced(task: RecognitionTask, batch_size: int) -> None:
    for length in (2, 5, 12, 40):
        inside = int(task.sample(batch_size, length, seeded(length)).targets[:, -1].sum())
        if task.is_balanced_length(length):
            assert inside in (batch_size // 2, (batch_size + 1) // 2)
        else:
            assert inside == batch_size * bool(task.language.count(length))


@near_miss
def test_an_extra_string_falls_to_either_class(task: RecognitionTask) -> None:
    generator = seeded(0)
    inside = torch.tensor([int(task.sample(3, 12, generator).targets[:, -1].sum()) for _ in range(60)])
    assert set(inside.tolist()) == {1, 2}
    assert inside.double().mean().item() == pytest.approx(1.5, abs=0.2)


@near_miss
def test_near_miss_rows_are_shuffled(task: RecognitionTask) -> None:
    answers = torch.stack([task.sample(64, 12, seeded(seed)).targets[:, -1] for seed in range(20)])
    assert answers[:, :32].double().mean().item() == pytest.approx(0.5, abs=0.08)


@near_miss
def test_balance_is_that_of_exact_counts(task: RecognitionTask) -> None:
    for length in range(1, 20):
        count = task.language.count(length)
        assert task.is_balanced_length(length) == (0 < count < 2**length)
        assert task.baseline(length) == (0.5 if 0 < count < 2**length else 1.0)


@near_miss
def test_strings_inside_reach_all_of_the_language(task: RecognitionTask) -> None:
    inputs, targets = task.sample(20_000, 8, seeded(0))
    inside = inputs[targets[:, -1] == 1]
    assert len(inside.unique(dim=0)) == task.language.count(8)


@either
def test_samples_answer_with_the_formula(task: RecognitionTask) -> None:
    for length in range(1, 15):
        inputs, targets = task.sample(33, length, seeded(length))
        assert torch.equal(targets, task.solve(inputs))
        again = task.sample(33, length, seeded(length))
        assert torch.equal(inputs, again.inputs)


@pytest.mark.sampled(3)
@either
def test_length_2_000_is_no_trouble(task: RecognitionTask) -> None:
    inputs, targets = task.sample(6, 2_000, seeded(0))
    assert inputs.shape == (6, 2_000)
    assert len(targets[:, -1].unique()) == 2


@pytest.mark.parametrize("task", CHI2023[1:], ids=repr)  # the strings of Tomita 1 come in no order
def test_the_papers_batches_have_the_strings_inside_first(task: RecognitionTask) -> None:
    for length in range(1, 30):
        for batch_size in (1, 64, 65):
            answers = task.sample(batch_size, length, seeded(length)).targets[:, -1]
            if task.is_balanced_length(length):
                num_inside = batch_size // 2
            else:
                num_inside = batch_size * bool(task.language.count(length))
            assert answers.tolist() == [1] * num_inside + [0] * (batch_size - num_inside)


@pytest.mark.parametrize("num_symbols", [2, 3])
def test_substitutions_change_one_or_two_symbols(num_symbols: int) -> None:
    strings = torch.randint(num_symbols, (6_000, 10), generator=seeded(0))
    changed = (torch.from_numpy(substitute(strings.numpy(), num_symbols, seeded(1))) != strings).double()
    assert set(changed.sum(dim=1).tolist()) == {1.0, 2.0}
    assert changed.sum(dim=1).mean().item() == pytest.approx(1.5, abs=0.02)
    torch.testing.assert_close(changed.mean(dim=0), torch.full((10,), 0.15, dtype=torch.float64), rtol=0, atol=0.02)
    single = np.zeros((4, 1), dtype=np.int64)
    assert (substitute(single, num_symbols, seeded(1)) > 0).all()


def test_transplants_take_one_window_from_another_string() -> None:
    hosts = torch.arange(6_000)[:, None].expand(6_000, 10)
    mixed = torch.from_numpy(transplant(hosts.numpy(), 6_000, seeded(0)))
    taken = mixed != hosts
    for row, foreign in zip(mixed[:200], taken[:200], strict=True):
        assert len(row[foreign].unique()) <= 1
    edges = (taken[:, 1:] != taken[:, :-1]).sum(dim=1) + taken[:, 0] + taken[:, -1].int()
    assert set(edges.tolist()) <= {0, 2}  # one window; none where a string is its own donor
    sizes = taken.sum(dim=1)[taken.any(dim=1)].bincount(minlength=11)[1:].double()
    expected = torch.arange(10, 0, -1).double() / 55  # 11 - n of the 55 windows have n symbols
    torch.testing.assert_close(sizes / sizes.sum(), expected, rtol=0, atol=0.02)


def test_swaps_exchange_two_different_symbols() -> None:
    strings = torch.randint(2, (6_000, 6), generator=seeded(0))
    strings = strings[(strings.sum(dim=1) > 0) & (strings.sum(dim=1) < 6)]
    swapped = torch.from_numpy(swap(strings.numpy(), 2, seeded(1)))
    assert ((swapped != strings).sum(dim=1) == 2).all()
    assert torch.equal(swapped.sum(dim=1), strings.sum(dim=1))


def test_swaps_are_uniform_over_the_pairs_that_differ() -> None:
    strings = torch.tensor([[0, 0, 1, 0, 1]]).expand(60_000, 5)
    swapped = torch.from_numpy(swap(strings.numpy(), 2, seeded(0)))
    outcomes, counts = swapped.unique(dim=0, return_counts=True)
    assert len(outcomes) == 6
    assert ((counts / 10_000 - 1).abs() < 0.05).all()


def test_swaps_leave_constant_strings_alone() -> None:
    strings = np.ones((5, 4), dtype=np.int64)
    np.testing.assert_array_equal(swap(strings, 2, seeded(0)), strings)
