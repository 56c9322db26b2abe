"""The languages of FLaRe against the words of their definitions, string by string."""

import re
from itertools import product

import numpy as np
import pytest

from lengthwise.automata.flare import PROBLEMS, flare


def is_balanced(string: list[str]) -> bool:
    text = "".join({"(0": "(", ")0": ")", "(1": "[", ")1": "]"}[symbol] for symbol in string)
    for _ in range(4):
        if not text:
            return True
        # Innermost pairs are removed all at once, so that every round takes one level off.
        text, before = "".join(part for part in re.split(r"(?:\(\)|\[\])+", text)), text
        if text == before:
            return False
    return not text


def depth(string: list[str]) -> int:
    heights = np.cumsum([1 if symbol[0] == "(" else -1 for symbol in string])
    return int(max(heights, default=0))


def ends_in_position(string: list[str]) -> bool:
    *moves, answer = string or [""]
    if set(moves) - set("<>="):
        return False
    return answer == str((moves.count(">") - moves.count("<")) % 5)


def is_right_equation(string: list[str]) -> bool:
    if not re.fullmatch(r"[0-4]([-+*][0-4])*=[0-4]", text := "".join(string)):
        return False
    value = int(text[0])
    for operator, operand in zip(text[1:-2:2], text[2:-2:2], strict=True):
        value = {"+": value + int(operand), "-": value - int(operand), "*": value * int(operand)}[operator]
    return value % 5 == int(text[-1])


DEFINITIONS = {
    "even-pairs": lambda string: not string or string[0] == string[-1],
    "repeat-01": lambda string: string == ["0", "1"] * (len(string) // 2),
    "parity": lambda string: string.count("1") % 2 == 1,
    "first": lambda string: string[:1] == ["1"],
    "dyck-2-3": lambda string: is_balanced(string) and depth(string) <= 3,
    "cycle-navigation": ends_in_position,
    "modular-arithmetic-simple": is_right_equation,
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_automaton_has_the_words_of_the_definition(problem: str) -> None:
    language, contains = flare(problem), DEFINITIONS[problem]
    num_symbols = len(language.symbols)
    for length in range(max(n for n in range(10) if num_symbols**n <= 20_000) + 1):
        ids = np.array(list(product(range(num_symbols), repeat=length)), np.int64)
        expected = [contains([language.symbols[v] for v in string]) for string in ids]
        assert language.accepts(ids).tolist() == expected


@pytest.mark.parametrize("problem", ["dyck-2-3", "cycle-navigation", "modular-arithmetic-simple"])
def test_long_words_and_their_edits_are_decided_alike(problem: str) -> None:
    language, contains = flare(problem), DEFINITIONS[problem]
    chance = np.random.default_rng(0)
    for length in (9, 10, 23, 24):
        if not language.count(length):
            continue
        strings = language.sample(chance.random((200, length)))
        edited = strings.copy()
        edited[np.arange(200), chance.integers(length, size=200)] = chance.integers(len(language.symbols), size=200)
        assert all(contains([language.symbols[v] for v in string]) for string in strings)
        expected = [contains([language.symbols[v] for v in string]) for string in edited]
        assert language.accepts(edited).tolist() == expected
        assert 0 < sum(expected) < 200


@pytest.mark.unchecked
def test_an_unknown_problem_is_rejected() -> None:
    with pytest.raises(
        ValueError, match=r"^problem: expected one of even-pairs, .*, got 'pairs'; did you mean 'even-pairs'\?$"
    ):
        flare("pairs")  # type: ignore[arg-type]
