import json
from itertools import islice, product

import numpy as np
import pytest
from planted_rules import A_AND_B, counting, planted

from lengthwise.automata import grid_product
from lengthwise.automata.grid_machine import GridMachine
from lengthwise.automata.grid_product import (
    MAX_LETTERS,
    _all_edges,
    _all_strings,
    _narrow_difference,
    _pairs,
    _reached,
    _related_strings,
    _shrunk,
    _triples,
    difference,
    paths,
    proves_alike,
)
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
        ({"numbers": np.array([1])}, "numbers: expected one number for each of the 2 classes"),
        ({"top": 2}, r"table: expected classes in 0..1 .* and in `top`, got classes from 0 to 2"),
        (
            {"left": -1},
            r"table: expected classes in 0\.\.1 in table\[\.\.\., 1\] and in `left`, got classes from -1 to 1",
        ),
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
    with pytest.raises(ValueError, match=r"strings: expected ids of letters in 0..2, got ids from 0 to 3"):
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


@pytest.mark.parametrize(("num_letters", "longest"), [(2, 16), (3, 10), (4, 8), (300, 0)])
def test_all_pairs_of_strings_are_enumerated_up_to_the_limit(num_letters: int, longest: int) -> None:
    """There are 2^16 = 4^8 = 65,536 pairs of so many letters together, as many as are compared, and 3^10 = 59,049."""
    last = 0
    for first, second in _all_strings(num_letters):
        last = first.shape[1] + second.shape[1]
        assert len(first) == len(second) == num_letters**last
    assert last == longest


def test_a_machine_counts_its_classes_and_cells() -> None:
    """Two classes go down and three to the right, and cells read two letters."""
    machine = GridMachine(A_AND_B, np.zeros((2, 3, 2, 2, 2), dtype=np.int64), 0, 0, np.array([0, 1]), 0)
    assert (machine.num_classes, machine.num_cells) == (2 + 3, 2 * 3 * 2 * 2)
    with pytest.raises(ValueError, match=r"^table: expected lists of equal lengths, got lists of different .*; fill"):
        GridMachine.from_json({**machine.to_json(), "cells": [[0, 0], [0]]})


