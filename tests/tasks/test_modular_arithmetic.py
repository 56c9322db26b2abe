from collections import Counter

import numpy as np
import pytest
import torch
from task_strings import check_against_transducer, seeded

from lengthwise.conventions import IGNORE
from lengthwise.tasks import make_task


def well_formed(modulus: int, length: int) -> torch.Tensor:
    """Every expression of this length."""
    columns = [torch.arange(modulus) if position % 2 == 0 else modulus + torch.arange(3) for position in range(length)]
    return torch.cartesian_prod(*columns).reshape(-1, length)


@pytest.mark.parametrize("leading_plus", [False, True])
@pytest.mark.parametrize("modulus", [1, 2, 3])
@pytest.mark.parametrize("name", ["modular-arithmetic", "modular-arithmetic-equals"])
def test_formula_and_machine_agree_on_all_short_strings_malformed_ones_too(
    name: str, modulus: int, leading_plus: bool
) -> None:
    check_against_transducer(make_task(name, modulus=modulus, leading_plus=leading_plus), longest=5)


@pytest.mark.parametrize("leading_plus", [False, True])
def test_an_equals_sign_has_the_value_of_what_is_before_it(leading_plus: bool) -> None:
    plain, ended = (make_task(f"modular-arithmetic{end}", leading_plus=leading_plus) for end in ("", "-equals"))
    length = 21 + leading_plus
    inputs, targets = ended.sample(50, length + 1, seeded(0))
    expected = plain.sample(50, length, seeded(0))
    assert torch.equal(inputs[:, :-1], expected.inputs)
    assert torch.equal(targets[:, :-1], expected.targets)
    for string, answer in zip(inputs, targets[:, -1].tolist(), strict=True):
        assert ended.decode(string)[-1] == "="
        assert answer == eval(ended.decode(string)[:-1]) % 5
    assert ended.baseline(length + 1) == plain.baseline(length)
    assert ended.transducer.minimize().num_states == plain.transducer.minimize().num_states + 5


def test_a_leading_plus_changes_no_answer() -> None:
    plain, led = (make_task("modular-arithmetic", leading_plus=leading) for leading in (False, True))
    inputs, targets = led.sample(50, 20, seeded(0))
    assert (inputs[:, 0] == led.encode("+")).all()
    assert torch.equal(targets[:, 1:], plain.solve(inputs[:, 1:]))
    assert (targets[:, 0] == IGNORE).all()
    assert [led.is_legal_length(n) for n in (1, 2, 3, 40)] == [False, True, False, True]
    assert led.baseline(4) == plain.baseline(3)


@pytest.mark.parametrize("modulus", [2, 5])
def test_formula_and_machine_agree_on_all_expressions_up_to_length_7(modulus: int) -> None:
    task = make_task("modular-arithmetic", modulus=modulus)
    for length in range(1, 8):
        strings = well_formed(modulus, length)
        np.testing.assert_array_equal(task.solve(strings).numpy(), task.transducer.run(strings.numpy()))


@pytest.mark.parametrize("modulus", [2, 5, 10])
def test_answers_are_pythons(modulus: int) -> None:
    task = make_task("modular-arithmetic", modulus=modulus)
    inputs, targets = task.sample(50, 21, seeded(0))
    for string, answers in zip(inputs, targets.tolist(), strict=True):
        text = task.decode(string)
        assert answers[1::2] == [IGNORE] * 10
        assert answers[0::2] == [eval(text[:end]) % modulus for end in range(1, 22, 2)]


@pytest.mark.parametrize(("text", "answered"), [("12+3", 1), ("1+*2+1", 1), ("-1", 0), ("1+2-", 2), ("1*2*34*5", 3)])
def test_nothing_is_supervised_from_the_first_misplaced_symbol_on(text: str, answered: int) -> None:
    task = make_task("modular-arithmetic", modulus=10)
    assert (task.solve(task.encode(text)[None]) != IGNORE).sum() == answered


@pytest.mark.parametrize("length", [1, 3, 5])
def test_baseline_counts_all_expressions(length: int) -> None:
    task = make_task("modular-arithmetic", modulus=3)
    values = Counter(task.solve(well_formed(3, length))[:, -1].tolist())
    assert task.baseline(length) == pytest.approx(max(values.values()) / values.total())


def test_lengths_are_odd() -> None:
    task = make_task("modular-arithmetic")
    with pytest.raises(ValueError, match=r"no strings of length 40; legal lengths near it: \[37, 39, 41, 43\]"):
        task.sample(1, 40, seeded(0))
