"""Strings of random languages: exactly uniform, of both classes, at every length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from task_strings import all_strings, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.regular.recognition import IN, OUT


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([(3, 2), (4, 2), (6, 2), (3, 3)]), st.integers(0, 1000), st.sampled_from([8, 41, 300]))
def test_samples_are_right_and_balanced(size: tuple[int, int], seed: int, length: int) -> None:
    task = make_task("random-language", num_states=size[0], num_symbols=size[1], seed=seed)
    inputs, targets = task.sample(32, length, seeded(seed))
    table, state = task.language.semiautomaton.table, np.full(32, task.language.start)
    for symbols, answers in zip(inputs.T.numpy(), targets.T.numpy(), strict=True):
        state = table[state, symbols]
        assert (answers == task.language.accepting[state]).all()
    assert int(targets[:, -1].sum()) == 16


@pytest.mark.parametrize("origin", [OUT, IN])
@pytest.mark.parametrize("seed", range(3))
def test_strings_of_a_class_are_uniform(origin: int, seed: int) -> None:
    """Chi-square of 100 draws a string on average: beyond mean + 6 deviations once in far more than a million."""
    task, length = make_task("random-language", num_states=4, seed=seed), 7
    every = all_strings(2, length)
    of_class = (task.solve(every)[:, -1] == origin).nonzero()[:, 0]
    draws = task._draw(torch.full((100 * len(of_class),), origin), length, seeded(seed))
    numbers = (draws * 2 ** torch.arange(length - 1, -1, -1)).sum(1)
    counts = torch.bincount(numbers, minlength=2**length)
    assert counts.sum() == counts[of_class].sum()
    freedom = len(of_class) - 1
    chi_square = float(((counts[of_class] - 100) ** 2 / 100).sum())
    assert abs(chi_square - freedom) < 6 * (2 * freedom) ** 0.5
