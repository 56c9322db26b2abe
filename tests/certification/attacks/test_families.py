"""The strings that families promise, and the faults that each of them must find."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from last_symbol import LastSymbol
from wrong_on import Streamed, WrongNearPattern, wrong_on

from lengthwise.automata.conformance import conformance_strings
from lengthwise.certification.attacks.attack import FAMILIES, try_families
from lengthwise.certification.attacks.board import Board, Budget
from lengthwise.certification.attacks.climbing import mutated
from lengthwise.certification.attacks.families import loops, powers, runs, short_strings, words
from lengthwise.models.base import SequenceModel
from lengthwise.models.machine import TransducerModel
from lengthwise.tasks import RegularTask, make_task

PARITY = make_task("parity")
FAMILY = {family.name: family for family in FAMILIES}
A, B = 0, 1


def board_of(
    task: RegularTask, model: SequenceModel | None = None, max_length: int = 100, symbols: int = 10**6
) -> Board:
    model = TransducerModel(task.transducer, task.classes) if model is None else model
    return Board(model, task, task.reference, Budget(symbols=symbols), max_length, seed=0)


def strings_of(batches, max_length: int, num_batches: int = 50) -> set[tuple[int, ...]]:
    """All strings that are graded: prefixes, and prefixes with parts of tails."""
    strings = set()
    for batch, _ in zip(batches, range(num_batches), strict=False):
        for row in batch.strings.tolist():
            strings |= {tuple(row[:end]) for end in range(1, len(row) + 1)}
            if batch.tails is None:
                continue
            tails = {tuple(tail[:end]) for tail in batch.tails.tolist() for end in range(1, len(tail) + 1)}
            last = len(row) - batch.tails.shape[1]
            strings |= {(*row[:end], *tail) for end in range(1, last + 1) for tail in tails}
    return {string for string in strings if len(string) <= max_length}


PROMISED = {
    "all short strings": [(A, B, B, A, B, B, A, A, B), (B,)],
    "runs x^n w": [(A,) * 76 + (B, B), (B,) * 99 + (A,), (A,) * 13 + (B, A, B)],
    "W-method": conformance_strings(PARITY.reference, 100)[-2:],
    "loops u v^n w of the machine": [(B,) + (A,) * 80 + (B, A, B), (B,) + (A,) * 97 + (B, B)],
    "powers u v^n w": [(A, B) * 40 + (B, B), (A,) + (B, B, A) * 25 + (A,), (A, B, A, A) * 24 + (B, A)],
}
"""Strings of each family: one that errs on one of them alone is refuted by the family."""


def test_every_family_promises_strings() -> None:
    assert {*PROMISED, "hill climbing"} == {*FAMILY}


@pytest.mark.parametrize("make", [lambda net: net, Streamed], ids=["whole strings", "streamed"])
@pytest.mark.parametrize(("name", "string"), [(name, string) for name, all_of in PROMISED.items() for string in all_of])
def test_each_family_finds_the_faults_that_it_promises(name: str, string: tuple[int, ...], make) -> None:
    board = board_of(PARITY, make(wrong_on(PARITY, string)))
    try_families(board, [FAMILY[name]])
    assert board.shortest is not None
    assert tuple(board.shortest.string.tolist()) == string
    assert board.shortest.family == name


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("name", ["parity", "cycle-navigation", "even-pairs", "bounded-dyck"])
def test_no_family_refutes_a_right_net_or_reads_beyond_the_length(family, name: str) -> None:
    task = make_task(name)
    model = TransducerModel(task.transducer, task.classes)
    board = board_of(task, model, max_length=30, symbols=200_000)
    (count,) = try_families(board, [family])
    assert board.shortest is None
    assert count.num_answers == board.num_answers > 0
    assert all(len(string) <= 30 for string in board.weakest)


@given(data=st.data())
def test_all_powers_of_short_words_are_tried(data) -> None:
    num_symbols = len(PARITY.symbols)
    word = st.lists(st.integers(0, num_symbols - 1), max_size=3)
    u, v = data.draw(word), data.draw(word.filter(bool))
    if len(u) + len(v) > 4:
        u = u[: 4 - len(v)]
    w = data.draw(st.lists(st.integers(0, num_symbols - 1), max_size=2))
    n = data.draw(st.integers(1, (MAX_LENGTH - len(u) - len(w)) // len(v)))
    assert tuple(u + v * n + w) in ALL_POWERS


MAX_LENGTH = 21
ALL_POWERS = strings_of(powers(board_of(PARITY, max_length=MAX_LENGTH)), MAX_LENGTH)


def test_each_infinite_string_is_tried_once() -> None:
    """The powers by length: a and b; then ab, ba, and one b before a, and one a before b."""
    batches = powers(board_of(PARITY, max_length=12))
    first = next(batches).strings.tolist()
    second = [row for _ in range(2) for row in next(batches).strings.tolist()]
    assert {tuple(row[:4]) for row in first} == {(A,) * 4, (B,) * 4}
    assert sorted(tuple(row[:4]) for row in second) == [(A, B, A, B), (A, B, B, B), (B, A, A, A), (B, A, B, A)]


CYCLE = make_task("cycle-navigation")
ALL_RUNS, ALL_LOOPS = (strings_of(draw(board_of(CYCLE, max_length=20)), 20) for draw in (runs, loops))


@given(data=st.data())
def test_all_runs_and_loops_are_tried(data) -> None:
    symbol, tail = data.draw(st.integers(0, 2)), data.draw(st.lists(st.integers(0, 2), max_size=2))
    n = data.draw(st.integers(1, 20 - len(tail)))
    assert (symbol,) * n + tuple(tail) in ALL_RUNS
    # In a cycle of five, one step leads from the start to state 1, in which 0 is a loop, and so are 12 and 21.
    for loop in ([0], [1, 2], [2, 1]):
        n = data.draw(st.integers(0, (19 - len(tail)) // len(loop)))
        assert (1, *loop * n, *tail) in ALL_LOOPS


def test_short_strings_are_all_strings_up_to_a_length() -> None:
    strings = strings_of(short_strings(board_of(PARITY, max_length=7)), 7)
    assert strings == {string for length in range(1, 8) for string in product(range(2), repeat=length)}


@pytest.mark.parametrize(("num_symbols", "max_words", "expected"), [(1, 4, 1), (2, 4, 4), (3, 9, 9), (7, 4, 4)])
def test_tails_are_all_words_of_a_length_or_some_symbols(num_symbols: int, max_words: int, expected: int) -> None:
    tails = words(num_symbols, max_words)
    assert len(tails.unique(dim=0)) == expected
    assert int(tails.max()) < num_symbols


def test_hill_climbing_finds_a_fault_that_no_repetition_shows() -> None:
    """The agreement of random strings is about 12 at most, and their margin leads to more."""
    board = board_of(LastSymbol(), WrongNearPattern(threshold=30))
    try_families(board, [FAMILY["powers u v^n w"], FAMILY["runs x^n w"]])
    assert board.shortest is None
    board = board_of(LastSymbol(), WrongNearPattern(threshold=30))
    try_families(board, [FAMILY["hill climbing"]])
    assert board.shortest is not None
    assert board.shortest.margin < 0


def test_changes_are_never_empty_or_too_long() -> None:
    board, generator = board_of(PARITY, max_length=9), torch.Generator().manual_seed(0)

    def draw(limit: int) -> int:
        return int(torch.randint(limit, (), generator=generator))

    changed = {mutated((A, B, B), (B,), board, draw) for _ in range(300)} | {mutated((A,), (B,), board, draw)}
    assert {len(string) for string in changed} == set(range(1, 10))
