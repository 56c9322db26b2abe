"""Tasks whose answers to all short strings can be counted: parity, even pairs, equal ends, sums, walks."""

import pytest
import torch
from task_strings import all_strings, check_against_transducer, seeded

from lengthwise.tasks import make_task
from lengthwise.tasks.base import RegularTask

COUNTED = [
    make_task("parity"),
    make_task("even-pairs"),
    *(make_task("equal-ends", num_digits=digits) for digits in (2, 3, 5)),
    *(make_task("sum", modulus=modulus) for modulus in (1, 2, 3, 5)),
    *(make_task("cycle-navigation", size=size) for size in (1, 2, 3, 5, 6, 8)),
]
counted = pytest.mark.parametrize("task", COUNTED, ids=repr)


@counted
def test_formula_and_machine_agree(task: RegularTask) -> None:
    check_against_transducer(task, longest=6 if len(task.symbols) < 5 else 5)


@counted
@pytest.mark.parametrize("length", [1, 2, 3, 5, 6])
def test_baseline_and_balance_count_all_strings(task: RegularTask, length: int) -> None:
    strings = all_strings(len(task.symbols), length)
    answers = task.solve(strings)[:, -1].bincount(minlength=len(task.classes))
    assert task.baseline(length) == pytest.approx(answers.max().item() / len(strings))
    assert task.is_balanced_length(length) == bool((answers > 0).all())


@pytest.mark.parametrize(
    ("task", "text", "answer"),
    [(make_task("equal-ends"), "0320", 1), (make_task("sum"), "0324", 4), (make_task("cycle-navigation"), "010211", 2)],
    ids=repr,
)
def test_the_papers_examples(task: RegularTask, text: str, answer: int) -> None:
    assert task.solve(task.encode(text)[None])[0, -1] == answer


def test_chance_levels() -> None:
    assert make_task("equal-ends").baseline(500) == pytest.approx(0.8)
    assert make_task("cycle-navigation").baseline(10_000) == pytest.approx(0.2)
    assert make_task("parity").baseline(40) == 0.5
    assert make_task("parity", p=0.25).baseline(2) == pytest.approx(0.25**2 + 0.75**2)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_b_has_its_probability_and_the_baseline_is_exact(p: float) -> None:
    task = make_task("parity", p=p)
    inputs, targets = task.sample(100_000, 5, seeded(0))
    torch.testing.assert_close(inputs.double().mean(dim=0), torch.full((5,), p, dtype=torch.float64), rtol=0, atol=0.01)
    odd = targets[:, -1].double().mean().item()
    assert max(odd, 1 - odd) == pytest.approx(task.baseline(5), abs=0.01)


def test_even_pairs_count_unequal_neighbors() -> None:
    task = make_task("even-pairs")
    strings = all_strings(2, 8)
    texts = [task.decode(string) for string in strings]
    pairs = torch.tensor([sum(text[i : i + 2] in ("ab", "ba") for i in range(7)) for text in texts])
    assert torch.equal(task.solve(strings)[:, -1], pairs % 2)


def test_two_digits_are_parity_and_even_pairs_with_classes_exchanged() -> None:
    inputs = make_task("sum", modulus=2).sample(64, 30, seeded(0)).inputs
    assert make_task("sum", modulus=2).solve(inputs).equal(make_task("parity").solve(inputs))
    assert make_task("equal-ends", num_digits=2).solve(inputs).equal(1 - make_task("even-pairs").solve(inputs))


def test_length_10_000_is_drawn_at_once() -> None:
    assert make_task("cycle-navigation").sample(8, 10_000, seeded(0)).inputs.shape == (8, 10_000)
