"""Deterministic finite automata: recognition, Boolean operations, exact counts and uniform samples."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.drawing import MAX_DRAWN, machine_svg
from lengthwise.automata.sampling import StringSampler
from lengthwise.automata.semiautomaton import Semiautomaton, array_of, explore, set_frozen
from lengthwise.automata.transducer import Transducer
from lengthwise.validation import check_kind, texts_of, truncate


@dataclass(frozen=True, eq=False)
class DFA:
    """A complete deterministic automaton. It accepts the strings that lead to a state q with ``accepting[q]``.

    Raises:
        ValueError: `start` is not a state, or `accepting` does not have one Boolean for each state.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> odd = DFA(flip, 0, np.array([False, True]))
        >>> odd.accepts(np.array([[1, 0, 0], [1, 0, 1]]))
        array([ True, False])
        >>> odd.count(100) == 2**99
        True
    """

    semiautomaton: Semiautomaton
    start: int
    accepting: Bool[np.ndarray, " Q"]

    def __post_init__(self) -> None:
        accepting = array_of("accepting", self.accepting)
        check_kind("semiautomaton", self.semiautomaton, Semiautomaton, "a Semiautomaton")
        self.semiautomaton.check_state(self.start)
        self.semiautomaton.check_labels(accepting, "accepting")
        if accepting.dtype != np.bool_:
            raise ValueError(
                f"accepting: expected Booleans, got an array of {accepting.dtype}; mark every state True or False"
            )
        set_frozen(self, accepting=accepting)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols, in the order of their ids."""
        return self.semiautomaton.symbols

    @property
    def num_states(self) -> int:
        """The number of states, Q."""
        return self.semiautomaton.num_states

    @cached_property
    def transducer(self) -> Transducer:
        """The same machine as a transducer, which answers 1 to accepted prefixes and 0 to others."""
        return Transducer(self.semiautomaton, self.start, self.accepting.astype(np.int64))

    def _repr_svg_(self) -> str | None:
        """Return a drawing for notebooks, or None if there are too many states."""
        return machine_svg(self.transducer, REJECT_ACCEPT) if self.num_states <= MAX_DRAWN else None

    def accepts(self, strings: Int64[np.ndarray, "B T"]) -> Bool[np.ndarray, " B"]:
        """Return whether each string is in the language.

        Raises:
            ValueError: the strings are not a [B, T] array, or a symbol id lies outside the alphabet.
        """
        return np.asarray(self.accepting[self.semiautomaton.final_states(strings, self.start)])

    def accepts_each(self, strings: Sequence[Sequence[int]]) -> Bool[np.ndarray, " B"]:
        """Return whether each string is in the language; strings may differ in length, and may be empty.

        Raises:
            ValueError: a symbol id lies outside the alphabet.

        Example:
            >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
            >>> DFA(flip, 0, np.array([False, True])).accepts_each([(), (1,), (1, 0, 1)])
            array([False,  True, False])
        """
        if not hasattr(strings, "__len__") or any(
            not hasattr(one, "__len__") or isinstance(one, str) for one in strings
        ):
            raise ValueError(
                f"strings: expected lists of symbol ids, got {truncate(repr(strings))}; give the ids of each string, "
                "as in [(0, 1), (1,)]"
            )
        lengths = np.array([len(string) for string in strings], np.int64)
        accepted = np.empty(len(strings), bool)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            accepted[rows] = self.accepts(np.array([strings[row] for row in rows.tolist()], np.int64))
        return accepted

    def complement(self) -> "DFA":
        """Return the automaton that accepts exactly the strings that this automaton rejects."""
        return DFA(self.semiautomaton, self.start, ~self.accepting)

    def _combined(self, other: "DFA", op: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> "DFA":
        """Return the smallest automaton that accepts exactly the strings for which `op` of the two answers is True.

        The two automata may list their symbols in different orders. Only reachable pairs of states are built.
        """
        tables = self.semiautomaton.table.tolist(), other.semiautomaton.reordered(self.symbols).table.tolist()
        ids = {symbol: v for v, symbol in enumerate(self.symbols)}

        def step(pair: tuple[int, int], symbol: str) -> tuple[int, int]:
            return tables[0][pair[0]][ids[symbol]], tables[1][pair[1]][ids[symbol]]

        machine, pairs = explore(self.symbols, (self.start, other.start), step)
        first, second = np.array(pairs).T
        return DFA(machine, 0, op(self.accepting[first], other.accepting[second])).minimize()

    def __and__(self, other: "DFA") -> "DFA":
        """Return the smallest automaton of the two languages' intersection; errors are as in `excess_string`.

        Example:
            >>> from lengthwise.automata.regex import dfa_from_regex
            >>> first, second = dfa_from_regex("a*b*"), dfa_from_regex("(ab)*")
            >>> (first & second).equivalent(dfa_from_regex("(ab)?"))
            True
            >>> (first | second).accepts(np.array([[0, 1, 0, 1], [0, 0, 1, 1], [1, 0, 1, 0]]))
            array([ True,  True, False])
            >>> (first - second) <= ~second, first <= second
            (True, False)
        """
        return self._combined(other, np.logical_and) if isinstance(other, DFA) else NotImplemented

    def __or__(self, other: "DFA") -> "DFA":
        """Return the smallest automaton of the two languages' union; errors are as in `excess_string`."""
        return self._combined(other, np.logical_or) if isinstance(other, DFA) else NotImplemented

    def __sub__(self, other: "DFA") -> "DFA":
        """Return the smallest automaton of the first language minus the second; errors are as in `excess_string`."""
        return self._combined(other, np.greater) if isinstance(other, DFA) else NotImplemented

    def __invert__(self) -> "DFA":
        """Return the automaton that accepts exactly the strings that this automaton rejects."""
        return self.complement()

    def __le__(self, other: "DFA") -> bool:
        """Return whether the other automaton accepts every string that this one accepts (see `excess_string`)."""
        return self.excess_string(other) is None if isinstance(other, DFA) else NotImplemented

    def excess_string(self, other: "DFA") -> tuple[str, ...] | None:
        """Return a shortest string that this automaton accepts and the other rejects, or None if no such string exists.

        Symbols are matched by name, in any order. If several shortest strings exist, the first in this automaton's
        symbol order is returned.

        Raises:
            ValueError: one automaton reads a symbol that the other does not, or the automaton of the pairs of states
                needs more than 10,000,000 transitions.

        Example:
            >>> from lengthwise.automata.regex import dfa_from_regex
            >>> dfa_from_regex("(a|b)*b").excess_string(dfa_from_regex("(a|b)*bb"))
            ('b',)
        """
        check_kind("other", other, DFA, "a DFA")
        excess = self - other
        return excess.semiautomaton.shortest_string(excess.start, excess.accepting)

    def with_symbols(self, symbols: Sequence[str]) -> "DFA":
        """Return an automaton of the same language over more symbols; it rejects every string with a new symbol.

        Example:
            >>> from lengthwise.automata.regex import dfa_from_regex
            >>> dfa_from_regex("a*").with_symbols("ab").equivalent(dfa_from_regex("a*", "ab"))
            True
        """
        given = dict.fromkeys(texts_of("symbols", symbols))
        if not (new := [symbol for symbol in given if symbol not in self.symbols]):
            return self
        # New symbols lead to a sink, because no later symbol may lead back to an accepting state.
        table = self.semiautomaton.table
        sink = len(table)
        known = np.vstack([table, np.full(table.shape[1], sink)])
        machine = Semiautomaton(np.hstack([known, np.full((sink + 1, len(new)), sink)]), (*self.symbols, *new))
        return DFA(machine, self.start, np.append(self.accepting, False))

    def minimize(self) -> "DFA":
        """Return the smallest automaton of the language; automata of the same language give equal results."""
        # By Myhill and Nerode, the smallest automaton is unique up to the names of its states. Numbering states breadth
        # first makes the names unique as well.
        smallest = self.transducer.minimize()
        return DFA(smallest.semiautomaton, smallest.start, smallest.outputs == 1)

    def difference_string(self, other: "DFA") -> tuple[str, ...] | None:
        """Return a shortest string that exactly one of the two automata accepts, or None if they are equivalent.

        If several shortest strings exist, the first in symbol order is returned.

        Raises:
            ValueError: the automata read different symbols.
        """
        check_kind("other", other, DFA, "a DFA")
        return self.transducer.difference_string(other.transducer)

    def equivalent(self, other: "DFA") -> bool:
        """Return whether the two automata accept the same strings; errors are as in `difference_string`."""
        return self.difference_string(other) is None

    def count(self, length: int) -> int:
        """Return the exact number of accepted strings of this length.

        Raises:
            ValueError: the length is not a whole number of at least 0.
        """
        if not isinstance(length, int | np.integer) or isinstance(length, bool) or length < 0:
            raise ValueError(
                f"length: expected a whole number of symbols, at least 0, got {length!r}; give the length of a string"
            )
        counts = self.accepting.astype(object) * 1  # Python integers, because counts of long strings exceed 64 bits
        # The count for length r at a state is the sum, over all symbols, of the counts for r - 1 at the next states.
        for _ in range(length):
            counts = counts[self.semiautomaton.table].sum(axis=1)
        return int(counts[self.start])

    @cached_property
    def _sampler(self) -> StringSampler:
        return joint_sampler([self])

    def sample(self, uniforms: Float64[np.ndarray, "B T"]) -> Int64[np.ndarray, "B T"]:
        """Draw an accepted string of length T for each row of `uniforms`; all accepted strings are equally likely.

        `complement().sample` draws rejected strings. `uniforms` contains uniform numbers in [0, 1). They are the only
        source of randomness, so the caller chooses the generator.

        Raises:
            ValueError: no string of length T is accepted, or a number is not in [0, 1).

        Example:
            >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
            >>> odd = DFA(flip, 0, np.array([False, True]))
            >>> odd.sample(np.array([[0.2, 0.7, 0.9], [0.6, 0.1, 0.9]]))
            array([[0, 1, 0],
                   [1, 0, 0]])
        """
        if not isinstance(uniforms, np.ndarray) or uniforms.ndim != 2:
            got = f"shape {uniforms.shape}" if isinstance(uniforms, np.ndarray) else truncate(repr(uniforms))
            raise ValueError(
                f"uniforms: expected an array [strings, length] of numbers in [0, 1), got {got}; draw it with "
                "numpy.random.default_rng(seed).random((strings, length))"
            )
        if not np.issubdtype(uniforms.dtype, np.number) or not ((uniforms >= 0) & (uniforms < 1)).all():
            raise ValueError(
                "uniforms: expected numbers in [0, 1), got others; draw them with Generator.random of NumPy"
            )
        return self._sampler.sample(uniforms, np.zeros(len(uniforms), dtype=np.int64))

    def to_json(self) -> dict[str, Any]:
        """Return the symbols, the next states of each state, the accepting states and the start.

        Example:
            >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
            >>> DFA(flip, 0, np.array([False, True])).to_json()
            {'alphabet': ['a', 'b'], 'transitions': [[0, 1], [1, 0]], 'accepting': [1], 'start': 0}
        """
        return {
            "alphabet": list(self.symbols),
            "transitions": self.semiautomaton.table.tolist(),
            "accepting": np.flatnonzero(self.accepting).tolist(),
            "start": int(self.start),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "DFA":
        """Build an automaton from the content that `to_json` returns.

        Raises:
            ValueError: an entry is missing or unknown; a state does not have one next state for every symbol; a state
                does not exist; symbols are not distinct.
        """
        check_kind("content", content, Mapping, "the entries of an automaton")
        entries = ("alphabet", "transitions", "accepting", "start")
        if set(content) != set(entries):
            raise ValueError(
                f"content: expected the entries {list(entries)}, got {list(content)}; give exactly the expected entries"
            )
        for entry in entries[:3]:
            check_kind(entry, content[entry], Collection, "a list")
        alphabet, transitions, accepting, start = (content[entry] for entry in entries)
        _check_transitions(transitions, len(alphabet))
        machine = Semiautomaton(np.array(transitions), tuple(alphabet))
        for state in accepting:
            if isinstance(state, bool):
                raise ValueError(
                    f"accepting: expected state numbers, got {state}; list the numbers of the accepting states"
                )
            machine.check_state(state, "accepting")
        return cls(machine, start, np.isin(np.arange(machine.num_states), accepting))


def dfa_from_automata_lib(machine: Any) -> DFA:
    """Return the automaton of a DFA object of automata-lib, with sorted symbols.

    States are numbered breadth first from the start, and unreachable states are left out. A missing transition leads to
    a rejecting sink, as in automata-lib.

    Raises:
        ValueError: the object is not a DFA.

    Example:
        >>> from automata.fa import dfa as automata_lib
        >>> dfa_from_automata_lib(automata_lib.DFA.from_finite_language({"a", "b"}, {"ab"})).to_json()["transitions"]
        [[1, 2], [2, 3], [2, 2], [2, 2]]
    """
    from automata.fa import dfa as automata_lib  # imported here, because the library is optional

    if not isinstance(machine, automata_lib.DFA):
        raise ValueError(
            f"machine: expected a DFA of automata-lib, got {type(machine).__name__}; convert an NFA by DFA.from_nfa"
        )
    sink = object()

    def step(state: Any, symbol: str) -> Any:
        return machine.transitions.get(state, {}).get(symbol, sink)

    table, states = explore(sorted(machine.input_symbols, key=str), machine.initial_state, step)
    return DFA(table, 0, np.array([state in machine.final_states for state in states]))


def _check_transitions(transitions: Sequence[Sequence[int]], num_symbols: int) -> None:
    """Raise a ValueError unless every state has an existing next state for each symbol."""
    if not transitions or not num_symbols:
        raise ValueError(
            f"transitions: expected at least one state and one symbol, got {len(transitions)} states and "
            f"{num_symbols} symbols; give the next states of each state"
        )
    for state, successors in enumerate(transitions):
        if len(successors) != num_symbols:
            raise ValueError(
                f"transitions: expected a next state for each of the {num_symbols} symbols, got {len(successors)} for "
                f"state {state}; give a next state for every symbol"
            )
        for symbol, target in enumerate(successors):
            if not isinstance(target, int) or not 0 <= target < len(transitions):
                raise ValueError(
                    f"transitions: expected next states in 0..{len(transitions) - 1}, got {target!r} for state {state} "
                    f"and symbol {symbol}; add the missing state or fix the entry"
                )


def joint_sampler(languages: Sequence[DFA], repeat_weights: Sequence[float] = (1.0,)) -> StringSampler:
    """Return one sampler for several languages over one alphabet; it has a start for each language and weight.

    Start ``w * len(languages) + i`` draws from ``languages[i]`` with ``repeat_weights[w]``. If n symbols of a string
    repeat the previous symbol, the string's probability is proportional to ``repeat_weights[w]`` to the power n. Weight
    1 draws uniformly, and larger weights prefer long runs. The automata are joined in one table, so one pass can draw
    from several languages and weights.

    Raises:
        ValueError: the list of languages is empty, or the automata read different symbols.
    """
    check_kind("languages", languages, Collection, "a list of DFAs")
    check_kind("repeat_weights", repeat_weights, Collection, "a list of numbers")
    if not languages:
        raise ValueError("languages: expected at least one automaton, got none; give the languages to draw from")
    for index, language in enumerate(languages):
        check_kind(f"languages[{index}]", language, DFA, "a DFA")
    if not len(repeat_weights):
        raise ValueError("repeat_weights: expected at least one weight, got none; give (1.0,) to draw uniformly")
    for language in languages[1:]:
        languages[0].semiautomaton.check_same_symbols(language.semiautomaton)
    parts = [_weight_repeats(language, weight) for weight in repeat_weights for language in languages]
    # In the joined table, each automaton has its own state numbers, so no automaton can reach another one.
    offsets = np.cumsum([0, *(machine.num_states for machine, _ in parts[:-1])])
    tables = [machine.semiautomaton.table + offset for (machine, _), offset in zip(parts, offsets, strict=True)]
    return StringSampler(
        Semiautomaton(np.concatenate(tables), languages[0].symbols),
        offsets + np.array([machine.start for machine, _ in parts]),
        np.concatenate([machine.accepting for machine, _ in parts]),
        np.concatenate([weights for _, weights in parts]),
    )


def _weight_repeats(language: DFA, weight: float) -> tuple[DFA, Float64[np.ndarray, "Q V"]]:
    """Return an automaton, and a weight of each transition: `weight` if it repeats the last symbol, else 1.

    The automaton accepts `language`. If the weight is not 1, its states remember the last symbol.
    """
    table = language.semiautomaton.table
    if weight == 1:
        return language, np.ones(table.shape)
    ids = {symbol: v for v, symbol in enumerate(language.symbols)}
    # Weights belong to transitions, so the state must contain the last symbol to show a repetition.
    machine, meaning = explore(language.symbols, (language.start, -1), lambda q, v: (int(table[q[0], ids[v]]), ids[v]))
    states, last = np.array(meaning).T
    weights = np.where(last[:, None] == np.arange(len(ids)), weight, 1.0)
    return DFA(machine, 0, language.accepting[states]), weights
