"""The families of strings that an attack tries: structured strings, which random samples hardly ever contain."""

from collections.abc import Iterator
from itertools import groupby, islice

import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.conformance import access_strings, conformance_strings
from lengthwise.certification.attacks.board import Batch, Board
from lengthwise.certification.counterexample import all_strings

MAX_TAILS_OF_RUNS = 9
"""The largest number of words (tails) w after each run or loop. Over two symbols, they are all words of length 3."""

MAX_TAILS_OF_POWERS = 4
"""The largest number of tails after each power of a word. It is small, because there are many powers."""

MAX_SYMBOLS_OF_SUITE = 20_000
"""The largest total number of symbols in the W-method's strings. `certify` tries more of these strings."""

MAX_SYMBOLS_OF_ACCESS = 20_000
"""The largest total number of symbols in the strings that lead to the states whose loops are tried."""

Word = tuple[int, ...]

NUM_STRINGS_AT_ONCE = 256
"""The number of strings that are made at a time, so that the budget can be checked in between."""


def words(num_symbols: int, max_words: int) -> Int64[Tensor, "W S"]:
    """Return all words of the largest length that has at most `max_words` words.

    If the alphabet has more than `max_words` symbols, the result is `max_words` words of one symbol, evenly spread over
    the ids.

    Example:
        >>> words(2, 5).tolist(), words(3, 2).tolist()
        ([[0, 0], [0, 1], [1, 0], [1, 1]], [[0], [1]])
    """
    length = 1
    while num_symbols > 1 and num_symbols ** (length + 1) <= max_words:
        length += 1
    every = torch.cartesian_prod(*[torch.arange(num_symbols)] * length).reshape(-1, length)
    return every if len(every) <= max_words else every[torch.arange(max_words) * len(every) // max_words]


def short_strings(board: Board) -> Iterator[Batch]:
    """Yield all strings of the largest enumerated length; all shorter strings are their prefixes."""
    yield from board.batches(all_strings(board.task, board.enumerated_length))


def runs(board: Board) -> Iterator[Batch]:
    """Yield x^n w for each symbol x, all n, and all short words w."""
    num_symbols = len(board.task.symbols)
    tails = words(num_symbols, MAX_TAILS_OF_RUNS)
    strings = torch.arange(num_symbols)[:, None].expand(-1, board.length_before(tails.shape[1]))
    yield from board.batches(strings, tails)


def w_method(board: Board) -> Iterator[Batch]:
    """Yield the strings of the W-method (`conformance_strings`) that have at most ``board.max_length`` symbols.

    Consider a machine that has at most as many states as the task's machine, but gives other answers. Under the
    conditions that `conformance_strings` states, such a machine errs on one of the strings.
    """
    suite = conformance_strings(board.machine, MAX_SYMBOLS_OF_SUITE)
    for length, group in groupby(suite, key=len):
        if length <= board.max_length:
            yield from board.batches(torch.tensor(list(group)))


def loops(board: Board) -> Iterator[Batch]:
    """Yield u v^n w for each state and all n: a shortest string u leads to the state, and v is a loop at the state.

    For each state and each first symbol of a loop, v is a shortest loop that begins with this symbol. The word w is any
    short word.
    """
    tails = words(len(board.task.symbols), MAX_TAILS_OF_RUNS)
    for pairs in _grouped(_loops(board)):
        length = board.length_before(tails.shape[1])
        strings = torch.tensor([_power(*pair, length) for pair in pairs])
        yield from board.batches(strings, tails)


def powers(board: Board) -> Iterator[Batch]:
    """Yield u v^n w for all words u and v, in the order of their total length, for all n and short words w.

    Each infinite string u v v v ... is tried once, with its shortest u and v.
    """
    num_symbols = len(board.task.symbols)
    tails = words(num_symbols, MAX_TAILS_OF_POWERS)
    for size in range(1, board.max_length + 1):
        # Python's integers do not overflow, so `num_symbols**size` is right for every size.
        for start in range(0, num_symbols**size, NUM_STRINGS_AT_ONCE):
            stop = min(start + NUM_STRINGS_AT_ONCE, num_symbols**size)
            joined = _words_by_number(num_symbols, size, start, stop)
            for period in range(1, size + 1):
                if size > board.max_length:
                    return
                strings = joined[_is_shortest(joined, period)]
                index = torch.arange(board.length_before(tails.shape[1]))
                repeated = torch.where(index < size, index, size - period + (index - size) % period)
                if len(strings):
                    yield from board.batches(strings[:, repeated], tails)


def _words_by_number(num_symbols: int, length: int, start: int, stop: int) -> Int64[Tensor, "B T"]:
    """Return the words with numbers `start` to `stop` - 1 in the lexicographic list of all words of this length."""
    digits = [
        [number // num_symbols**power % num_symbols for power in reversed(range(length))]
        for number in range(start, stop)
    ]
    return torch.tensor(digits)


def _is_shortest(joined: Int64[Tensor, "B T"], period: int) -> Tensor:
    """Return a mask of the strings u v for which no shorter u or v gives the same infinite string u v v v ...

    The word v is the last `period` symbols. It must not be a power of a shorter word. The last symbols of u and v must
    also differ, because the last symbol of u could otherwise be moved into v.
    """
    size = joined.shape[1]
    word = joined[:, size - period :]
    is_shortest = torch.ones(len(joined), dtype=torch.bool)
    for shorter in range(1, period):
        if period % shorter == 0:
            is_shortest &= (word != word[:, torch.arange(period) % shorter]).any(1)
    if size > period:
        is_shortest &= joined[:, size - period - 1] != word[:, -1]
    return is_shortest


def _loops(board: Board) -> Iterator[tuple[Word, Word]]:
    """Yield pairs of a string to a state and a shortest loop there, one pair for each first symbol of a loop."""
    machine = board.machine
    table: list[list[int]] = machine.semiautomaton.table.tolist()
    access: dict[int, Word] = {machine.start: ()}
    for state, string in access_strings(machine, MAX_SYMBOLS_OF_ACCESS).items():
        access.setdefault(state, string)
    before: list[list[tuple[int, int]]] = [[] for _ in table]
    for state, row in enumerate(table):
        for symbol, after in enumerate(row):
            before[after].append((state, symbol))
    for target, string in access.items():
        if len(string) >= board.max_length:
            return
        back = _paths_to(target, before)
        for symbol, after in enumerate(table[target]):
            if after in back:
                loop = [symbol]
                while after != target:
                    loop.append(back[after])
                    after = table[after][back[after]]
                yield string, tuple(loop)


def _paths_to(target: int, before: list[list[tuple[int, int]]]) -> dict[int, int]:
    """Return, for each state from which a string leads to the target, the first symbol of a shortest such string."""
    first = {target: -1}
    states = [target]
    for state in states:  # the list grows inside this loop, a breadth-first search, which finds shortest strings
        for earlier, symbol in before[state]:
            if earlier not in first:
                first[earlier] = symbol
                states.append(earlier)
    return first


def _power(start: Word, loop: Word, length: int) -> list[int]:
    """Return the first `length` symbols of an infinite string: the start, then repetitions of the loop."""
    repeated = start + loop * (max(0, length - len(start)) // len(loop) + 1)
    return list(repeated[:length])


def _grouped(pairs: Iterator[tuple[Word, Word]]) -> Iterator[list[tuple[Word, Word]]]:
    while group := list(islice(pairs, NUM_STRINGS_AT_ONCE)):
        yield group
