"""Groups as permutations of few points."""

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.monoid import TransitionMonoid

MAX_SUBGROUPS = 200
"""The maximal number of subgroups that a search for small actions extends."""


def smallest_transitive_action(group: TransitionMonoid) -> Int64[np.ndarray, "M N"]:
    """A faithful transitive action on fewest points: ``action[g, p]`` is the point that element g takes p to.

    The points are the cosets H x of a largest subgroup H without a normal subgroup inside but the trivial one; point 0
    is H itself. Such core-free subgroups are found from the trivial one by adding one element at a time, which misses
    none, since what a core-free subgroup contains is core-free; of conjugate ones, which act alike, one is followed,
    and of all at most `MAX_SUBGROUPS`.

    Raises:
        ValueError: the monoid is no group.

    Example:
        >>> from lengthwise.automata.monoid import transition_monoid
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> swap_turn = Semiautomaton(np.array([[1, 1], [0, 2], [2, 0]]), ("s", "t"))
        >>> group = transition_monoid(swap_turn)
        >>> group.size, smallest_transitive_action(group).shape
        (6, (6, 3))
    """
    if not group.is_group:
        raise ValueError("group: expected a monoid whose symbols all permute the states, got another; it has no action")
    subgroup = _largest_core_free(group.table)
    # coset[x] is the first element of H x.
    coset = group.table[np.flatnonzero(subgroup)].min(0)
    points, number = np.unique(coset, return_inverse=True)
    action: np.ndarray = number[group.table[points]].T
    return action


def _largest_core_free(table: Int64[np.ndarray, "M M"]) -> Bool[np.ndarray, " M"]:
    inverse = (table == 0).argmax(1)
    conjugates = table[table[inverse], np.arange(len(table))[:, None]]  # of h by g, at [g, h]: g^-1 h g
    largest = _generated(table, [])
    subgroups: list[tuple[Bool[np.ndarray, " M"], list[int]]] = [(largest, [])]
    seen: set[bytes] = set()
    for subgroup, generators in subgroups:
        largest = max(largest, subgroup, key=np.count_nonzero)
        untried = ~subgroup
        while untried.any() and len(subgroups) < MAX_SUBGROUPS:
            element = int(untried.argmax())
            # Each element of the double coset H g H generates, with H, the same subgroup as g.
            untried[table[table[subgroup, element]][:, subgroup]] = False
            larger = _generated(table, [*generators, element])
            if larger.tobytes() in seen:
                continue
            with_conjugates = np.zeros_like(table, dtype=np.bool_)
            np.put_along_axis(with_conjugates, conjugates[:, larger], True, axis=1)
            seen.update(row.tobytes() for row in with_conjugates)
            if with_conjugates.all(0).sum() == 1:
                subgroups.append((larger, [*generators, element]))
    return largest


def _generated(table: Int64[np.ndarray, "M M"], generators: list[int]) -> Bool[np.ndarray, " M"]:
    """The elements of the subgroup."""
    inside = np.zeros(len(table), dtype=np.bool_)
    new = np.array([0])
    while len(new):
        inside[new] = True
        products = table[new][:, generators]
        new = np.unique(products[~inside[products]])
    return inside
