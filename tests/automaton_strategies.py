"""Random small automata for hypothesis, and their translation into automata-lib, the independent oracle."""

import automata.fa.dfa as oracle_library
import numpy as np
import pytest
from hypothesis import strategies as st

from lengthwise.automata import DFA, Semiautomaton, Transducer
from lengthwise.automata.labeled import LabeledMachine, labeled_dfa
from lengthwise.conventions import IGNORE

checked_strategies = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
"""Mark of tests whose strategies build machines: beartype checks a random item of their tuples, which draws nothing."""


@st.composite
def semiautomata(draw: st.DrawFn, symbols: tuple[str, ...] | None = None, max_states: int = 7) -> Semiautomaton:
    symbols = symbols or tuple("abc"[: draw(st.integers(1, 3))])
    num_states = draw(st.integers(1, max_states))
    row = st.lists(st.integers(0, num_states - 1), min_size=len(symbols), max_size=len(symbols))
    table = draw(st.lists(row, min_size=num_states, max_size=num_states))
    return Semiautomaton(np.array(table), symbols)


@st.composite
def dfas(draw: st.DrawFn, symbols: tuple[str, ...] | None = None) -> DFA:
    machine = draw(semiautomata(symbols))
    states = machine.num_states
    accepting = draw(st.lists(st.booleans(), min_size=states, max_size=states))
    return DFA(machine, draw(st.integers(0, states - 1)), np.array(accepting))


@st.composite
def transducers(draw: st.DrawFn, symbols: tuple[str, ...] | None = None, max_states: int = 7) -> Transducer:
    machine = draw(semiautomata(symbols, max_states))
    states = machine.num_states
    outputs = draw(st.lists(st.integers(-1, 2), min_size=states, max_size=states))
    return Transducer(machine, draw(st.integers(0, states - 1)), np.array(outputs))


@st.composite
def moore_machines(draw: st.DrawFn, symbols: tuple[str, ...] | None = None) -> LabeledMachine:
    """Machines with up to three answers, and states without one."""
    machine = draw(semiautomata(symbols))
    answers = st.sampled_from([IGNORE, 0, 1, 2])
    outputs = draw(st.lists(answers, min_size=machine.num_states, max_size=machine.num_states))
    classes = draw(st.sampled_from([("x", "y", "z"), ("yes", "no", '{a|b} \\ "c"/d'), ("0", "10", "1")]))
    start = draw(st.integers(0, machine.num_states - 1))
    return LabeledMachine(Transducer(machine, start, np.array(outputs)), classes)


@st.composite
def labeled_machines(draw: st.DrawFn, symbols: tuple[str, ...] | None = None) -> LabeledMachine:
    """Automata and Moore machines."""
    return draw(moore_machines(symbols)) if draw(st.booleans()) else labeled_dfa(draw(dfas(symbols)))


def oracle(dfa: DFA) -> oracle_library.DFA:
    return oracle_library.DFA(
        states=set(range(dfa.num_states)),
        input_symbols=set(dfa.symbols),
        transitions={
            state: dict(zip(dfa.symbols, row, strict=True))
            for state, row in enumerate(dfa.semiautomaton.table.tolist())
        },
        initial_state=dfa.start,
        final_states=set(np.flatnonzero(dfa.accepting).tolist()),
    )


def all_strings(num_symbols: int, length: int) -> np.ndarray:
    """Every string of this length, in symbol order."""
    return np.indices((num_symbols,) * length).reshape(length, num_symbols**length).T.astype(np.int64)


def long_string(machine: Transducer, length: int, seed: int) -> np.ndarray:
    """Symbols at random, but only such as avoid a sink, and states that nothing else follows, while others do."""
    table = machine.semiautomaton.table
    over = (table == np.arange(machine.num_states)[:, None]).all(1)
    for _ in range(machine.num_states):
        over = over | over[table].all(1)
    ways = [np.flatnonzero(~over[row]).tolist() or list(range(len(row))) for row in table]
    state, string = machine.start, []
    for draw in np.random.default_rng(seed).integers(1 << 30, size=length).tolist():
        string.append(ways[state][draw % len(ways[state])])
        state = int(table[state, string[-1]])
    return np.array(string)


def telling_strings(machine: Transducer, length: int) -> list[tuple[np.ndarray, int]]:
    """A long string continued so that the answer is this or that, and these two answers (the first and the last)."""
    string = long_string(machine, length, seed=0)
    state = int(machine.semiautomaton.final_states(string[None], machine.start)[0])
    actual = []
    for answer in np.unique(machine.outputs[machine.outputs != IGNORE])[[0, -1]].tolist():
        suffix = machine.semiautomaton.shortest_string(state, machine.outputs == answer)
        ids = [machine.symbols.index(symbol) for symbol in suffix]
        actual.append((np.concatenate([string, np.array(ids, dtype=np.int64)]), answer))
    return actual
