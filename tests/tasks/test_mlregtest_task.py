"""The task of MLRegTest's languages: random strings on both sides, and pairs that differ in one symbol."""

import pytest
import torch

from lengthwise import make_model, make_task
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.certification import traces
from lengthwise.tasks.regular.mlregtest import MLRegTestLanguage

NO_BB, ONLY_A = "(b?(a|c|d))*b?", "a*"
"""A language with many strings of each length, and a language with one string of each length."""


def task_of(pattern: str, strings: str) -> MLRegTestLanguage:
    return MLRegTestLanguage(**dfa_from_regex(pattern, "abcd").to_json(), strings=strings)


@pytest.mark.parametrize("length", [1, 2, 9, 63])
@pytest.mark.parametrize("pattern", [NO_BB, ONLY_A, "((a|b|c|d){3})*", "(a|b)(a|b|c|d)*"])
@pytest.mark.parametrize("batch_size", [2, 7, 64])
def test_pairs_differ_in_one_symbol_and_membership(pattern: str, length: int, batch_size: int) -> None:
    task = task_of(pattern, "pairs")
    batch = task.sample(batch_size, length, torch.Generator().manual_seed(length))
    assert batch.inputs.shape == (batch_size, length)
    answers = batch.targets[:, -1]
    if not task.is_balanced_length(length):
        assert answers.unique().numel() == 1
        return
    inside, outside = batch.inputs[answers == 1], batch.inputs[answers == 0]
    assert abs(len(inside) - len(outside)) <= 1
    distances = (inside[:, None] != outside).sum(2)
    # Each string has its partner, apart from the partner that an odd batch leaves out.
    assert (distances == 1).any(1).sum() >= min(len(inside), len(outside)) > 0


def test_long_pairs_take_little_memory_and_large_alphabets_have_long_strings() -> None:
    batch = task_of(NO_BB, "pairs").sample(64, 10_000, torch.Generator().manual_seed(0))
    answers = batch.targets[:, -1]
    assert (answers == 1).sum() == (answers == 0).sum() == 32
    symbols = [chr(ord("a") + v) for v in range(26)] + [chr(ord("A") + v) for v in range(26)]
    # A machine that counts to 300 has as many states as the larger languages of MLRegTest.
    after = [[(state + (v == 0)) % 300 for v in range(len(symbols))] for state in range(300)]
    task = MLRegTestLanguage(alphabet=symbols, transitions=after, accepting=(0,))
    assert 5_000 < task.max_drawn_length < 10_000
    assert traces.tested_lengths(make_model("gru", task), task) == (40, 500, task.max_drawn_length)


@pytest.mark.parametrize("strings", ["random", "pairs"])
def test_chance_decides_the_side_of_a_single_string(strings: str) -> None:
    task, chance = task_of(NO_BB, strings), torch.Generator().manual_seed(0)
    answers = [int(task.sample(1, 9, chance).targets[0, -1]) for _ in range(200)]
    assert 60 < sum(answers) < 140  # five standard deviations of a fair coin are 35


def test_random_strings_are_uniform_on_each_side() -> None:
    task = task_of(NO_BB, "random")
    batch = task.sample(40_000, 2, torch.Generator().manual_seed(0))
    inside, outside = (batch.inputs[batch.targets[:, -1] == answer] for answer in (1, 0))
    assert len(inside) == len(outside) == 20_000
    assert (outside == 1).all(), "bb is the only string outside"
    counts = torch.bincount(4 * inside[:, 0] + inside[:, 1], minlength=16).double()
    expected = torch.full((16,), 20_000 / 15, dtype=torch.float64)
    expected[5] = 0.0
    # Five standard deviations of a binomial count.
    assert ((counts - expected).abs() <= 5 * expected.sqrt()).all()


def test_replaced_positions_are_not_the_first_ones_alone() -> None:
    """With one string inside, every string outside of a pair has one other symbol, at any position."""
    batch = task_of(ONLY_A, "pairs").sample(2_000, 20, torch.Generator().manual_seed(0))
    positions = (batch.inputs[batch.targets[:, -1] == 0] != 0).nonzero()[:, 1]
    assert len(positions) == 1_000
    assert torch.bincount(positions, minlength=20).min() > 10


def test_a_file_and_the_kind_of_strings_are_given_together(tmp_path) -> None:
    path = tmp_path / "no-bb.regex"
    path.write_text(NO_BB)
    task = make_task("mlregtest", file=str(path), strings="pairs")
    assert (task.title, task.strings) == ("no-bb", "pairs")
    with pytest.raises(ValueError, match="strings"):
        make_task("mlregtest", strings="pair")
    with pytest.raises(ValueError, match="file: expected no fields but title"):
        make_task("mlregtest", file=str(path), start=0)
