"""Test strings that distinguish a machine from all other machines of at most as many states."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from lengthwise.automata.refinement import numbered
from lengthwise.automata.transducer import Transducer

String = tuple[int, ...]


def conformance_strings(machine: Transducer, max_symbols: int) -> list[String]:
    """Return strings of symbol ids that a model must answer correctly to be this machine, shortest first.

    Each string is a shortest string to a state, at most one symbol more, and a separating suffix. The suffixes form a
    set by which any two states differ in some answer. The empty string is left out.

    Let the machine be minimal, with an answer in every state. Let another machine answer all these strings alike, and
    have at most as many states that strings of one symbol or more reach. Then it answers every such string alike.
    This guarantee is lost if the strings have more than `max_symbols` symbols together. In that case the shortest
    strings without a suffix are kept, then the shortest of the others, up to that limit.

    Example:
        >>> import numpy as np
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> flip = Semiautomaton(np.array([[1], [0]]), ("a",))
        >>> conformance_strings(Transducer(flip, 0, np.array([0, 1])), 100)
        [(0,), (0, 0), (0, 0, 0)]

    Source: Chow, "Testing software design modeled by finite-state machines" (IEEE TSE, 1978), the W-method.
    """
    access = _access_strings(machine, max_symbols)
    symbols = [(symbol,) for symbol in range(len(machine.symbols))]
    cover = {*symbols, *access.values(), *(string + symbol for string in access.values() for symbol in symbols)}
    # Chow's theorem needs every transition (cover) followed by every suffix that separates states.
    num_symbols, others = sum(map(len, cover)), set[String]()
    for suffix in _separating_suffixes(machine, list(access)):
        # Longer strings would be left out again below.
        if num_symbols > max_symbols:
            break
        new = {string + suffix for string in cover} - cover - others
        others |= new
        num_symbols += sum(map(len, new))
    kept = _shortest(cover, max_symbols)
    return sorted([*kept, *_shortest(others, max_symbols - sum(map(len, kept)))], key=_by_length)


def _by_length(string: String) -> tuple[int, String]:
    return len(string), string


def _shortest(strings: Iterable[String], max_symbols: int) -> list[String]:
    """Return the shortest strings that have at most `max_symbols` symbols together."""
    ordered = sorted(strings, key=_by_length)
    totals = accumulate(map(len, ordered))
    return [string for string, _ in takewhile(lambda one: one[1] <= max_symbols, zip(ordered, totals, strict=True))]


def _access_strings(machine: Transducer, max_symbols: int) -> dict[int, String]:
    """Return a shortest string of at least one symbol to each state, until the strings exceed `max_symbols` together.

    The start counts only if a string of one symbol or more returns to it, since nets do not answer the empty string.
    """
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
    """Yield suffixes, shortest first and beginning with the empty one, by which any two of the states differ.

    Only suffixes that continue a known one on the left are tried. If no symbol before a known suffix splits a block,
    the partition is stable, and by Moore's theorem no longer suffix splits it.
    """
    table, outputs = machine.semiautomaton.table, numbered(machine.outputs)
    suffixes: list[String] = [()]
    answers, blocks = [outputs], numbered(outputs[states])
    for index, suffix in enumerate(suffixes):  # the list grows inside the loop
        yield suffix
        for symbol in range(len(machine.symbols)):
            after = answers[index][table[:, symbol]]
            # Answers are numbered from 0 and are fewer than the states, so that different pairs have different numbers.
            finer = numbered(blocks * len(outputs) + after[states])
            # A suffix that splits no block separates no new pair. Each kept one splits a block, so fewer than Q remain.
            if finer.max() > blocks.max():
                suffixes.append((symbol, *suffix))
                answers.append(after)
                blocks = finer
