"""Groups as permutations of few points."""

import numpy as np
from jaxtyping import Bool, Int64

from lengthwise.automata.monoid import TransitionMonoid

MAX_SUBGROUPS = 200
"""The largest number of subgroups that a search for small actions extends."""


def smallest_transitive_action(group: TransitionMonoid) -> Int64[np.ndarray, "M N"]:
    """Return a faithful transitive action on as few points as possible: element g takes p to ``action[g, p]``.

    The points are the cosets H x of a largest core-free subgroup H, which contains no normal subgroup but the trivial
    one. Point 0 is H itself. The search starts at the trivial subgroup and adds one element at a time. It reaches every
    core-free subgroup, as subgroups of a core-free subgroup are core-free. Of conjugate subgroups, which act alike, one
    is extended, and at most `MAX_SUBGROUPS` are extended in total.

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
        raise ValueError("group: expected a monoid whose symbols all permute the states, got another; it has no action")
    subgroup = _largest_core_free(group.table)
    # Every transitive action is the action on the cosets of a point stabilizer H, and it has |G| / |H| points. It is
    # faithful if and only if the core of H is trivial. So the largest core-free subgroup has the fewest points.
    # coset[x] is the first element of H x.
    coset = group.table[np.flatnonzero(subgroup)].min(0)
    points, number = np.unique(coset, return_inverse=True)
    action: np.ndarray = number[group.table[points]].T
    return action


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
            # Each element of the double coset H g H generates, with H, the same subgroup as g.
            untried[table[table[subgroup, element]][:, subgroup]] = False
            larger = _generated(table, [*generators, element])
            if larger.tobytes() in seen:
                continue
            with_conjugates = np.zeros_like(table, dtype=np.bool_)
            # The core is the intersection of all conjugates; it is trivial if only the identity is in each of them.
            np.put_along_axis(with_conjugates, conjugates[:, larger], True, axis=1)
            # Conjugate subgroups act alike and have the same core, so one of them represents all.
            seen.update(row.tobytes() for row in with_conjugates)
            if with_conjugates.all(0).sum() == 1:
                subgroups.append((larger, [*generators, element]))
    return largest


def _generated(table: Int64[np.ndarray, "M M"], generators: list[int]) -> Bool[np.ndarray, " M"]:
    """Return the mask of the elements of the subgroup; in a finite group, products alone give the inverses."""
    inside = np.zeros(len(table), dtype=np.bool_)
    new = np.array([0])
    while len(new):
        inside[new] = True
        products = table[new][:, generators]
        new = np.unique(products[~inside[products]])
    return inside
