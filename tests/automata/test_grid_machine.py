import json
from itertools import islice, product

import numpy as np
import pytest
from planted_rules import A_AND_B, counting, planted

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.grid_product import MAX_LETTERS, _all_strings, difference, paths, proves_alike
from lengthwise.tasks import make_task

TASKS = ("longest-common-subsequence", "levenshtein-distance")


def rule(name: str) -> GridMachine:
    return make_task(name, alphabet=3).reference


def letters(seed: int, height: int, width: int, count: int = 50):
    random = np.random.default_rng(seed)
    return random.integers(3, size=(count, height)), random.integers(3, size=(count, width))


@pytest.mark.parametrize("name", TASKS)
def test_the_rule_of_a_task_needs_its_two_differences_alone(name: str) -> None:
    machine = rule(name)
    pairs = paths(machine, machine)
    assert pairs.num_pairs == (len(machine.numbers),) * 2
    assert proves_alike(machine, machine, pairs)
    assert difference(machine, machine) is None


def test_a_machine_survives_json() -> None:
    machine = rule("levenshtein-distance")
    again = GridMachine.from_json(json.loads(json.dumps(machine.to_json())))
    first, second = letters(0, 7, 5)
    assert np.array_equal(again.run(first, second), machine.run(first, second))
    assert again.to_json() == machine.to_json()


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"numbers": np.array([1])}, "numbers: expected one for each of 2 classes"),
        ({"top": 2}, r"table: expected classes in 0..1 \(axis 0, and top\), got 0 to 2"),
        ({"left": -1}, r"table: expected classes in 0..1 \(axis 1, and left\), got -1 to 1"),
        ({"symbols": ("a", "a", "b")}, "symbols: expected distinct letters"),
        ({"symbols": ("a", "b")}, "table: expected shape"),
        ({"table": np.full((2, 2, 3, 3, 2), 2)}, "table: expected classes in 0..1"),
    ],
)
def test_a_machine_rejects_what_does_not_fit(change, problem: str) -> None:
    machine = rule("longest-common-subsequence")
    fields = {name: getattr(machine, name) for name in ("symbols", "table", "top", "left", "numbers", "per_row")}
    with pytest.raises(ValueError, match=problem):
        GridMachine(**(fields | change))


def test_foreign_letters_and_other_alphabets_are_rejected() -> None:
    machine = rule("longest-common-subsequence")
    with pytest.raises(ValueError, match=r"strings: expected letters in 0..2, got 0 to 3"):
        machine.run(np.array([[0, 3]]), np.array([[1]]))
    other = make_task("longest-common-subsequence", alphabet=4).reference
    with pytest.raises(ValueError, match="symbols: expected machines over the same letters"):
        difference(machine, other)


def test_random_machines_that_are_shown_to_be_alike_answer_all_short_strings_alike() -> None:
    random, num_alike = np.random.default_rng(0), 0
    for _ in range(60):
        tables = [np.stack([random.integers(size, size=(3, 2, 2, 2)) for size in (3, 2)], -1)]
        tables.append(np.where(random.random(tables[0].shape) < 0.96, tables[0], 0))
        one, other = (GridMachine(A_AND_B, table, 0, 0, np.array([0, 1, 1]), 0) for table in tables)
        differs = any(
            (one.run(first, second) != other.run(first, second)).any()
            for height in range(1, 4)
            for width in range(1, 4)
            for first, second in [all_pairs(height, width)]
        )
        is_proved = proves_alike(one, other, paths(one, other))
        assert not (is_proved and differs)
        num_alike += is_proved
        if differs:
            distinguished = difference(one, other)
            assert distinguished is not None
            assert distinguished.is_shortest
            assert one.run(distinguished.first[None], distinguished.second[None]) != other.run(
                distinguished.first[None], distinguished.second[None]
            )
    assert 5 < num_alike < 55


def all_pairs(height: int, width: int):
    strings = np.indices((2,) * (height + width)).reshape(height + width, -1).T
    return strings[:, :height], strings[:, height:]


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])  # entries come in pairs
@pytest.mark.parametrize("name", TASKS)
def test_every_single_wrong_entry_that_matters_is_found(name: str, every: int) -> None:
    """Each entry of a rule in turn, on equal and on other letters; those of classes that never meet change nothing."""
    machine, num_wrong = make_task(name, alphabet=3).reference, 0
    for entry, wrong in islice(planted(machine), None, None, every):
        random = [letters(seed, 9, 9, 400) for seed in range(2)]
        differs = any((wrong.run(*strings) != machine.run(*strings)).any() for strings in random)
        is_proved = proves_alike(wrong, machine, paths(wrong, machine))
        assert not (is_proved and differs), entry
        if differs:
            distinguished = difference(wrong, machine)
            assert distinguished is not None
            assert wrong.run(distinguished.first[None], distinguished.second[None]) != machine.run(
                distinguished.first[None], distinguished.second[None]
            )
            num_wrong += 1
    assert num_wrong >= 20 // every


COUNTS = list(product(TASKS, [4, 9, 25, 40], ["down", "right"]))
BY_DEFAULT = [case for case in COUNTS if case[1] == 4] + [(TASKS[0], 40, "right"), (TASKS[1], 40, "down")]


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("name", "limit", "direction"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case not in BY_DEFAULT)) for case in COUNTS],
)
def test_a_rule_that_errs_once_it_has_counted_far_is_found(name: str, limit: int, direction: str) -> None:
    machine = make_task(name, alphabet=3).reference
    errs, never = (counting(machine, limit, direction, errs=errs) for errs in (True, False))
    assert proves_alike(never, machine, paths(never, machine))
    distinguished = difference(errs, machine)
    assert distinguished is not None
    assert max(len(distinguished.first), len(distinguished.second)) > limit
    assert errs.run(distinguished.first[None], distinguished.second[None]) != machine.run(
        distinguished.first[None], distinguished.second[None]
    )


def test_of_one_letter_strings_end_too() -> None:
    totals = [first.shape[1] + second.shape[1] for first, second in _all_strings(1)]
    assert totals == [total for total in range(2, MAX_LETTERS + 1) for _ in range(1, total)]


def test_borders_and_numbers_that_are_wrong_are_found() -> None:
    machine = make_task("levenshtein-distance", alphabet=3).reference
    fields = {name: getattr(machine, name) for name in ("symbols", "table", "top", "left", "numbers", "per_row")}
    for change in ({"top": 0}, {"left": 1}, {"per_row": 0}, {"per_row": 2}, {"numbers": machine.numbers + 1}):
        wrong = GridMachine(**(fields | change))
        assert not proves_alike(wrong, machine, paths(wrong, machine))
        assert difference(wrong, machine) is not None
