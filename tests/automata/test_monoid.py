"""Transition monoids, against plain composition of maps."""

import itertools

import numpy as np
import pytest
from automaton_strategies import checked_strategies, semiautomata
from checked_types import begin
from hypothesis import given
from hypothesis import strategies as st

import lengthwise.automata.monoid as monoid_module
from lengthwise.automata import Semiautomaton, library
from lengthwise.automata.monoid import max_elements, transition_monoid

pytestmark = checked_strategies

small = semiautomata(max_states=4)


def compose(first: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(then[state] for state in first)


def all_maps(machine: Semiautomaton) -> set[tuple[int, ...]]:
    actual = {tuple(range(machine.num_states))}
    while True:
        longer = {compose(m, tuple(column)) for m in actual for column in machine.table.T.tolist()}
        if longer <= actual:
            return actual
        actual |= longer


@given(small)
def test_elements_are_the_maps_that_strings_make(machine: Semiautomaton) -> None:
    monoid = transition_monoid(machine)
    assert {tuple(m) for m in monoid.maps.tolist()} == all_maps(machine)
    assert monoid.size == len(all_maps(machine))
    ids = {symbol: v for v, symbol in enumerate(machine.symbols)}
    for element, word in enumerate(monoid.words):
        string = [ids[symbol] for symbol in word]
        assert monoid.element(string) == element
        ends = [machine.run(np.array([string]), q)[0, -1] if string else q for q in range(machine.num_states)]
        assert monoid.maps[element].tolist() == ends


@given(small)
def test_words_are_the_first_of_the_shortest_and_number_the_elements(machine: Semiautomaton) -> None:
    monoid = transition_monoid(machine)
    words: dict[int, tuple[str, ...]] = {}
    for length in range(4):
        for string in itertools.product(range(machine.num_symbols), repeat=length):
            words.setdefault(monoid.element(string), tuple(machine.symbols[v] for v in string))
    assert list(words) == list(range(len(words)))
    assert monoid.words[: len(words)] == tuple(words.values())


@given(small)
def test_the_table_composes_maps(machine: Semiautomaton) -> None:
    monoid = transition_monoid(machine)
    for a, b in itertools.product(range(min(monoid.size, 40)), repeat=2):
        product = monoid.maps[monoid.table[a, b]].tolist()
        assert product == list(compose(tuple(monoid.maps[a].tolist()), tuple(monoid.maps[b].tolist())))


@given(small)
def test_products_without_a_table_are_those_of_the_table(machine: Semiautomaton) -> None:
    table = transition_monoid(machine).table
    first, then = np.indices(table.shape)
    assert (transition_monoid(machine).products(first, then) == table).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(monoid_module, "MAX_TABLED", 0)
        monoid = transition_monoid(machine)
        assert (monoid.products(first, then) == table).all()
        assert "table" not in vars(monoid)


@given(small)
def test_properties_hold_by_their_definitions(machine: Semiautomaton) -> None:
    monoid = transition_monoid(machine)
    table, elements = monoid.table, np.arange(monoid.size)
    assert monoid.is_commutative == bool((table == table.T).all())
    assert monoid.is_group == all((table[a] == 0).any() for a in elements)

    def settles(a: int) -> bool:
        power = a
        for _ in elements:
            power = table[power, a]
        return table[power, a] == power

    assert monoid.is_aperiodic == all(settles(a) for a in elements)


@pytest.mark.parametrize(
    ("machine", "size", "group", "aperiodic", "commutative"),
    [
        (library.parity().semiautomaton, 2, True, False, True),
        (library.cycle(5).semiautomaton, 5, True, False, True),
        (library.tomita(2).semiautomaton, 6, False, True, False),
        (library.bounded_dyck(2).semiautomaton, 15, False, True, False),
    ],
)
def test_known_monoids(machine: Semiautomaton, size: int, group: bool, aperiodic: bool, commutative: bool) -> None:
    """Parity is Z_2, the cycle Z_5; (01)* and brackets of bounded depth are star-free (Brandt-like, with a zero)."""
    monoid = transition_monoid(machine)
    properties = (monoid.size, monoid.is_group, monoid.is_aperiodic, monoid.is_commutative)
    assert properties == (size, group, aperiodic, commutative)


def test_a_monoid_that_is_too_large_is_refused() -> None:
    rotate, swap, merge = [1, 2, 3, 4, 0], [1, 0, 2, 3, 4], [0, 0, 2, 3, 4]
    everything = Semiautomaton(np.array([rotate, swap, merge]).T, ("r", "s", "m"))
    assert transition_monoid(everything).size == 5**5
    with pytest.raises(ValueError, match=r"more than 3,000 elements \(5 states, 3 symbols\); raise"):
        transition_monoid(everything, maximum=3000)
    begin(is_checked=False)  # the annotations reject the wrong type before the function can
    with pytest.raises(ValueError, match="machine: expected a Semiautomaton, got 5"):
        transition_monoid(5)  # type: ignore[arg-type]  # the argument is wrong on purpose


@given(small, st.lists(st.integers(0, 1), max_size=7))
def test_elements_of_strings_are_products_of_those_of_their_symbols(machine: Semiautomaton, string: list[int]) -> None:
    monoid = transition_monoid(machine)
    string = [symbol % machine.num_symbols for symbol in string]
    state = 0
    for symbol in string:
        state = int(monoid.graph[state, symbol])
    assert monoid.element(string) == state


def test_the_memory_of_a_count_is_bounded() -> None:
    small, large = (Semiautomaton(np.zeros((size, 1), np.int64), ("a",)) for size in (2, 100_000))
    assert (max_elements(small), max_elements(large)) == (20_000, 500)
