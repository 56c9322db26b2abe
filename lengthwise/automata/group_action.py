"""Representations of groups as permutations of few points."""

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.monoid import TransitionMonoid

MAX_SUBGROUPS = 200
"""The largest number of subgroups that a search for small actions extends."""


def smallest_transitive_action(group: TransitionMonoid) -> Int64[np.ndarray, "M N"]:
    """Return a group's faithful transitive action on as few points as possible; element g maps p to ``action[g, p]``.

    The points are the cosets H x of a largest core-free subgroup H. A subgroup is core-free if it contains no normal
    subgroup except the trivial one. Point 0 is H itself. The search starts at the trivial subgroup and adds one element
    at a time. In this way, the search can reach every core-free subgroup, because subgroups of a core-free subgroup are
    core-free. Conjugate subgroups act alike, so only one of them is extended. At most `MAX_SUBGROUPS` subgroups are
    extended. If the search stops at this limit, the action may have more points than necessary.

    Raises:
        ValueError: the monoid is not a group.

    Example:
        >>> from lengthwise.automata.monoid import transition_monoid
        >>> from lengthwise.automata.semiautomaton import Semiautomaton
        >>> swap_turn = Semiautomaton(np.array([[1, 1], [0, 2], [2, 0]]), ("s", "t"))
        >>> group = transition_monoid(swap_turn)
        >>> group.size, smallest_transitive_action(group).shape
        (6, (6, 3))
    """
    if not group.is_group:
        raise ValueError(
            "group: expected a monoid in which every symbol permutes the states, got a symbol that does not; give the "
            "monoid of a machine whose symbols all permute its states"
        )
    subgroup = _largest_core_free(group.table)
    # Every transitive action is the action on the cosets of a point stabilizer H, with |G| / |H| points. The action is
    # faithful if and only if the core of H is trivial. So the largest core-free subgroup gives the fewest points.
    # In the next line, coset[x] is the first element of H x.
    coset = group.table[np.flatnonzero(subgroup)].min(0)
    points, number = np.unique(coset, return_inverse=True)
    return np.asarray(number[group.table[points]].T)


def _largest_core_free(table: Int64[np.ndarray, "M M"]) -> Bool[np.ndarray, " M"]:
    inverse = (table == 0).argmax(1)
    conjugates = table[table[inverse], np.arange(len(table))[:, None]]  # at [g, h]: g^-1 h g
    largest = _generated(table, [])
    subgroups: list[tuple[Bool[np.ndarray, " M"], list[int]]] = [(largest, [])]
    seen: set[bytes] = set()
    for subgroup, generators in subgroups:
        largest = max(largest, subgroup, key=np.count_nonzero)
        untried = ~subgroup
        while untried.any() and len(subgroups) < MAX_SUBGROUPS:
            element = int(untried.argmax())
            # Together with H, each element of the double coset H g H generates the same subgroup as g.
            untried[table[table[subgroup, element]][:, subgroup]] = False
            larger = _generated(table, [*generators, element])
            if larger.tobytes() in seen:
                continue
            with_conjugates = np.zeros_like(table, dtype=np.bool_)
            # The core is the intersection of all conjugates. It is trivial if only the identity is in all conjugates.
            np.put_along_axis(with_conjugates, conjugates[:, larger], True, axis=1)
            # Conjugate subgroups act alike and have the same core, so one of them suffices.
            seen.update(row.tobytes() for row in with_conjugates)
            if with_conjugates.all(0).sum() == 1:
                subgroups.append((larger, [*generators, element]))
    return largest


def _generated(table: Int64[np.ndarray, "M M"], generators: list[int]) -> Bool[np.ndarray, " M"]:
    """Return the mask of the elements that the generators generate; in a finite group, products include inverses."""
    inside = np.zeros(len(table), dtype=np.bool_)
    new = np.array([0])
    while len(new):
        inside[new] = True
        products = table[new][:, generators]
        new = np.unique(products[~inside[products]])
    return inside
