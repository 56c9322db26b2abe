"""Semiautomata: states, symbols and a transition table, and the searches that all finite machines share."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int64, Integer

from lengthwise.automata.refinement import Pair, coarsest_partition, first_difference
from lengthwise.validation import check_kind, texts_of, truncate

State = TypeVar("State", bound=Hashable)

MAX_TRANSITIONS = 10_000_000
"""The largest number of entries of a table that is built state by state or read from a file: about 400 MB."""

MAX_LOOPED_STRINGS = 32
"""The largest number of strings for which a Python loop over symbols is faster than one NumPy step per position."""


@dataclass(frozen=True, eq=False)
class Semiautomaton:
    """A finite set of states on which symbols act: ``table[q, v]`` is the state to which symbol v leads from state q.

    States are 0 ... Q-1, and symbols have the ids 0 ... V-1. The table is copied and made read-only.

    The machine of the example remembers whether the number of b is odd. Its symbols a and b have the ids 0 and 1:

        state      a  b
        0 (even)   0  1
        1 (odd)    1  0

    On the string b a b b, whose ids are 1 0 1 1, the machine goes from state 0 to the states 1, 1, 0, 1.

    Raises:
        ValueError: the table is not a [Q, V] array of states, or the symbols are not V distinct non-empty strings.

    Example:
        >>> flip = Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b"))
        >>> flip.run(np.array([[1, 0, 1, 1]]))
        array([[1, 1, 0, 1]])
    """

    table: Int64[np.ndarray, "Q V"]
    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        table = array_of("table", self.table)
        if table.ndim != 2 or table.size == 0 or not np.issubdtype(table.dtype, np.integer):
            raise ValueError(
                f"table: expected a non-empty [states, symbols] array of integers, "
                f"got shape {table.shape} of {table.dtype}; give one row per state and one column per symbol"
            )
        num_states, num_symbols = table.shape
        if table.min() < 0 or table.max() >= num_states:
            state, symbol = np.argwhere((table < 0) | (table >= num_states))[0].tolist()
            raise ValueError(
                f"table: expected next states in 0..{num_states - 1}, got {table[state, symbol]} "
                f"at state {state} and symbol {symbol}; add the missing state or fix the entry"
            )
        symbols = texts_of("symbols", self.symbols)
        if not all(symbols) or len(symbols) != num_symbols or len(set(symbols)) != num_symbols:
            raise ValueError(
                f"symbols: expected {num_symbols} distinct non-empty strings, got {self.symbols!r}; "
                "name every column of the table once"
            )
        set_frozen(self, table=table.astype(np.int64))
        object.__setattr__(self, "symbols", symbols)

    @property
    def num_states(self) -> int:
        """The number of states, Q."""
        return len(self.table)

    @property
    def num_symbols(self) -> int:
        """The number of symbols, V."""
        return len(self.symbols)

    def check_state(self, state: int, argument: str = "start") -> None:
        """Raise a ValueError unless `state` is one of this machine's states."""
        is_number = isinstance(state, int | np.integer) and not isinstance(state, bool)
        if not is_number or not 0 <= state < self.num_states:
            raise ValueError(
                f"{argument}: expected a state in 0..{self.num_states - 1}, got {state}; number the states from 0"
            )

    def check_strings(self, strings: Integer[np.ndarray, "B T"]) -> None:
        """Raise a ValueError unless the strings are a [B, T] array of ids of the alphabet."""
        is_array = isinstance(strings, np.ndarray)
        # An empty array has the type float, unless its type is given.
        if not is_array or strings.ndim != 2 or (strings.size and not np.issubdtype(strings.dtype, np.integer)):
            got = f"shape {strings.shape} of {strings.dtype}" if is_array else repr(strings)
            raise ValueError(
                f"strings: expected a [strings, length] array of integers, got {truncate(got)}; give the symbol ids as "
                "a NumPy array with two axes"
            )
        if strings.size and (strings.min() < 0 or strings.max() >= self.num_symbols):
            row, position = np.argwhere((strings < 0) | (strings >= self.num_symbols))[0].tolist()
            raise ValueError(
                f"strings: expected symbol ids in 0..{self.num_symbols - 1}, got {strings[row, position]} "
                f"in row {row} at position {position}; encode the string over {self.symbols!r}"
            )

    def check_labels(self, labels: np.ndarray, argument: str) -> None:
        """Raise a ValueError unless there is one label for every state."""
        if np.shape(labels) != (self.num_states,):
            raise ValueError(
                f"{argument}: expected one entry for each of the {self.num_states} states, got shape "
                f"{np.shape(labels)}; "
                "give the entries in the order of the states"
            )

    def check_same_symbols(self, other: "Semiautomaton") -> None:
        """Raise a ValueError unless `other` reads the same symbols in the same order."""
        check_kind("other", other, Semiautomaton, "a Semiautomaton")
        if self.symbols != other.symbols:
            raise ValueError(
                f"other: expected a machine over the symbols {self.symbols!r}, got {other.symbols!r}; "
                "rename or reorder the symbols of one machine"
            )

    def run(self, strings: Integer[np.ndarray, "B T"], start: int = 0) -> Int64[np.ndarray, "B T"]:
        """Return the state after every symbol of every string, with one step per position for the whole batch.

        Raises:
            ValueError: the strings are not a [B, T] array of ids in 0 ... V-1, or `start` is not a state.
        """
        rows, columns, row = self._prepare(strings, start)
        states = np.empty(columns.shape, dtype=np.int64)
        for position, symbols in enumerate(columns):
            row = rows.take(row + symbols)
            states[position] = row
        return (states // self.num_symbols).T

    def final_states(self, strings: Integer[np.ndarray, "B T"], start: int = 0) -> Int64[np.ndarray, " B"]:
        """Return the state at the end of every string (`start` itself if T is 0); errors are as in `run`."""
        if getattr(strings, "ndim", 0) == 2 and len(strings) <= MAX_LOOPED_STRINGS:
            return self._final_states_of_few(strings, start)
        rows, columns, row = self._prepare(strings, start)
        for symbols in columns:
            row = rows.take(row + symbols)
        return row // self.num_symbols

    def _final_states_of_few(self, strings: Integer[np.ndarray, "B T"], start: int) -> Int64[np.ndarray, " B"]:
        """Compute `final_states` one string at a time, in Python."""
        self.check_state(start)
        self.check_strings(strings)
        rows, states = self._rows, []
        for string in strings.tolist():
            state = start
            for symbol in string:
                state = rows[state][symbol]
            states.append(state)
        return np.array(states, dtype=np.int64)

    @cached_property
    def _rows(self) -> list[list[int]]:
        """The table as lists of Python integers."""
        rows: list[list[int]] = self.table.tolist()
        return rows

    def _prepare(
        self, strings: Integer[np.ndarray, "B T"], start: int
    ) -> tuple[Int64[np.ndarray, " N"], Integer[np.ndarray, "T B"], Int64[np.ndarray, " B"]]:
        """Check the input; return the flattened table, the strings with positions as the first axis, and the starts.

        Each state is represented by the index at which its row begins in the flattened table. So a step is an addition
        and a look-up.
        """
        self.check_state(start)
        self.check_strings(strings)
        row = np.full(len(strings), start * self.num_symbols, dtype=np.int64)
        return self.table.ravel() * self.num_symbols, np.ascontiguousarray(strings.T), row

    def transition_matrix(self, probabilities: Float[np.ndarray, " V"]) -> Float[np.ndarray, "Q Q"]:
        """Return the transition matrix for independent random symbols: ``matrix[q, r]`` = P(q goes to r)."""
        if np.shape(probabilities) != (self.num_symbols,) or not (np.asarray(probabilities) >= 0).all():
            got = truncate(repr(probabilities))
            raise ValueError(
                f"probabilities: expected a number of at least 0 for each of the {self.num_symbols} symbols, got "
                f"shape {np.shape(probabilities)}, {got}; give the probabilities in the order of the symbols"
            )
        matrix = np.zeros((self.num_states, self.num_states))
        # This is not `+=`, which would add only one probability if several symbols lead to the same state.
        np.add.at(matrix, (np.arange(self.num_states)[:, None], self.table), probabilities)
        return matrix

    def product(self, other: "Semiautomaton") -> "Semiautomaton":
        """Return the product automaton, which runs both machines on the same string.

        The pair of states (p, q) has the number ``p * other.num_states + q``.

        Raises:
            ValueError: the machines read different symbols.
        """
        self.check_same_symbols(other)
        table = self.table[:, None] * other.num_states + other.table[None, :]
        return Semiautomaton(table.reshape(-1, self.num_symbols), self.symbols)

    def edges(self) -> Iterator[tuple[int, str, int]]:
        """Yield each state with each symbol, and the state to which the symbol leads."""
        for state, row in enumerate(self.table.tolist()):
            for symbol, target in zip(self.symbols, row, strict=True):
                yield state, symbol, target

    def reordered(self, symbols: Sequence[str]) -> "Semiautomaton":
        """Return the same machine with its symbols in the given order; symbols are matched by name.

        Raises:
            ValueError: the given symbols are not the symbols of this machine.

        Example:
            >>> Semiautomaton(np.array([[0, 1], [1, 0]]), ("a", "b")).reordered(("b", "a")).table.tolist()
            [[1, 0], [0, 1]]
        """
        symbols = texts_of("symbols", symbols)
        for known, other, which in ((symbols, self.symbols, "first"), (self.symbols, symbols, "second")):
            if lacking := [symbol for symbol in known if symbol not in other]:
                raise ValueError(
                    f"machine: expected the same symbols in both machines, got {lacking[0]!r} only in the {which} "
                    "machine; rename this symbol, or add it to the other machine (with_symbols)"
                )
        ids = {symbol: column for column, symbol in enumerate(self.symbols)}
        return Semiautomaton(self.table[:, [ids[symbol] for symbol in symbols]], tuple(symbols))

    def shortest_string(self, start: int, targets: Bool[np.ndarray, " Q"]) -> tuple[str, ...] | None:
        """Return a shortest string that leads from `start` to a state in `targets`, or None if no string does.

        If there are several shortest strings, the first in symbol order is returned.

        Example:
            >>> cycle = Semiautomaton(np.array([[1], [2], [0]]), ("x",))
            >>> cycle.shortest_string(0, np.array([False, False, True]))
            ('x', 'x')
        """
        self.check_state(start)
        self.check_labels(targets, "targets")
        # Breadth-first search first reaches each state by a shortest string. Symbols are tried in their order. The
        # search takes Q V steps.
        came_from = {start: (start, -1)}
        for state in self._breadth_first(start, came_from):
            if targets[state]:
                string = []
                while state != start:
                    state, symbol = came_from[state]
                    string.append(self.symbols[symbol])
                return tuple(reversed(string))
        return None

    def first_difference(
        self, other: "Semiautomaton", starts: Pair, labels: Sequence[Sequence[int]], *, ignored: int | None = None
    ) -> tuple[str, ...] | None:
        """Return a shortest string after which the two machines' states have different labels; None if labels agree.

        If there are several shortest strings, the first in symbol order is returned. States with the `ignored` label do
        not differ from any state.

        Raises:
            ValueError: the machines read different symbols.
        """
        self.check_same_symbols(other)
        string = first_difference((self._rows, other._rows), starts, labels, ignored=ignored)
        return None if string is None else tuple(self.symbols[symbol] for symbol in string)

    def reachable(self, start: int) -> Int64[np.ndarray, " R"]:
        """Return all states to which strings lead from `start`, in breadth-first order."""
        self.check_state(start)
        return np.array(list(self._breadth_first(start, {start: (start, -1)})), dtype=np.int64)

    def leading_to(self, targets: Bool[np.ndarray, " Q"]) -> Bool[np.ndarray, " Q"]:
        """Return the states from which some string, possibly empty, leads to a state in `targets`.

        Example:
            >>> Semiautomaton(np.array([[1], [2], [2]]), ("x",)).leading_to(np.array([False, True, False])).tolist()
            [True, True, False]
        """
        self.check_labels(targets := np.asarray(targets, dtype=bool), "targets")
        while not np.array_equal(grown := targets | targets[self.table].any(axis=1), targets):
            targets = grown
        return targets

    def _breadth_first(self, start: int, came_from: dict[int, tuple[int, int]]) -> Iterator[int]:
        """Yield states breadth first; `came_from` gets the previous state and the symbol that lead to each state."""
        order = [start]
        for state in order:
            yield state
            for symbol, next_state in enumerate(self.table[state].tolist()):
                if next_state not in came_from:
                    came_from[next_state] = (state, symbol)
                    order.append(next_state)

    def quotient(self, start: int, labels: Int64[np.ndarray, " Q"]) -> tuple["Semiautomaton", Int64[np.ndarray, " R"]]:
        """Return the smallest machine that has this machine's label after every string, and the labels of its states.

        The start becomes state 0, and states are numbered breadth first. So equivalent machines have equal quotients.
        """
        self.check_labels(labels, "labels")
        kept = self.reachable(start)  # unreachable states must be removed, because refinement would keep them
        position = np.zeros(self.num_states, dtype=np.int64)
        position[kept] = np.arange(len(kept))
        table = position[self.table[kept]]
        # By Myhill and Nerode, the blocks of the coarsest partition of reachable states are the classes of strings that
        # no continuation separates, and no equivalent machine has fewer states. Reachable states are in breadth-first
        # order, so ranking blocks by their first states gives equal numbers for equivalent machines.
        blocks = coarsest_partition(table, labels[kept])
        _, first, blocks = np.unique(blocks, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.argsort(order)
        return Semiautomaton(rank[blocks][table[first[order]]], self.symbols), labels[kept][first[order]]


def array_of(argument: str, values: object) -> np.ndarray:
    """Return the values as a new array; raise a ValueError that names the argument if rows differ in length."""
    try:
        return np.array(values)
    except ValueError:
        raise ValueError(
            f"{argument}: expected rows of the same length, got rows of different lengths; complete the short rows"
        ) from None


def set_frozen(machine: object, **arrays: np.ndarray) -> None:
    """Set fields of a frozen dataclass to read-only arrays; frozen fields alone do not protect the arrays' entries."""
    for name, array in arrays.items():
        array.setflags(write=False)
        object.__setattr__(machine, name, array)


def whole_numbers(argument: str, values: object) -> Int64[np.ndarray, "*N"]:
    """Return the ids of states, classes or answers as a new int64 array; raise a ValueError for other types."""
    array = array_of(argument, values)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{argument}: expected whole numbers, got an array of {array.dtype}; number classes and answers from 0"
        )
    return array.astype(np.int64)


def check_symbols(alphabet: Sequence[str], *, are_words: bool | None = None) -> None:
    """Raise a ValueError unless the symbols are distinct characters or, if any is longer, distinct words.

    Words do not contain blanks, because blanks separate words in the text of a string. `are_words` requires words
    (True) or characters (False).
    """
    if are_words is None:
        are_words = any(len(symbol) > 1 for symbol in alphabet)
    kind, noun = ("words without blanks", "word") if are_words else ("single characters", "character")
    seen: set[str] = set()
    for symbol in alphabet:
        fits = isinstance(symbol, str) and (symbol.split() == [symbol] if are_words else len(symbol) == 1)
        if not fits or symbol in seen:
            raise ValueError(
                f"alphabet: expected distinct {kind}, got {truncate(repr(symbol))}"
                f"{' twice' if symbol in seen else ''}; give each symbol one {noun} of its own"
            )
        seen.add(symbol)


def explore(
    symbols: Sequence[str], start: State, step: Callable[[State, str], State]
) -> tuple[Semiautomaton, list[State]]:
    """Return the machine that the function `step` describes, and the value of each state; state 0 is `start`.

    `step(state, symbol)` returns the next state. In `step`, states are any hashable values. In the machine, they are
    numbered breadth first.

    Raises:
        ValueError: the table of the reachable states has more than `MAX_TRANSITIONS` entries.

    Example:
        >>> machine, meaning = explore(("0", "1"), 0, lambda total, digit: (total + int(digit)) % 3)
        >>> meaning, machine.table.tolist()
        ([0, 1, 2], [[0, 1], [1, 2], [2, 0]])
    """
    # States are numbered when first seen, and the list grows while it is read, so this is a breadth-first search.
    number = {start: 0}
    meaning = [start]
    table = []
    for state in meaning:
        row = []
        for symbol in symbols:
            next_state = step(state, symbol)
            if next_state not in number:
                if (len(meaning) + 1) * len(symbols) > MAX_TRANSITIONS:
                    raise ValueError(
                        f"machine: expected at most {MAX_TRANSITIONS:,} transitions, got more (over "
                        f"{len(meaning):,} states and {len(symbols):,} symbols); make the machine smaller"
                    )
                number[next_state] = len(meaning)
                meaning.append(next_state)
            row.append(number[next_state])
        table.append(row)
    return Semiautomaton(np.array(table, dtype=np.int64), tuple(symbols)), meaning
