import pytest
from task_strings import all_strings, check_against_transducer, seeded

from lengthwise.tasks import make_task


@pytest.mark.parametrize("modulus", [1, 2, 3, 5])
def test_formula_and_machine_agree(modulus: int) -> None:
    check_against_transducer(make_task("sum", modulus=modulus), longest=5)


@pytest.mark.parametrize("modulus", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_baseline_counts_all_strings(modulus: int, length: int) -> None:
    task = make_task("sum", modulus=modulus)
    sums = task.solve(all_strings(modulus, length))[:, -1].bincount(minlength=modulus)
    assert task.baseline(length) == pytest.approx(sums.max().item() / modulus**length)
    assert task.is_balanced_length(length)
    assert (sums > 0).all()


def test_the_papers_example() -> None:
    task = make_task("sum", modulus=5)
    assert task.solve(task.encode("0324")[None])[0, -1] == 4


def test_modulus_two_is_parity() -> None:
    inputs = make_task("sum", modulus=2).sample(64, 30, seeded(0)).inputs
    assert make_task("sum", modulus=2).solve(inputs).equal(make_task("parity").solve(inputs))


@pytest.mark.parametrize("modulus", [0, 11, 2.5])
def test_bad_moduli_are_refused(modulus: float) -> None:
    with pytest.raises(ValueError, match=rf"^task\.modulus: expected .*, got {modulus}; give one$"):
        make_task("sum", modulus=modulus)
