import pytest
from task_strings import all_strings, check_against_transducer, seeded

from lengthwise.tasks import make_task


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_formula_and_machine_agree(size: int) -> None:
    check_against_transducer(make_task("cycle-navigation", size=size))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_baseline_and_balance_count_all_walks(size: int, length: int) -> None:
    task = make_task("cycle-navigation", size=size)
    ends = task.solve(all_strings(3, length))[:, -1].bincount(minlength=size)
    assert task.baseline(length) == pytest.approx(ends.max().item() / 3**length)
    assert task.is_balanced_length(length) == bool((ends > 0).all())


def test_long_walks_are_uniform() -> None:
    assert make_task("cycle-navigation").baseline(10_000) == pytest.approx(0.2)


def test_the_papers_example() -> None:
    task = make_task("cycle-navigation")
    assert task.solve(task.encode("010211")[None])[0, -1] == 2


@pytest.mark.parametrize("size", [0, -3, 2.5])
def test_bad_sizes_are_refused(size: float) -> None:
    with pytest.raises(ValueError, match=rf"^task\.size: expected .*, got {size}; give one$"):
        make_task("cycle-navigation", size=size)


def test_length_10_000_is_drawn_at_once() -> None:
    assert make_task("cycle-navigation").sample(8, 10_000, seeded(0)).inputs.shape == (8, 10_000)
