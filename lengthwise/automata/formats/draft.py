"""A machine as a file tells it, piece by piece: named states, edges and answers."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from lengthwise.automata.answers import REJECT_ACCEPT
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.automata.semiautomaton import Semiautomaton, explore
from lengthwise.automata.transducer import Transducer
from lengthwise.conventions import IGNORE

MAX_SETS = 10_000
"""Sets of states of a nondeterministic automaton, at most."""


class Draft:
    """Collects states and edges; becomes an automaton, a Moore machine or a Mealy machine.

    States and symbols are numbered in the order in which they come. An automaton may be nondeterministic: its states
    are then the sets of states that strings lead to.

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
        self._edges: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._empty_edges: dict[str, list[str]] = {}
        self._start: str | None = None

    def add_state(self, name: str) -> None:
        """Number a state, unless it has a number."""
        self._states.setdefault(name, len(self._states))

    def add_symbol(self, name: str) -> None:
        """Number a symbol, unless it has a number."""
        self._symbols.setdefault(name, len(self._symbols))

    def check_state(self, name: str) -> None:
        """Raise a ValueError unless the state was added."""
        if name not in self._states:
            raise ValueError(f"state {name!r} is used and nowhere declared; declare it")

    def set_start(self, name: str) -> None:
        """Raise a ValueError where another state is the initial one."""
        if self._start not in (None, name):
            raise ValueError(f"expected one initial state, got {self._start!r} and {name!r}; choose one")
        self._start = name

    def add_edge(self, source: str, symbol: str, target: str, output: str = "") -> None:
        """Add states, symbol and edge."""
        if not symbol:
            raise ValueError(f"expected a symbol on each edge, got none from state {source!r}; give it one")
        for state in (source, target):
            self.add_state(state)
        self.add_symbol(symbol)
        targets = self._edges.setdefault((source, symbol), [])
        if (target, output) not in targets:
            targets.append((target, output))

    def add_empty_edge(self, source: str, target: str) -> None:
        """Add states, and an edge that reads nothing."""
        for state in (source, target):
            self.add_state(state)
        self._empty_edges.setdefault(source, []).append(target)

    def automaton(self, accepting: Collection[str]) -> LabeledMachine:
        """The machine that accepts in these states; edges that are missing lead to a sink that rejects."""
        if self._empty_edges or any(len(targets) > 1 for targets in self._edges.values()):
            return self._determinized(accepting)
        sink = len(self._states)
        table = self._table(default=sink)
        if (table == sink).any():
            table = np.vstack([table, np.full(table.shape[1], sink)])
        outputs = np.zeros(len(table), dtype=np.int64)
        for state in accepting:
            self.check_state(state)
            outputs[self._states[state]] = 1
        return LabeledMachine(Transducer(self._semiautomaton(table), self._start_number(), outputs), REJECT_ACCEPT)

    def moore(self, outputs: Mapping[str, str]) -> LabeledMachine:
        """The machine with the answer of each state; an empty one is no answer."""
        table, start = self._table(), self._start_number()
        names = [outputs.get(state, "") for state in self._states]
        return _labeled(self._semiautomaton(table), start, names)

    def mealy(self) -> LabeledMachine:
        """The machine whose answer is the output of the last edge; an empty one is no answer.

        Its states are the pairs of a state and the last output, so that the empty string has no answer.
        """
        self._table()
        names = list(self._states)
        machine, meaning = explore(
            tuple(self._symbols),
            (names[self._start_number()], ""),
            lambda state, symbol: self._edges[state[0], symbol][0],
        )
        return _labeled(machine, 0, [output for _, output in meaning])

    def _determinized(self, accepting: Collection[str]) -> LabeledMachine:
        """The machine of the sets of states that strings lead to, by the subset construction."""
        for state in accepting:
            self.check_state(state)
        self._check_symbols()
        seen: set[frozenset[str]] = set()

        def closed(states: Iterable[str]) -> frozenset[str]:
            """These, and those that edges lead to which read nothing."""
            known = dict.fromkeys(states)
            for state in (queue := list(known)):
                new = [target for target in self._empty_edges.get(state, ()) if target not in known]
                known.update(dict.fromkeys(new))
                queue += new
            return frozenset(known)

        def step(states: frozenset[str], symbol: str) -> frozenset[str]:
            after = closed(target for state in states for target, _ in self._edges.get((state, symbol), ()))
            seen.add(after)
            if len(seen) > MAX_SETS:
                raise ValueError(
                    f"expected a nondeterministic automaton whose strings lead to at most {MAX_SETS:,} sets of states, "
                    "got more; make it smaller"
                )
            return after

        start = list(self._states)[self._start_number()]
        machine, meaning = explore(tuple(self._symbols), closed([start]), step)
        outputs = np.array([int(not states.isdisjoint(accepting)) for states in meaning])
        return LabeledMachine(Transducer(machine, 0, outputs), REJECT_ACCEPT)

    def _start_number(self) -> int:
        if self._start is None:
            raise ValueError("expected an initial state, got none; mark one")
        self.check_state(self._start)
        return self._states[self._start]

    def _semiautomaton(self, table: np.ndarray) -> Semiautomaton:
        return Semiautomaton(table, tuple(self._symbols))

    def _check_symbols(self) -> None:
        if not self._symbols:
            raise ValueError("expected edges with symbols, got none; a machine has at least one symbol")

    def _table(self, default: int | None = None) -> np.ndarray:
        """The numbers of next states; `default` where there is none, or else a ValueError."""
        self._check_symbols()
        if self._empty_edges:
            source, (target, *_) = next(iter(self._empty_edges.items()))
            raise ValueError(
                f"expected a symbol on each edge, got none from state {source!r} to {target!r}; only automata may have "
                "such edges"
            )
        table = np.full((len(self._states), len(self._symbols)), -1 if default is None else default)
        for (source, symbol), [(target, _), *others] in self._edges.items():
            if others:
                raise ValueError(
                    f"expected one edge of each symbol, got two of {symbol!r} from state {source!r}; only automata may "
                    "be nondeterministic"
                )
            table[self._states[source], self._symbols[symbol]] = self._states[target]
        if (table < 0).any():
            state, column = np.argwhere(table < 0)[0].tolist()
            raise ValueError(
                f"expected an edge of each symbol, got none of {list(self._symbols)[column]!r} from state "
                f"{list(self._states)[state]!r}; only automata are completed, by a sink that rejects"
            )
        return table


def _labeled(machine: Semiautomaton, start: int, names: list[str]) -> LabeledMachine:
    """A machine whose states have answers of these names."""
    classes = tuple(sorted(set(names) - {""}))
    outputs = np.array([classes.index(name) if name else IGNORE for name in names])
    return LabeledMachine(Transducer(machine, start, outputs), classes)
