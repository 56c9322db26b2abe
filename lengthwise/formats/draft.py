"""A machine under construction from a file: named states, edges and answers."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import Semiautomaton, explore
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE

MAX_SETS = 10_000
"""The largest number of sets of states in the subset construction of a nondeterministic automaton."""

MAX_MEMBERS = 10_000_000
"""The largest total size of the sets in the subset construction, in states. Each step from a set by a symbol counts the
states of the set and the states of its successor."""

MAX_EDGES = 1_000_000
"""The largest number of edges. An edge with several symbols counts once for each symbol."""

MAX_TRANSITIONS = 20_000_000
"""The largest size of a table: the number of states times the number of symbols."""

MAX_NAME = 1_000
"""The largest number of characters in a symbol or answer."""


class Draft:
    """A collection of states and edges that becomes an automaton, a Moore machine or a Mealy machine.

    States and symbols are numbered in the order in which they are added. An automaton may be nondeterministic. The
    states of the result are then sets of states, one for each set that a string leads to.

    Example:
        >>> draft = Draft()
        >>> draft.add_edge("even", "b", "odd")
        >>> draft.add_edge("odd", "b", "even")
        >>> draft.set_start("even")
        >>> draft.automaton({"odd"}).machine.outputs.tolist()
        [0, 1]
    """

    def __init__(self) -> None:
        self._states: dict[str, int] = {}
        self._symbols: dict[str, int] = {}
        self._edges: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        self._empty_edges: dict[str, list[str]] = {}
        self._start: str | None = None
        self._num_edges = 0

    def add_state(self, name: str) -> None:
        """Give a state the next number, unless it already has a number."""
        self._states.setdefault(name, len(self._states))

    def add_symbol(self, name: str) -> None:
        """Give a symbol the next number, unless it already has a number."""
        _check_name(name)
        self._symbols.setdefault(name, len(self._symbols))

    def check_state(self, name: str) -> None:
        """Raise a ValueError unless the state was added."""
        if name not in self._states:
            raise ValueError(f"state {name!r} is used, but not declared; declare it")

    def set_start(self, name: str) -> None:
        """Set the initial state; raise a ValueError if another state is already the initial one."""
        if self._start not in (None, name):
            raise ValueError(f"expected one initial state, got {self._start!r} and {name!r}; choose one")
        self._start = name

    def set_starts(self, names: Collection[str]) -> None:
        """Let an automaton begin in several states: edges that read nothing lead to them from a new initial state."""
        # A single initial state needs no empty edge, which would make the subset construction necessary.
        if len(names) < 2:
            for state in names:
                self.set_start(state)
            return
        for state in names:
            self.check_state(state)
        start = self._new_name("start")
        for state in names:
            self.add_empty_edge(start, state)
        self.set_start(start)

    def add_edge(self, source: str, symbol: str, target: str, output: str = "") -> None:
        """Add an edge, and also its states and its symbol if they are new."""
        if not symbol:
            raise ValueError(
                f"expected a symbol on each edge, got no symbol on an edge from state {source!r}; give this edge a "
                "symbol"
            )
        self._count_edge()
        for state in (source, target):
            self.add_state(state)
        self.add_symbol(symbol)
        _check_name(output)
        self._edges.setdefault((source, symbol), {})[target, output] = None

    def add_empty_edge(self, source: str, target: str) -> None:
        """Add an edge that reads nothing, and also its states if they are new."""
        self._count_edge()
        for state in (source, target):
            self.add_state(state)
        self._empty_edges.setdefault(source, []).append(target)

    def automaton(self, accepting: Collection[str]) -> LabeledMachine:
        """Return the automaton with these accepting states; missing edges lead to a rejecting sink."""
        if self._empty_edges or any(len(targets) > 1 for targets in self._edges.values()):
            return self._determinized(accepting)
        table = self._table()
        outputs = np.zeros(len(table), dtype=np.int64)
        for state in accepting:
            self.check_state(state)
            outputs[self._states[state]] = 1
        machine = Semiautomaton(table, tuple(self._symbols))
        return LabeledMachine(Transducer(machine, self._start_number(), outputs), REJECT_ACCEPT)

    def moore(self, outputs: Mapping[str, str]) -> LabeledMachine:
        """Return the machine whose states have these answers; an empty text means no answer.

        Strings for which an edge is missing have no answer.
        """
        table, start = self._table(), self._start_number()
        names = [outputs.get(state, "") for state in self._states]
        names += [""] * (len(table) - len(names))
        return _labeled(Semiautomaton(table, tuple(self._symbols)), start, names)

    def mealy(self) -> LabeledMachine:
        """Return the machine whose answer is the output of the last edge; an empty output means no answer.

        The states of the result are pairs of a state and the last output, so the empty string has no answer. Strings
        for which an edge is missing have no answer either.
        """
        self._check_symbols()
        self._check_deterministic()
        # The size is checked before the machine is built. The machine's states are the pairs of a target and an output,
        # the start and a sink.
        self._check_size(len({pair for targets in self._edges.values() for pair in targets}) + 2)
        missing = {(self._new_name("missing"), ""): None}
        machine, meaning = explore(
            tuple(self._symbols),
            (list(self._states)[self._start_number()], ""),
            lambda state, symbol: next(iter(self._edges.get((state[0], symbol), missing))),
        )
        return _labeled(machine, 0, [output for _, output in meaning])

    def _determinized(self, accepting: Collection[str]) -> LabeledMachine:
        """Return the automaton whose states are the sets of states that strings lead to (subset construction)."""
        for state in accepting:
            self.check_state(state)
        self._check_symbols()
        seen: set[frozenset[str]] = set()
        num_members = 0

        def closed(states: Iterable[str]) -> frozenset[str]:
            """Return these states and all states that they reach by edges that read nothing."""
            known = dict.fromkeys(states)
            for state in (queue := list(known)):
                new = [target for target in self._empty_edges.get(state, ()) if target not in known]
                known.update(dict.fromkeys(new))
                queue += new
            return frozenset(known)

        def step(states: frozenset[str], symbol: str) -> frozenset[str]:
            nonlocal num_members
            after = closed(target for state in states for target, _ in self._edges.get((state, symbol), ()))
            seen.add(after)
            num_members += len(states) + len(after)
            # A small file of n states can lead to 2^n sets, and a few sets can be large, so number and total size are
            # bounded.
            if len(seen) > MAX_SETS or num_members > MAX_MEMBERS:
                limit = (
                    f"{MAX_SETS:,} sets of states"
                    if len(seen) > MAX_SETS
                    else f"{MAX_MEMBERS:,} states in all its sets"
                )
                raise ValueError(
                    f"expected a subset construction with at most {limit}, got more; give a smaller nondeterministic "
                    "automaton"
                )
            return after

        start = list(self._states)[self._start_number()]
        machine, meaning = explore(tuple(self._symbols), closed([start]), step)
        final = frozenset(accepting)
        outputs = np.array([int(not states.isdisjoint(final)) for states in meaning])
        return LabeledMachine(Transducer(machine, 0, outputs), REJECT_ACCEPT)

    def _start_number(self) -> int:
        if self._start is None:
            raise ValueError("expected an initial state, got none; mark a state as initial")
        self.check_state(self._start)
        return self._states[self._start]

    def _check_symbols(self) -> None:
        if not self._symbols:
            raise ValueError("expected edges with symbols, got no such edge; give at least one edge a symbol")

    def _count_edge(self) -> None:
        self._num_edges += 1
        if self._num_edges > MAX_EDGES:
            raise ValueError(f"expected at most {MAX_EDGES:,} edges, got more edges; make the machine smaller")

    def _new_name(self, name: str) -> str:
        while name in self._states:
            name += "'"
        return name

    def _check_deterministic(self) -> None:
        if self._empty_edges:
            source, (target, *_) = next(iter(self._empty_edges.items()))
            raise ValueError(
                "expected a symbol on each edge of a machine with outputs, got none on the edge from state "
                f"{source!r} to {target!r}; add a symbol"
            )
        for (source, symbol), targets in self._edges.items():
            if len(targets) > 1:
                raise ValueError(
                    "expected at most one edge for each state and symbol in a machine with outputs, got two for state "
                    f"{source!r} and symbol {symbol!r}; remove one of them"
                )

    def _check_size(self, num_states: int) -> None:
        if num_states * len(self._symbols) > MAX_TRANSITIONS:
            raise ValueError(
                f"expected at most {MAX_TRANSITIONS:,} transitions, got {num_states * len(self._symbols):,} "
                f"({num_states:,} states and {len(self._symbols):,} symbols); make the machine smaller"
            )

    def _table(self) -> np.ndarray:
        """Return the table of next states. If an edge is missing, an additional last row is the sink."""
        self._check_symbols()
        self._check_deterministic()
        sink = len(self._states)
        self._check_size(sink + 1)
        table = np.full((sink + 1, len(self._symbols)), sink)
        for (source, symbol), [(target, _)] in self._edges.items():
            table[self._states[source], self._symbols[symbol]] = self._states[target]
        return table if (table[:sink] == sink).any() else table[:sink]


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME:
        raise ValueError(
            f"expected symbols and answers of at most {MAX_NAME:,} characters, got {len(name):,} in {name[:40]!r}...; "
            "rename it"
        )


def _labeled(machine: Semiautomaton, start: int, names: list[str]) -> LabeledMachine:
    """Return the machine whose state q answers with `names[q]`; an empty name means no answer."""
    classes = tuple(sorted(set(names) - {""}))
    numbers = {name: number for number, name in enumerate(classes)} | {"": IGNORE}
    return LabeledMachine(Transducer(machine, start, np.array([numbers[name] for name in names])), classes)