def test_too_many_cells_of_pairs_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines with two classes each way and three letters have (2 * 2)^2 * 3^2 = 144 cells together."""
    machine = rule("longest-common-subsequence")
    monkeypatch.setattr(grid_product, "MAX_CELLS", 144)
    assert proves_alike(machine, machine, paths(machine, machine))
    monkeypatch.setattr(grid_product, "MAX_CELLS", 143)
    with pytest.raises(ValueError, match=r"^machine: expected at most 143 entries in the table of the product"):
        paths(machine, machine)


def test_an_unproved_equality_is_not_called_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = rule("longest-common-subsequence")
    monkeypatch.setattr(grid_product, "proves_alike", lambda *_: False)
    monkeypatch.setattr(grid_product, "STRINGS_PER_LENGTH", 10)
    with pytest.raises(
        ValueError, match=r"^machine: expected a proof that both machines give the same answers, .*, got neither"
    ):
        difference(machine, machine)


def test_random_pairs_of_strings_are_related() -> None:
    """Every other first string is periodic, a fifth of the second ones are copied, and all letters occur."""
    length = 24
    first, second = _related_strings(3, length, np.random.default_rng(0))
    assert first.shape == second.shape == (grid_product.STRINGS_PER_LENGTH, length)
    for strings in (first, second):
        assert set(np.unique(strings)) == {0, 1, 2}
    is_periodic = np.any([(first[:, period:] == first[:, :-period]).all(1) for period in range(1, 6)], axis=0)
    assert is_periodic[1::2].all()
    assert is_periodic[::2].mean() < 0.01
    is_copied = np.any([(np.roll(first, shift, axis=1) == second).all(1) for shift in range(-4, 5)], axis=0)
    # A fifth has all letters copied; if a share s is not, the others are equal by chance: 0.8 times the integral of
    # (1 - 2 s / 3)^24, which is 0.05, of them.
    assert 0.22 < is_copied[::2].mean() < 0.28


def test_a_narrow_grid_without_a_difference_has_none() -> None:
    machine = rule("longest-common-subsequence")
    for is_first in (True, False):
        assert _narrow_difference(machine, machine, np.array([0]), is_first=is_first) is None


@pytest.mark.unchecked
def test_triples_are_collected_up_to_a_number_of_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, triples = rule("longest-common-subsequence"), object()
    num_edges = sum(map(len, paths(machine, machine).edges[:2]))
    monkeypatch.setattr(grid_product, "proves_alike", lambda *_: False)
    monkeypatch.setattr(grid_product, "_triples", lambda _: triples)
    monkeypatch.setattr(grid_product, "MAX_EDGES_FOR_TRIPLES", num_edges)
    assert paths(machine, machine) is triples
    monkeypatch.setattr(grid_product, "MAX_EDGES_FOR_TRIPLES", num_edges - 1)
    assert paths(machine, machine) is not triples


def test_no_letter_of_a_shrunk_difference_can_be_left_out() -> None:
    machine = rule("longest-common-subsequence")
    random, num_longer = np.random.default_rng(0), 0
    for _, wrong in islice(planted(machine), 12):
        first, second = random.integers(3, size=(2, 9))
        if wrong.run(first[None], second[None]) == machine.run(first[None], second[None]):
            continue
        shrunk = list(_shrunk(wrong, machine, (first, second)))
        assert wrong.run(*(string[None] for string in shrunk)) != machine.run(*(string[None] for string in shrunk))
        for index, string in enumerate(shrunk):
            for letter in range(len(string) if len(string) > 1 else 0):
                shorter = [one[None] for one in shrunk]
                shorter[index] = np.delete(string, letter)[None]
                assert wrong.run(*shorter) == machine.run(*shorter)
        num_longer += len(shrunk[0]) + len(shrunk[1]) > 2
    assert num_longer >= 2


def random_pair(seed: int) -> tuple[GridMachine, GridMachine]:
    """Two machines over two letters; three classes go down and two to the right, and half of the cells are rare."""
    random = np.random.default_rng(seed)
    tables = [np.stack([random.integers(size, size=(3, 2, 2, 2)) for size in (3, 2)], -1) for _ in range(2)]
    sparse = [np.where(random.random(table.shape[:-1])[..., None] < 0.5, table, 0) for table in tables]
    one, other = (GridMachine(A_AND_B, table, 0, 1, np.arange(3), 0) for table in sparse)
    return one, other


def labels(rows: np.ndarray) -> set[tuple[int, ...]]:
    return set(map(tuple, rows.tolist()))


@pytest.mark.parametrize("seed", range(12))
def test_edges_of_all_strings_are_in_the_paths(seed: int) -> None:
    """The proof is sound only if no edge is missing: all strings of four letters, run by both machines."""
    one, other = random_pair(seed)
    first, second = all_pairs(4, 4)
    (down, right), (other_down, other_right) = one.messages(first, second), other.messages(first, second)
    below = np.broadcast_to(second[:, None, :], down.shape)
    upward = np.broadcast_to(first[:, :, None], down.shape)
    made_below = labels(np.stack([below, down, other_down], -1).reshape(-1, 3))
    made_upward = labels(np.stack([upward, right, other_right], -1).reshape(-1, 3))
    edges = _reached(_all_edges(one, other))
    by_pairs, by_triples = _pairs(edges), _triples(edges)
    for reached in (by_pairs, by_triples):
        assert made_below <= labels(reached.edges.below[reached.made])
        assert made_upward <= labels(reached.edges.upward)
    assert labels(by_triples.edges.below[by_triples.made]) <= labels(by_pairs.edges.below[by_pairs.made])
    assert labels(by_triples.edges.upward) <= labels(by_pairs.edges.upward)
    assert labels(by_pairs.edges.below) <= labels(edges.below)


@pytest.mark.parametrize("seed", range(3))
def test_cells_make_the_edges_of_their_rules(seed: int) -> None:
    one, other = random_pair(seed)
    edges = _reached(_all_edges(one, other))
    assert labels(edges.below[edges.top]) == {(letter, 0, 0) for letter in (0, 1)}
    assert labels(edges.upward[edges.left]) == {(letter, 1, 1) for letter in (0, 1)}
    for m, (a, q, other_q) in enumerate(edges.upward):
        for n, (b, p, other_p) in enumerate(edges.below):
            (down, right), (other_down, other_right) = one.table[p, q, a, b], other.table[other_p, other_q, a, b]
            assert edges.below[edges.made_below[m, n]].tolist() == [b, down, other_down]
            assert edges.upward[edges.made_upward[m, n]].tolist() == [a, right, other_right]
