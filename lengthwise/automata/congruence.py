"""Congruences of partial tables: classes that can be united without a change of any known label."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int64

GAP = -1
"""Table entry that is unknown, and label of a class without a label."""


def coarse_congruence(
    table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"], likely: Iterable[Sequence[int]] = ()
) -> Int64[np.ndarray, " K"]:
    """Return the block of each class in a congruence that cannot be made coarser.

    ``table[k_1, ..., k_C]`` is the class of a window of C classes, and ``labels[k] >= 0`` the label of class k. Either
    may be `GAP`. In a congruence, no block has two labels. Two known windows whose parts are in the same blocks have
    their classes in one block. Blocks are numbered by their first classes.

    A table without gaps has a unique coarsest congruence, which Moore's refinement also finds, and it is returned. A
    table with gaps may have several maximal ones. Then pairs of classes are united greedily if they can be: first the
    `likely` pairs, then all others in order.

    Example:
        >>> coarse_congruence(np.array([[0, 1, 2], [1, 2, 1], [2, 1, 2]]), np.array([0, 1, 0])).tolist()
        [0, 1, 0]
    """
    known = labels >= 0
    blocks = _united(table, known[:, None] & known & (labels[:, None] != labels), likely)
    # The likely pairs go first, on the full table: with gaps, an early union can forbid a later one.
    smaller, block_labels = quotient(table, labels, blocks)
    # Pairs that known contexts separate cannot be united, so that they are not tried one by one.
    apart = _differ_apart(smaller, block_labels)
    joined: np.ndarray = _united(smaller, apart, np.argwhere(np.triu(~apart, 1)).tolist())[blocks]
    return joined


def quotient(
    table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"], blocks: Int64[np.ndarray, " K"]
) -> tuple[Int64[np.ndarray, "*N"], Int64[np.ndarray, " N"]]:
    """Return table and labels of the blocks of a congruence, `GAP` if they are unknown for all members."""
    count = int(blocks.max()) + 1
    windows = np.argwhere(table >= 0)
    smaller = np.full((count,) * table.ndim, GAP)
    smaller[tuple(blocks[windows].T)] = blocks[table[tuple(windows.T)]]
    block_labels = np.full(count, GAP)
    np.maximum.at(block_labels, blocks, labels)
    return smaller, block_labels


def _united(
    table: Int64[np.ndarray, "*K"], apart: Bool[np.ndarray, "K K"], pairs: Iterable[Sequence[int]]
) -> Int64[np.ndarray, " K"]:
    """Return the blocks after uniting each pair in turn with all that follows from it, unless two parts are `apart`.

    The known entries of a block are kept at its first class. A pair that cannot be united now is marked as apart for
    good: later blocks are coarser, and a coarser congruence unites more, never less.
    """
    table = table.copy()
    apart = apart.copy()
    blocks = np.arange(len(apart))
    for first, second in pairs:
        # Blocks are named by their first classes, so the smaller name remains.
        low, high = sorted((int(blocks[first]), int(blocks[second])))
        if low == high or apart[low, high]:
            continue
        united = _closed(table, apart, blocks, low, high)
        if united is None:
            apart[low, high] = apart[high, low] = True
            continue
        _move_to_first(table, apart, blocks, united)
        blocks = united
    return np.unique(blocks, return_inverse=True)[1]


def _closed(
    table: Int64[np.ndarray, "*K"],
    apart: Bool[np.ndarray, "K K"],
    blocks: Int64[np.ndarray, " K"],
    low: int,
    high: int,
) -> Int64[np.ndarray, " K"] | None:
    """Return the finest congruence that unites two blocks of a congruence, or None if it would unite two apart blocks.

    Windows of unchanged blocks agree already, since the blocks were a congruence. So only windows with a part in a
    block that grew are compared.
    """
    blocks = np.where(blocks == high, low, blocks)
    grown = np.array([low, high])  # first classes of the blocks that are no longer alone
    # Congruence closure: every congruence that unites the pair also unites the results of windows that are now equal.
    # So the fixed point is the finest of them, and if it unites apart blocks, all of them do.
    while not (apart[np.ix_(grown, grown)] & (blocks[grown][:, None] == blocks[grown])).any():
        into = np.arange(len(blocks))
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0)[grown]
            windows = np.nonzero(around >= 0)
            results = blocks[around[windows]]
            part_numbers = (np.unique(blocks[grown], return_inverse=True)[1], *[blocks] * (table.ndim - 1))
            parts = [numbers[part] for numbers, part in zip(part_numbers, windows, strict=True)]
            keys = np.ravel_multi_index(parts, around.shape)
            least = np.full(around.size, len(blocks))
            # A congruence unites the results of equal windows: each result is moved to the smallest block among them.
            np.minimum.at(least, keys, results)
            np.minimum.at(into, results, least[keys])
        if not (into < np.arange(len(blocks))).any():
            return blocks
        joined = into[blocks]
        grown = np.union1d(grown, np.flatnonzero(into < np.arange(len(blocks))))
        grown = np.union1d(grown, joined[grown])
        blocks = joined
    return None


def _move_to_first(
    table: Int64[np.ndarray, "*K"],
    apart: Bool[np.ndarray, "K K"],
    blocks: Int64[np.ndarray, " K"],
    united: Int64[np.ndarray, " K"],
) -> None:
    """Move the known entries of each united block to the first class of its new block, in place."""
    for one in np.unique(blocks[united != blocks]):
        first = united[one]
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0)
            around[first] = np.maximum(around[first], around[one])  # known entries agree, and a GAP is smaller
            around[one] = GAP
        # A block is apart from every block that one of its members is apart from.
        apart[first] |= apart[one]
        apart[:, first] |= apart[:, one]


def _differ_apart(table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"]) -> Bool[np.ndarray, "K K"]:
    """Return the pairs that no congruence unites, since known windows around them lead to different labels.

    The fixed point of Moore's refinement, restricted to entries that are known on both sides.
    """
    known = labels >= 0
    apart: np.ndarray = known[:, None] & known & (labels[:, None] != labels)
    num_before = -1
    while num_before < apart.sum():
        # Moore's rounds end when no pair is added, since pairs are only added and there are finitely many.
        num_before = apart.sum()
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0).reshape(len(labels), -1)
            for one in range(len(labels)):
                contexts = np.flatnonzero(around[one] >= 0)
                others = one + np.flatnonzero(~apart[one, one:])  # earlier classes were compared with this one
                successors = around[np.ix_(others, contexts)]
                differ = ((successors >= 0) & apart[around[one, contexts], successors]).any(1)
                apart[one, others[differ]] = apart[others[differ], one] = True
    return apart
