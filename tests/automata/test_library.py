import re
from itertools import pairwise, product

import numpy as np
import pytest
from automaton_strategies import all_strings

from lengthwise.automata import library
from lengthwise.conventions import IGNORE


def odd_run_after_odd_run(text: str) -> bool:
    runs = re.findall(r"1+|0+", text)
    return any(a[0] == "1" and len(a) % 2 and len(b) % 2 for a, b in pairwise(runs))


TOMITA = {
    1: lambda text: re.fullmatch(r"1*", text) is not None,
    2: lambda text: re.fullmatch(r"(10)*", text) is not None,
    3: lambda text: not odd_run_after_odd_run(text),
    4: lambda text: "000" not in text,
    5: lambda text: text.count("0") % 2 == 0 and text.count("1") % 2 == 0,
    6: lambda text: (text.count("0") - text.count("1")) % 3 == 0,
    7: lambda text: re.fullmatch(r"0*1*0*1*", text) is not None,
}


@pytest.mark.parametrize("size", [1, 2, 7])
def test_other_machines_are_their_definitions(size: int) -> None:
    """Answers to every prefix of random strings, by counting."""
    strings = np.random.default_rng(size).integers(size, size=(20, 12))
    np.testing.assert_array_equal(library.digit_sum(size).run(strings), strings.cumsum(axis=1) % size)
    np.testing.assert_array_equal(library.equal_ends(size).run(strings), strings == strings[:, :1])
    moves = np.random.default_rng(size).integers(3, size=(20, 12))
    steps = np.array([0, 1, -1])[moves]
    np.testing.assert_array_equal(library.cycle(size).run(moves), steps.cumsum(axis=1) % size)
    letters = moves % 2
    np.testing.assert_array_equal(library.parity().run(letters), letters.cumsum(axis=1) % 2)
    changes = np.abs(np.diff(letters, axis=1, prepend=letters[:, :1])).cumsum(axis=1)
    np.testing.assert_array_equal(library.even_pairs().run(letters), changes % 2)


@pytest.mark.parametrize("leading_plus", [False, True])
def test_an_equals_sign_repeats_the_value_and_ends_the_expression(leading_plus: bool) -> None:
    plain, machine = library.modular_arithmetic(3, leading_plus), library.modular_arithmetic_equals(3, leading_plus)
    before = all_strings(len(plain.symbols), 4)
    ended = np.concatenate([before, np.full((len(before), 1), len(plain.symbols))], axis=1)
    answers = plain.run(before)
    np.testing.assert_array_equal(machine.run(ended), np.concatenate([answers, answers[:, -1:]], axis=1))
    for symbol in range(len(machine.symbols)):
        after = np.concatenate([ended, np.full((len(ended), 1), symbol)], axis=1)
        assert (machine.run(after)[:, -1] == IGNORE).all()


@pytest.mark.parametrize("index", TOMITA)
@pytest.mark.parametrize("length", range(11))
def test_tomita_languages_are_their_definitions(index: int, length: int) -> None:
    strings = all_strings(2, length)
    expected = [TOMITA[index]("".join(map(str, string))) for string in strings.tolist()]
    assert library.tomita(index).accepts(strings).tolist() == expected


@pytest.mark.parametrize("index", TOMITA)
def test_tomita_automata_are_minimal(index: int) -> None:
    dfa = library.tomita(index)
    assert dfa.minimize().num_states == dfa.num_states


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_bounded_dyck_is_what_deleting_brackets_leaves(depth: int) -> None:
    for length in range(9):
        strings = all_strings(2, length)
        for string, accepted in zip(strings.tolist(), library.bounded_dyck(depth).accepts(strings), strict=True):
            text = "".join("()"[symbol] for symbol in string)
            rounds = 0
            while "()" in text:
                text, rounds = text.replace("()", ""), rounds + 1
            assert accepted == (text == "" and rounds <= depth)


