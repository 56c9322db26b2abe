import numpy as np
import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.regular.recognition import REPEAT_WEIGHT


def heights(inputs: torch.Tensor) -> torch.Tensor:
    return (1 - 2 * inputs).cumsum(dim=1)


def balanced_depths(inputs: torch.Tensor) -> torch.Tensor:
    """Depth of the strings that are balanced."""
    height = heights(inputs)
    balanced = (height[:, -1] == 0) & (height.min(dim=1).values >= 0)
    return height[balanced].max(dim=1).values


def test_strings_inside_are_uniform_or_persistent_and_half_of_them_uniform_over_depths() -> None:
    task = make_task("bounded-dyck", depth=4)
    length = 12
    strings = all_strings(2, length)
    inside = strings[task.solve(strings)[:, -1] == 1]
    every_depth = balanced_depths(inside)
    expected = torch.full((4,), 0.5 / 4)
    for weight in (1.0, REPEAT_WEIGHT):
        odds = weight ** (inside[:, 1:] == inside[:, :-1]).sum(dim=1)
        expected += 0.25 * torch.bincount(every_depth, odds, minlength=5)[1:] / odds.sum()
    inputs, targets = task.sample(40_000, length, seeded(0))
    drawn = inputs[targets[:, -1] == 1]
    shares = balanced_depths(drawn).bincount(minlength=5)[1:] / len(drawn)
    torch.testing.assert_close(shares, expected, rtol=0, atol=0.01)


def test_a_quarter_of_the_strings_outside_is_one_level_too_deep() -> None:
    task = make_task("bounded-dyck", depth=3)
    inputs, targets = task.sample(6_000, 40, seeded(0))
    depths = balanced_depths(inputs[targets[:, -1] == 0])
    too_deep = (depths == 4).sum().item() / 3_000
    assert 1 / 4 <= too_deep < 0.4  # and some of the edited strings


def test_short_strings_are_swapped_instead() -> None:
    task = make_task("bounded-dyck", depth=3)
    inputs, targets = task.sample(300, 6, seeded(0))
    outside = inputs[targets[:, -1] == 0]
    assert len(balanced_depths(outside)) == 0
    assert (outside.sum(dim=1) == 3).sum() >= 50


def test_odd_lengths_are_all_outside() -> None:
    for sampling in ("near-miss", "chi2023"):
        task = make_task("bounded-dyck", depth=2, sampling=sampling)
        assert task.is_legal_length(7)
        assert not task.is_balanced_length(7)
        assert task.baseline(7) == 1.0
        assert task.sample(32, 7, seeded(0)).targets[:, -1].sum() == 0


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_papers_strings_inside_reach_depth_n_and_vary_little(depth: int) -> None:
    task = make_task("bounded-dyck", depth=depth, sampling="chi2023")
    inside = task.sample(4_000, 40, seeded(0)).inputs[:2_000]
    assert (balanced_depths(inside) == depth).all()
    distinct = len(inside.unique(dim=0))
    assert distinct < {2: 60, 3: 300, 4: 600}[depth]


def test_the_papers_d1_is_one_string() -> None:
    inputs = make_task("bounded-dyck", depth=1, sampling="chi2023").sample(10, 8, seeded(0)).inputs
    assert (inputs[:5] == torch.tensor([0, 1] * 4)).all()


def recursive_block(depth: int, max_length: int, random: np.random.Generator) -> str:
    """The paper's generator as it is defined: brackets around shallower blocks, until the room is used."""
    block = ""
    while depth and len(block) < max_length:
        left = max_length - len(block) - 2
        inner = min(left, int(random.normal(0.75 * left, 0.075 * left)) // 2 * 2)
        block += "(" + recursive_block(depth - 1, inner, random) + ")"
    return block


@pytest.mark.parametrize(("depth", "length"), [(2, 12), (3, 20), (12, 40)])
def test_the_papers_strings_inside_are_distributed_as_its_recursion_says(depth: int, length: int) -> None:
    task = make_task("bounded-dyck", depth=depth, sampling="chi2023")
    random = np.random.default_rng(0)
    defined = torch.stack([task.encode(recursive_block(depth, length, random)) for _ in range(4_000)])
    drawn = task.sample(8_000, length, seeded(0)).inputs[:4_000]
    torch.testing.assert_close(drawn.double().mean(dim=0), defined.double().mean(dim=0), rtol=0, atol=0.04)
    shares = [balanced_depths(strings).bincount(minlength=depth + 1) / 4_000 for strings in (drawn, defined)]
    torch.testing.assert_close(shares[0], shares[1], rtol=0, atol=0.04)


def test_the_papers_d12_does_not_meet_its_bound() -> None:
    inputs = make_task("bounded-dyck", depth=12, sampling="chi2023").sample(4_000, 40, seeded(0)).inputs
    assert balanced_depths(inputs[:2_000]).max() < 9
