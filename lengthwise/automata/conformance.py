"""Test strings that distinguish a machine from all inequivalent machines with up to a given number of states."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product, takewhile
from numbers import Integral

from lengthwise.automata.refinement import numbered
from lengthwise.automata.transducer import Transducer
from lengthwise.validation import check_kind

String = tuple[int, ...]


def conformance_strings(machine: Transducer, max_symbols: int) -> list[String]:
    """Return strings of symbol ids that test whether another machine or a model is equivalent to this machine.

    Each string consists of a shortest string to a state, at most one symbol, and a suffix. For any two states, the
    answers after some suffix differ. The empty string is left out, and the shortest strings come first.

    The strings prove equivalence under two conditions. This machine must be minimal, with an answer in every state. The
    other machine must have at most as many states as this machine; only states that nonempty strings reach are counted.
    If both machines then give the same answers to all returned strings, they give the same answers to all nonempty
    strings.

    The proof does not hold if all strings together have more than `max_symbols` symbols. Then only the shortest strings
    up to this limit are returned, and strings without a suffix are preferred.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> flip = Semiautomaton(np.array([[1], [0]]), ("a",))
        >>> conformance_strings(Transducer(flip, 0, np.array([0, 1])), 100)
        [(0,), (0, 0), (0, 0, 0)]

    Source: Chow, "Testing software design modeled by finite-state machines" (IEEE TSE, 1978), the W-method.
    """
    access = access_strings(machine, max_symbols)
    cover = _transition_cover(machine, access)
    # Chow's theorem needs every transition (`cover`), followed by every suffix that separates states.
    num_symbols, others = sum(map(len, cover)), set[String]()
    for suffix in _separating_suffixes(machine, list(access)):
        # The limit is reached, and longer strings would not be kept below.
        if num_symbols > max_symbols:
            break
        new = {string + suffix for string in cover} - cover - others
        others |= new
        num_symbols += sum(map(len, new))
    kept = _shortest(cover, max_symbols)
    return sorted([*kept, *_shortest(others, max_symbols - sum(map(len, kept)))], key=_by_length)


def extended_strings(
    access: Sequence[String], suffixes: Sequence[String], num_symbols: int, length: int
) -> Iterator[String]:
    """Yield each access string, continued by each string of `length` symbols and then by each suffix.

    Suppose that a minimal Mealy machine has Q states, and that `access` contains one string to each state. Suppose also
    that for any two states, the last outputs after one of the suffixes differ. Let another machine have at most Q + k
    states, with k >= 0. The two machines are then equivalent if their outputs agree along all strings that are yielded
    for `length` = 0, ..., k + 1.

    Example:
        >>> list(extended_strings([(), (1,)], [(0,)], 2, 1))
        [(0, 0), (1, 0), (1, 0, 0), (1, 1, 0)]

    Source: Chow, "Testing software design modeled by finite-state machines" (IEEE TSE, 1978), the W-method.
    """
    for start, middle, suffix in product(access, product(range(num_symbols), repeat=length), suffixes):
        yield start + middle + suffix


class ConformanceTest:
    """Strings in levels: levels 0 to k distinguish a machine from all inequivalent machines with up to k more states.

    A string of level k consists of a shortest string to a state, a symbol, k more symbols and a separating suffix.
    Level 0 also contains each shortest string followed directly by a suffix. As in `conformance_strings`, the machine
    must be minimal, and a state is counted only if a nonempty string reaches it. Suppose that another machine has at
    most k more states, and gives the same answers to the strings of all levels up to k. Then it gives the same answers
    to all nonempty strings.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> flip = Semiautomaton(np.array([[1], [0]]), ("a",))
        >>> test = ConformanceTest(Transducer(flip, 0, np.array([0, 1])))
        >>> list(test.strings([2])), test.num_symbols(2)
        ([(0, 0, 0, 0, 0)], 5)

    Source: Chow, as in `conformance_strings`.
    """

    def __init__(self, machine: Transducer) -> None:
        access = access_strings(machine, sys.maxsize)
        cover = _transition_cover(machine, access)
        self._num_symbols = len(machine.symbols)
        self._cover = sorted(cover, key=_by_length)
        # The prefixes of access strings are also access strings. So every other string has a shortest prefix that is
        # not an access string. Only these prefixes need more symbols between them and the suffix.
        self._leaves = cover - set(access.values())
        self._suffixes = list(_separating_suffixes(machine, list(access)))

    def strings(self, levels: Iterable[int]) -> Iterator[String]:
        """Yield the test's strings of these levels; strings through the states farthest from the start come first.

        In a machine that is found state by state, the newest state is far from the start, and is most likely wrong. So
        this order finds mistakes early. A string may be yielded more than once.
        """
        for start in reversed(self._cover):
            for level in levels:
                if level and start not in self._leaves:
                    continue
                yield from extended_strings([start], self._suffixes, self._num_symbols, level)

    def num_symbols(self, level: int) -> int:
        """Return the total number of symbols in the strings of one level (see `ConformanceTest`)."""
        starts = self._leaves if level else self._cover
        lengths = sum(map(len, starts)) * len(self._suffixes) + sum(map(len, self._suffixes)) * len(starts)
        num_middles: int = self._num_symbols**level
        return num_middles * (lengths + level * len(starts) * len(self._suffixes))

    def max_level(self, max_symbols: int) -> int:
        """Return the largest k for which the strings of levels 0 to k have at most `max_symbols` symbols in total.

        The result is 0 even if the strings of level 0 alone have more symbols.
        """
        level, total = 0, self.num_symbols(0)
        while (total := total + self.num_symbols(level + 1)) <= max_symbols:
            level += 1
        return level


def _transition_cover(machine: Transducer, access: Mapping[int, String]) -> set[String]:
    """Return a shortest string to each state, these strings with one more symbol, and all strings of one symbol."""
    symbols = [(symbol,) for symbol in range(len(machine.symbols))]
    return {*symbols, *access.values(), *(string + symbol for string in access.values() for symbol in symbols)}


def _by_length(string: String) -> tuple[int, String]:
    return len(string), string


def _shortest(strings: Iterable[String], max_symbols: int) -> list[String]:
    """Return the shortest strings that have at most `max_symbols` symbols together."""
    ordered = sorted(strings, key=_by_length)
    totals = accumulate(map(len, ordered))
    return [string for string, _ in takewhile(lambda one: one[1] <= max_symbols, zip(ordered, totals, strict=True))]


def access_strings(machine: Transducer, max_symbols: int) -> dict[int, String]:
    """Return a shortest string of at least one symbol to each state; stop after `max_symbols` symbols in total.

    The start is included only if a nonempty string returns to it, because nets do not answer the empty string.
    """
    check_kind("machine", machine, Transducer, "a Transducer")
    check_kind("max_symbols", max_symbols, Integral, "a whole number")
    table: list[list[int]] = machine.semiautomaton.table.tolist()
    access: dict[int, String] = {}
    num_symbols = 0
    origins: list[tuple[int, String]] = [(machine.start, ())]
    for state, string in origins:  # the list grows inside the loop: breadth-first search, so strings are shortest
        for symbol, after in enumerate(table[state]):
            if after not in access and num_symbols <= max_symbols:
                access[after] = (*string, symbol)
                origins.append((after, access[after]))
                num_symbols += len(access[after])
    return access


def _separating_suffixes(machine: Transducer, states: list[int]) -> Iterator[String]:
    """Yield suffixes such that any two of `states` differ in the answer after some suffix; shorter suffixes come first.

    A new suffix is a symbol followed by a known suffix. If no such suffix splits a block of the partition of states,
    the partition is stable, and by Moore's theorem longer suffixes also split no block.
    """
    table, outputs = machine.semiautomaton.table, numbered(machine.outputs)
    suffixes: list[String] = [()]
    answers, blocks = [outputs], numbered(outputs[states])
    for index, suffix in enumerate(suffixes):  # the list grows inside the loop
        yield suffix
        for symbol in range(len(machine.symbols)):
            after = answers[index][table[:, symbol]]
            # `after` is below the number of states, so different pairs of a block and an answer get different numbers.
            finer = numbered(blocks * len(outputs) + after[states])
            # A suffix separates a new pair only if it splits a block. With Q states, fewer than Q suffixes can split a
            # block.
            if finer.max() > blocks.max():
                suffixes.append((symbol, *suffix))
                answers.append(after)
                blocks = finer