def test_exact_depth_is_the_difference_of_two_bounded_languages() -> None:
    for length in range(0, 20, 2):
        total = sum(library.exact_depth_dyck(depth).count(length) for depth in (1, 2, 3))
        assert total == library.bounded_dyck(3).count(length) - (length == 0)


def fully_bracketed(text: str) -> str:
    """The expression with brackets around everything that stands before an operator: ((1)+2)*3 for 1+2*3."""
    whole = text[0]
    for position in range(1, len(text), 2):
        whole = f"({whole}){text[position : position + 2]}"
    return whole


@pytest.mark.parametrize("modulus", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("kind", ["modular_arithmetic", "left_to_right_arithmetic"])
def test_modular_arithmetic_agrees_with_pythons_evaluator(kind: str, modulus: int) -> None:
    machine = getattr(library, kind)(modulus)
    random = np.random.default_rng(modulus)
    strings = np.empty((50, 9), dtype=np.int64)
    strings[:, 0::2] = random.integers(modulus, size=(50, 5))
    strings[:, 1::2] = modulus + random.integers(3, size=(50, 4))
    for string, answers in zip(strings, machine.run(strings), strict=True):
        text = "".join(machine.symbols[symbol] for symbol in string)
        assert answers[1::2].tolist() == [IGNORE] * 4
        expressions = [text[:end] for end in range(1, 10, 2)]
        if kind == "left_to_right_arithmetic":
            expressions = [fully_bracketed(expression) for expression in expressions]
        expected = [eval(expression) % modulus for expression in expressions]
        assert answers[0::2].tolist() == expected
        led = getattr(library, kind)(modulus, leading_plus=True)
        assert led.run(np.append(modulus, string)[None])[0, 1::2].tolist() == expected, "a plus before it adds nothing"


@pytest.mark.parametrize("leading_plus", [False, True])
@pytest.mark.parametrize("kind", ["modular_arithmetic", "left_to_right_arithmetic"])
def test_malformed_expressions_stay_unanswered(kind: str, leading_plus: bool) -> None:
    """Every text of four symbols, with 1*0+1 after it: operands and operators must alternate."""
    machine = getattr(library, kind)(2, leading_plus)
    for text in map("".join, product(machine.symbols, repeat=4)):
        whole = text + "1*0+1"
        answers = machine.run(np.array([[machine.symbols.index(symbol) for symbol in whole]]))[0]
        pattern = r"\+[01](?:[-+*][01])*" if leading_plus else r"[01](?:[-+*][01])*"
        for end, answer in enumerate(answers.tolist(), start=1):
            assert (answer != IGNORE) == bool(re.fullmatch(pattern, whole[:end])), whole[:end]


def test_modular_arithmetic_has_the_stated_number_of_states() -> None:
    assert library.modular_arithmetic(5).num_states == 2 * 25 + 2 * 5 + 1


def test_machines_are_made_once() -> None:
    assert library.cycle(5) is library.cycle(5)


@pytest.mark.parametrize(
    ("make", "argument", "message"),
    [
        (library.cycle, 0, "size: expected a whole number of at least 1, got 0"),
        (library.digit_sum, 11, "modulus: expected a whole number from 1 to 10, got 11"),
        (library.equal_ends, 0, "num_digits: expected a whole number from 1 to 10, got 0"),
        (library.modular_arithmetic, 11, "modulus: expected a whole number from 1 to 10, got 11"),
        (library.modular_arithmetic_equals, 0, "modulus: expected a whole number from 1 to 10, got 0"),
        (library.left_to_right_arithmetic, 11, "modulus: expected a whole number from 1 to 10, got 11"),
        (library.bounded_dyck, -1, "depth: expected a nesting depth of at least 0, got -1"),
        (library.tomita, 8, "index: expected one of Tomita's languages 1 to 7, got 8"),
    ],
)
def test_bad_parameters_are_refused(make, argument: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(argument)
