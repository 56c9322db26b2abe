import pytest
from task_strings import all_strings, check_against_transducer, seeded

from lengthwise.tasks import make_task


@pytest.mark.parametrize("num_digits", [2, 3, 5])
def test_formula_and_machine_agree(num_digits: int) -> None:
    check_against_transducer(make_task("equal-ends", num_digits=num_digits), longest=5)


@pytest.mark.parametrize("num_digits", [2, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_baseline_and_balance_count_all_strings(num_digits: int, length: int) -> None:
    task = make_task("equal-ends", num_digits=num_digits)
    answers = task.solve(all_strings(num_digits, length))[:, -1].bincount(minlength=2)
    assert task.baseline(length) == pytest.approx(answers.max().item() / num_digits**length)
    assert task.is_balanced_length(length) == bool((answers > 0).all())


def test_the_papers_example_and_its_chance_level() -> None:
    task = make_task("equal-ends")
    assert task.solve(task.encode("0320")[None])[0, -1] == 1
    assert task.baseline(500) == pytest.approx(0.8)


def test_two_digits_are_even_pairs_with_classes_exchanged() -> None:
    inputs = make_task("equal-ends", num_digits=2).sample(64, 30, seeded(0)).inputs
    assert make_task("equal-ends", num_digits=2).solve(inputs).equal(1 - make_task("even-pairs").solve(inputs))


@pytest.mark.parametrize("num_digits", [1, 11, 2.5])
def test_bad_numbers_of_digits_are_refused(num_digits: float) -> None:
    with pytest.raises(ValueError, match=rf"^task\.num_digits: expected .*, got {num_digits}; give one$"):
        make_task("equal-ends", num_digits=num_digits)
