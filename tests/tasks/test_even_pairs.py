import torch
from task_strings import all_strings, check_against_transducer

from lengthwise.tasks import make_task


def test_formula_and_machine_agree() -> None:
    check_against_transducer(make_task("even-pairs"))


def test_the_answer_counts_unequal_neighbors() -> None:
    task = make_task("even-pairs")
    strings = all_strings(2, 8)
    texts = [task.decode(string) for string in strings]
    pairs = torch.tensor([sum(text[i : i + 2] in ("ab", "ba") for i in range(7)) for text in texts])
    assert torch.equal(task.solve(strings)[:, -1], pairs % 2)


def test_a_single_symbol_has_no_pairs() -> None:
    task = make_task("even-pairs")
    assert not task.is_balanced_length(1)
    assert task.baseline(1) == 1.0
    assert task.baseline(2) == 0.5
