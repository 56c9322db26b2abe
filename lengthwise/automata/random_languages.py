"""Random regular languages: minimal automata with given numbers of states and symbols, the same on every computer."""

from functools import lru_cache
from hashlib import shake_256
from string import ascii_lowercase

import numpy as np

from lengthwise.automata.dfa import DFA
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.validation import check_kind, whole_number

MEMORY_LENGTH = 40
"""After this number of random symbols, on average, at least half of all pairs of states must still be different."""

MAX_STATES = 1_000
"""The largest number of states. All pairs of states are compared, and larger automata hardly ever meet the conditions.
"""

MAX_ATTEMPTS = 20_000
"""The largest number of automata that are drawn for a language. Usually, a few dozen suffice."""


@lru_cache(maxsize=256)
def random_language(num_states: int, num_symbols: int, seed: int) -> DFA:
    """Return a random minimal automaton with exactly `num_states` states, over the first letters of the alphabet.

    Next states are independent and uniform, each state accepts with probability 1/2, and the start is state 0.
    Automata are drawn until one meets three conditions:

    - All states are reachable, and no two states are equivalent, so the automaton is minimal.
    - Each length of at least `num_states` has accepted and rejected strings (`is_always_mixed`).
    - After 40 random symbols, on average, at least half of all pairs of states still lead to different states
      (`num_apart`). Most random automata do not meet this condition: the last dozen symbols decide their answers, so a
      model with a short window solves their language.

    All decisions use integers, and all draws come from the SHAKE-256 digest of the sizes, the seed and the attempt. No
    random generator of a library is used, so the language is the same on every computer and with every version.

    Raises:
        ValueError: a size is out of its range, or the seed is not in 0 ... 2^63 - 1. Or none of 20,000 automata meets
            the conditions, because hardly any automaton of this size meets them.

    Example:
        >>> language = random_language(4, 2, seed=0)
        >>> language.num_states, language.minimize().num_states, "".join(language.symbols)
        (4, 4, 'ab')

    Source: ours.
    """
    num_states = whole_number("num_states", num_states, 1, MAX_STATES)
    num_symbols = whole_number("num_symbols", num_symbols, 1, len(ascii_lowercase))
    seed = whole_number("seed", seed, 0, 2**63 - 1)
    for attempt in range(MAX_ATTEMPTS):
        drawn = _draw(num_states, num_symbols, seed, attempt)
        if is_nontrivial(drawn):
            return drawn.minimize()
    raise ValueError(
        f"num_states: expected a nontrivial language, got only trivial ones in {MAX_ATTEMPTS:,} attempts with "
        f"{num_states} states and {num_symbols} symbols; change num_states or num_symbols"
    )


def is_nontrivial(language: DFA) -> bool:
    """Return whether an automaton meets the three conditions of `random_language`."""
    check_kind("language", language, DFA, "a DFA")
    num_states, num_symbols = language.semiautomaton.table.shape
    pairs = num_states * (num_states - 1)
    return (
        # Doubling the number, instead of halving the total, keeps integers, so no rounding differs between computers.
        2 * num_apart(language.semiautomaton, MEMORY_LENGTH) >= pairs * num_symbols**MEMORY_LENGTH
        and language.minimize().num_states == num_states
        and is_always_mixed(language)
    )


def is_always_mixed(language: DFA) -> bool:
    """Return whether each length of at least Q, the number of states, has accepted strings and rejected strings.

    The set of states that strings of length T reach determines the set for length T + 1. There are finitely many sets,
    so a set must repeat, and from there on all sets repeat.

    Example:
        >>> from lengthwise.automata import library
        >>> is_always_mixed(library.tomita(6)), is_always_mixed(library.tomita(2))
        (True, False)
    """
    table, reached = language.semiautomaton.table, {language.start}
    seen: set[frozenset[int]] = set()
    length = 0
    # At most 2^Q sets exist, so a set repeats, and the sequence is periodic from there on.
    while length < language.num_states or frozenset(reached) not in seen:
        if length >= language.num_states:
            seen.add(frozenset(reached))
            if len({bool(language.accepting[state]) for state in reached}) == 1:
                return False
        reached = set(table[list(reached)].ravel().tolist())
        length += 1
    return True


def num_apart(machine: Semiautomaton, length: int) -> int:
    """Return the number of triples (string, state, other state) for which the string leads to different states.

    The strings have the given length T, and the result is an exact integer. With V symbols and Q states, there are
    V^T Q (Q - 1) triples. The result divided by this number is the probability that a random string leads two different
    random states to different states.

    Example:
        >>> from lengthwise.automata import library
        >>> num_apart(library.tomita(6).semiautomaton, 3) == 2**3 * 3 * 2  # counting modulo 3 forgets nothing
        True
    """
    first, second = machine.table[:, None], machine.table[None, :]
    # No entry exceeds the number of all triples. If this number exceeds 63 bits, Python integers keep counts exact.
    fits = machine.num_states**2 * machine.table.shape[1] ** length < 2**63
    apart = (1 - np.eye(machine.num_states, dtype=np.int64)).astype(np.int64 if fits else object)
    for _ in range(length):
        apart = apart[first, second].sum(axis=-1)
    return int(apart.sum())


def _draw(num_states: int, num_symbols: int, seed: int, attempt: int) -> DFA:
    """Draw next states as remainders of 64-bit words of a digest (uniform up to 2^-59), and acceptance as parities."""
    size = num_states * num_symbols
    text = f"random regular language: {num_states} states, {num_symbols} symbols, seed {seed}, attempt {attempt}"
    words = np.frombuffer(shake_256(text.encode()).digest(8 * (size + num_states)), dtype="<u8")
    table = (words[:size] % np.uint64(num_states)).astype(np.int64).reshape(num_states, num_symbols)
    accepting = (words[size:] % np.uint64(2)).astype(bool)
    return DFA(Semiautomaton(table, tuple(ascii_lowercase[:num_symbols])), 0, accepting)
