"""Strings that tell a machine from others: what a model has to answer that is to be this machine."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.transducer import Transducer

String = tuple[int, ...]


def conformance_strings(machine: Transducer, max_symbols: int) -> list[String]:
    """To every state, by every transition from there, and on by what separates states: symbol ids, the shortest first.

    They are a shortest string to a state, one symbol or none, and a suffix of a set by which any two states differ in
    some answer; none is empty. Any machine that answers all of them as this one does, and has no more states after
    strings of one symbol or more, answers every such string as it does, if this one is minimal and has an answer in
    every state. Where they have more than `max_symbols` together this is not said: the shortest of those without a
    suffix are kept, and where these fit, the shortest of the others.

    Example:
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> flip = Semiautomaton(np.array([[1], [0]]), ("a",))
        >>> conformance_strings(Transducer(flip, 0, np.array([0, 1])), 100)
        [(0,), (0, 0), (0, 0, 0)]

    Source: Chow, "Testing software design modeled by finite-state machines" (IEEE TSE, 1978), the W-method.
    """
    access = _access_strings(machine, max_symbols)
    symbols = [(symbol,) for symbol in range(len(machine.symbols))]
    cover = {*symbols, *access.values(), *(string + symbol for string in access.values() for symbol in symbols)}
    num_symbols, others = sum(map(len, cover)), set[String]()
    for suffix in _separating_suffixes(machine, list(access)):
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
    """As many as have no more symbols together."""
    ordered = sorted(strings, key=_by_length)
    totals = accumulate(map(len, ordered))
    return [string for string, _ in takewhile(lambda one: one[1] <= max_symbols, zip(ordered, totals, strict=True))]


def _access_strings(machine: Transducer, max_symbols: int) -> dict[int, String]:
    """A shortest string to each state that one of a symbol or more leads to, until they have more symbols together."""
    table: list[list[int]] = machine.semiautomaton.table.tolist()
    access: dict[int, String] = {}
    num_symbols = 0
    origins: list[tuple[int, String]] = [(machine.start, ())]
    for state, string in origins:  # which grows
        for symbol, after in enumerate(table[state]):
            if after not in access and num_symbols <= max_symbols:
                access[after] = (*string, symbol)
                origins.append((after, access[after]))
                num_symbols += len(access[after])
    return access


def _separating_suffixes(machine: Transducer, states: list[int]) -> Iterator[String]:
    """Suffixes, the empty one first and none before a shorter one, by which any two of the states differ in an answer.

    Where none of those with one symbol before them tells more states apart, no suffix does.
    """
    table, outputs = machine.semiautomaton.table, _numbered(machine.outputs)
    suffixes: list[String] = [()]
    answers, blocks = [outputs], _numbered(outputs[states])
    for index, suffix in enumerate(suffixes):  # which grows
        yield suffix
        for symbol in range(len(machine.symbols)):
            after = answers[index][table[:, symbol]]
            finer = _numbered(blocks * len(outputs) + after[states])
            if finer.max() > blocks.max():
                suffixes.append((symbol, *suffix))
                answers.append(after)
                blocks = finer


def _numbered(labels: Int64[np.ndarray, " Q"]) -> Int64[np.ndarray, " Q"]:
    """The labels as numbers from 0 on."""
    numbered: np.ndarray = np.unique(labels, return_inverse=True)[1]
    return numbered
