"""Expressions with brackets, equations and missing letters: against slow rules, on all short strings and on samples."""

import re
from collections.abc import Callable

import pytest
import torch
from task_strings import all_strings, seeded

from lengthwise.conventions import IGNORE
from lengthwise.tasks import make_task


def value(text: str, modulus: int) -> int | None:
    """By rewriting: an innermost bracket of two values becomes its value in square brackets."""
    if re.fullmatch(r"-?\d|\(-?\d\)", text):
        return int(text.strip("()")) % modulus
    operand = r"(-?\d|\(-?\d\)|\[\d\])"
    while match := re.search(rf"\({operand}([-+*]){operand}\)", text):
        first, operator, second = match.groups()
        numbers = [int(part.strip("()[]")) for part in (first, second)]
        result = {"+": numbers[0] + numbers[1], "-": numbers[0] - numbers[1], "*": numbers[0] * numbers[1]}[operator]
        text = f"{text[: match.start()]}[{result % modulus}]{text[match.end() :]}"
    return int(text[1]) if re.fullmatch(r"\[\d\]", text) else None


def solution(text: str, modulus: int) -> int | None:
    if not re.fullmatch(r"[^x=]*x[^x=]*=\d", text):
        return None
    left, right = text.split("=")
    digits = [digit for digit in range(modulus) if value(left.replace("x", str(digit)), modulus) == int(right)]
    return digits[0] if len(digits) == 1 else None


def missing(text: str, modulus: int) -> int | None:
    half, pairs = len(text) // 2, "".join(sorted("".join(text)))
    if len(text) % 2 or pairs.count("_") != 1:
        return None
    position = text.index("_")
    other = text[(position + half) % len(text)]
    whole = text.replace("_", other)
    return "ab".index(other) if whole[:half] == whole[half:] else None


CASES: dict[str, tuple[Callable[[str, int], int | None], dict[str, int], int]] = {
    "modular-arithmetic-brackets": (value, {"modulus": 2}, 5),
    "solve-equation": (solution, {"modulus": 2}, 5),
    "missing-duplicate": (missing, {}, 8),
}
"""The rule, the settings of a small alphabet, and the longest enumerated strings."""


def answers(task, strings: torch.Tensor) -> list[int | None]:
    return [None if answer == IGNORE else answer for answer in task.answer(strings)[:, 0].tolist()]


@pytest.mark.parametrize("name", CASES)
def test_every_short_string_is_answered_by_the_rule(name: str) -> None:
    rule, fields, longest = CASES[name]
    task = make_task(name, **fields)
    for length in range(1, longest + 1):
        strings = all_strings(len(task.letters), length)
        texts = ["".join(task.letters[letter] for letter in row) for row in strings.tolist()]
        expected = [rule(text, fields.get("modulus", 2)) for text in texts]
        assert answers(task, strings) == expected


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("length", [6, 7, 40, 201])
def test_samples_are_answered_by_the_rule(name: str, length: int) -> None:
    rule, task = CASES[name][0], make_task(name)
    length += not task.is_legal_length(length)
    strings = task.draw_strings(200, length, seeded(length))
    texts = ["".join(task.letters[letter] for letter in row) for row in strings.tolist()]
    expected = [rule(text, 5) for text in texts]
    assert None not in expected
    assert answers(task, strings) == expected
    batch = task.sample(8, length, seeded(0))
    assert (batch.targets != IGNORE).sum(1).tolist() == [1] * 8


def test_the_first_part_of_an_expression_has_every_length_equally_often() -> None:
    task = make_task("modular-arithmetic-brackets")
    strings = task.draw_strings(20_000, 9, seeded(0))
    texts = ["".join(task.letters[letter] for letter in row) for row in strings.tolist()]
    sizes = torch.zeros(6)
    for text in texts:
        # The second part of an expression of 9 letters begins after the operator at depth 1.
        depths = torch.tensor([(sign == "(") - (sign == ")") for sign in text]).cumsum(0).tolist()
        (operator,) = [
            position
            for position in range(2, 8)
            if depths[position] == 1 and text[position] in "+-*" and text[position - 1] not in "(+-*"
        ]
        sizes[operator - 1] += 1
    assert (sizes[1:] / len(texts)).numpy() == pytest.approx([1 / 5] * 5, abs=0.015)


@pytest.mark.parametrize(("name", "length"), [("solve-equation", 11), ("missing-duplicate", 10)])
def test_baselines_agree_with_samples(name: str, length: int) -> None:
    task = make_task(name)
    _, drawn = task.draw(20_000, length, seeded(1))
    assert float(drawn.bincount().max()) / len(drawn) == pytest.approx(task.baseline(length), abs=0.015)
