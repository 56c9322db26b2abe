"""Small actions of groups, against what is known of them and against all subgroups."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise.automata import Semiautomaton, library
from lengthwise.automata.group_action import smallest_transitive_action
from lengthwise.automata.monoid import TransitionMonoid, transition_monoid


def group_of(*permutations: tuple[int, ...]) -> TransitionMonoid:
    symbols = tuple("abcdefgh"[: len(permutations)])
    return transition_monoid(Semiautomaton(np.array(permutations).T, symbols))


KNOWN = {
    "one element": (group_of((0,)), 1),
    "Z_7": (group_of((1, 2, 3, 4, 5, 6, 0)), 7),
    "Z_6, on 2 + 3 points": (group_of((1, 0, 3, 4, 2)), 6),
    "Z_2 x Z_2": (group_of((1, 0, 2, 3), (0, 1, 3, 2)), 4),
    "S_3, on its own elements": (group_of((1, 0, 5, 4, 3, 2), (2, 3, 4, 5, 0, 1)), 3),
    "quaternions": (group_of((1, 2, 3, 0, 5, 6, 7, 4), (4, 7, 6, 5, 2, 1, 0, 3)), 8),
    "square": (group_of((1, 2, 3, 0), (0, 3, 2, 1)), 4),
    "A_4": (group_of((1, 2, 0, 3), (0, 2, 3, 1)), 4),
    "A_5": (group_of((1, 2, 0, 3, 4), (1, 2, 3, 4, 0)), 5),
    "S_5": (group_of((1, 0, 2, 3, 4), (1, 2, 3, 4, 0)), 5),
}


def assert_faithful_and_transitive(group: TransitionMonoid, action: np.ndarray) -> None:
    num_points = action.shape[1]
    assert (np.sort(action, axis=1) == np.arange(num_points)).all()
    assert len(np.unique(action, axis=0)) == group.size
    assert set(action[:, 0].tolist()) == set(range(num_points))
    for first, then in itertools.product(range(0, group.size, 7), range(group.size)):
        np.testing.assert_array_equal(action[group.table[first, then]], action[then][action[first]])


@pytest.mark.parametrize("name", KNOWN)
def test_degrees_that_are_known(name: str) -> None:
    group, degree = KNOWN[name]
    action = smallest_transitive_action(group)
    assert_faithful_and_transitive(group, action)
    assert action.shape[1] == degree


def all_subgroups(table: np.ndarray) -> set[frozenset[int]]:
    actual = {frozenset([0])}
    while True:
        larger = set()
        for subgroup, element in itertools.product(actual, range(len(table))):
            closed = {*subgroup, element}
            while not closed >= (products := {int(table[a, b]) for a in closed for b in closed}):
                closed |= products
            larger.add(frozenset(closed))
        if larger <= actual:
            return actual
        actual |= larger


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=2))
def test_no_subgroup_gives_fewer_points(permutations: list[list[int]]) -> None:
    """Of all subgroups, by brute force, none with a trivial core has a smaller index."""
    group = group_of(*map(tuple, permutations))
    table, rows = group.table, range(group.size)
    inverse = [next(b for b in rows if table[a, b] == 0) for a in rows]
    core_free = [
        subgroup
        for subgroup in all_subgroups(table)
        if frozenset.intersection(*(frozenset(int(table[table[inverse[g], h], g]) for h in subgroup) for g in rows))
        == {0}
    ]
    action = smallest_transitive_action(group)
    assert_faithful_and_transitive(group, action)
    assert action.shape[1] == group.size // max(map(len, core_free))


def test_a_monoid_that_is_no_group_is_refused() -> None:
    with pytest.raises(ValueError, match=r"group: expected a monoid in which every symbol permutes the states"):
        smallest_transitive_action(transition_monoid(library.even_pairs().semiautomaton))
