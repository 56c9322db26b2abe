"""The strings of the W-method tell a machine from every other that has no more states."""

import numpy as np
import pytest
from automaton_strategies import all_strings, checked_strategies, transducers
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata.conformance import ConformanceTest, conformance_strings
from lengthwise.automata.regex import dfa_from_regex
from lengthwise.automata.semiautomaton import Semiautomaton
from lengthwise.automata.transducer import Transducer

pytestmark = checked_strategies


def num_states_of_strings(machine: Transducer) -> int:
    """Those of the smallest machine, after strings of one symbol or more."""
    smallest = machine.minimize()
    table = smallest.semiautomaton.table[smallest.semiautomaton.reachable(0)]
    return len(np.unique(table))


def agrees(machine: Transducer, other: Transducer, strings: list[tuple[int, ...]]) -> bool:
    return all(machine.run(np.array([one]))[0, -1] == other.run(np.array([one]))[0, -1] for one in strings)


@st.composite
def changed(draw: st.DrawFn, machine: Transducer) -> Transducer:
    """The machine with another next state or another answer somewhere."""
    table, outputs = machine.semiautomaton.table.copy(), machine.outputs.copy()
    state = draw(st.integers(0, machine.num_states - 1))
    if draw(st.booleans()):
        outputs[state] = draw(st.integers(0, 2))
    else:
        table[state, draw(st.integers(0, len(machine.symbols) - 1))] = draw(st.integers(0, machine.num_states - 1))
    return Transducer(Semiautomaton(table, machine.symbols), machine.start, outputs)


@given(st.data())
def test_one_that_passes_and_has_no_more_states_is_the_same(data: st.DataObject) -> None:
    machine = data.draw(transducers(symbols=("a", "b"), max_states=5)).minimize()
    other = data.draw(st.one_of(changed(machine), transducers(symbols=("a", "b"), max_states=5)))
    strings = conformance_strings(machine, 10**6)
    same = all(np.array_equal(machine.run(s), other.run(s)) for n in range(1, 11) for s in [all_strings(2, n)])
    passes = agrees(machine, other, strings)
    assert passes or not same
    if num_states_of_strings(other) <= num_states_of_strings(machine):
        assert passes == same


@given(st.data(), st.integers(0, 2))
def test_levels_tell_machines_with_more_states_from_others(data: st.DataObject, num_extra: int) -> None:
    """As in L*, no string returns to the start of the machine, so its answer is no other state's."""
    machine = data.draw(transducers(symbols=("a", "b"), max_states=3)).with_empty_answer(-2)
    other = data.draw(st.one_of(changed(machine), transducers(symbols=("a", "b"), max_states=4)))
    test = ConformanceTest(machine)
    same = all(np.array_equal(machine.run(s), other.run(s)) for n in range(1, 11) for s in [all_strings(2, n)])
    passes = agrees(machine, other, list(test.strings(range(num_extra + 1))))
    assert passes or not same
    if num_states_of_strings(other) <= num_states_of_strings(machine) + num_extra:
        assert passes == same


@pytest.mark.parametrize("word", ["b", "ab", "abba", "aabab"])
def test_a_level_for_each_state_finds_a_word_that_lower_levels_do_not_contain(word: str) -> None:
    """The machine of strings that end in a word has a state more for each letter than the machine without answers."""
    ends = dfa_from_regex(f"(a|b)*{word}", "ab").transducer
    never = Transducer(Semiautomaton(np.array([[1, 1], [1, 1]]), ("a", "b")), 0, np.array([-1, 0]))
    test = ConformanceTest(never)
    is_wrong = [not agrees(never, ends, list(test.strings([level]))) for level in range(len(word) + 1)]
    assert is_wrong.index(True) == max(0, len(word) - 2)


@given(transducers(max_states=4), st.integers(0, 3))
def test_levels_have_as_many_symbols_as_is_stated(machine: Transducer, level: int) -> None:
    test = ConformanceTest(machine.minimize())
    assert sum(map(len, test.strings([level]))) == test.num_symbols(level)
    total = sum(map(test.num_symbols, range(level + 1)))
    assert test.max_level(total) == level
    assert test.max_level(total - 1) == max(level - 1, 0)
    assert set(test.strings([0])) == set(conformance_strings(machine.minimize(), 10**6))


def trie(words: dict[str, int]) -> Transducer:
    """Answers words by their number and all other strings by 0."""
    prefixes = sorted({word[:end] for word in words for end in range(len(word) + 1)})
    number = {prefix: state for state, prefix in enumerate(prefixes)}
    table = np.array([[number.get(prefix + v, len(number)) for v in "abcd"] for prefix in prefixes])
    table = np.vstack([table, np.full(4, len(number))])
    outputs = np.array([*(words.get(prefix, 0) for prefix in prefixes), 0])
    return Transducer(Semiautomaton(table, tuple("abcd")), 0, outputs).minimize()


def test_every_state_is_reached_where_suffixes_do_not_fit() -> None:
    """The word of 14 letters has an answer of its own, and would be the first to go among strings by length."""
    chance = np.random.default_rng(0)
    words = {"".join(chance.choice(list("abcd"), 8)): 1 for _ in range(20)}
    machine = trie({**words, "abcdabcdabcdab": 2})
    strings = conformance_strings(machine, 100_000)
    assert sum(map(len, conformance_strings(machine, 10**6))) > 100_000 >= sum(map(len, strings)) > 90_000
    assert max(machine.run(np.array([one]))[0, -1] for one in strings if len(one) == 14) == 2


def test_a_ring_needs_all_that_fits() -> None:
    """Strings of a prefix and a suffix that are equal count once: 439 of 220 times 220."""
    table = ((np.arange(220) + 1) % 220)[:, None]
    strings = conformance_strings(Transducer(Semiautomaton(table, ("a",)), 0, np.arange(220) // 219), 100_000)
    assert strings == [(0,) * length for length in range(1, 440)]


@given(transducers(max_states=4))
def test_all_are_kept_where_all_fit(machine: Transducer) -> None:
    every = conformance_strings(machine, 10**6)
    assert conformance_strings(machine, sum(map(len, every))) == every


@given(transducers(), st.integers(0, 60))
def test_they_are_the_shortest_of_all_and_reach_every_state(machine: Transducer, max_symbols: int) -> None:
    every, few = conformance_strings(machine, 10**6), conformance_strings(machine, max_symbols)
    assert every == sorted(set(every), key=lambda one: (len(one), one))
    assert all(every)
    assert sum(map(len, few)) <= max_symbols
    assert few == sorted(few, key=lambda one: (len(one), one))
    reached = {int(machine.semiautomaton.final_states(np.array([one]), machine.start)[0]) for one in every}
    after_a_symbol = {state for row in machine.semiautomaton.table.tolist() for state in row}
    assert reached == {state for state in after_a_symbol if _is_reached(machine, state)}


def _is_reached(machine: Transducer, state: int) -> bool:
    starts = set(machine.semiautomaton.table[machine.start].tolist())
    return any(state in machine.semiautomaton.reachable(one) for one in starts)


def test_of_a_long_chain_no_more_is_kept_than_may_be() -> None:
    """Strings to all 20,000 states would have 200 million symbols."""
    size = 20_000
    table = np.stack([np.minimum(np.arange(size) + 1, size - 1), np.zeros(size, dtype=np.int64)], axis=1)
    chain = Transducer(Semiautomaton(table, ("a", "b")), 0, (np.arange(size) == size - 1).astype(np.int64))
    strings = conformance_strings(chain, 100_000)
    assert 50_000 < sum(map(len, strings)) <= 100_000
