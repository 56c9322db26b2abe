"""Congruences of partial tables: they unite classes without changing any known label."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int64

GAP = -1
"""The number that marks an unknown entry of a table, or a class without a known label."""

Table = Int64[np.ndarray, "*K"]
Labels = Int64[np.ndarray, " K"]
Apart = Bool[np.ndarray, "K K"]
"""The pairs of classes that must not be united. `Labels` has a label or a block for each class."""


def coarse_congruence(table: Table, labels: Labels, likely: Iterable[Sequence[int]] = ()) -> Labels:
    """Return the block of each class in a congruence that cannot be made coarser.

    ``table[k_1, ..., k_C]`` is the class of a window of C classes, and ``labels[k]`` is the label of class k, at least
    0. Entries of the table and labels may be `GAP`. In a congruence, all known labels in a block agree. Suppose that
    two windows have known entries, and that their C classes are in the same C blocks. Then both entries are in the same
    block. Blocks are numbered in the order of their first classes.

    A table without gaps has a unique coarsest congruence, which is returned. Moore's refinement gives the same result.
    A table with gaps may have several maximal congruences. Then pairs of classes are united greedily: first the
    `likely` pairs, then all other pairs in order.

    Example:
        >>> coarse_congruence(np.array([[0, 1, 2], [1, 2, 1], [2, 1, 2]]), np.array([0, 1, 0])).tolist()
        [0, 1, 0]
    """
    known = labels >= 0
    blocks = _united(table, known[:, None] & known & (labels[:, None] != labels), likely)
    # The likely pairs are united first, because with gaps, a union can make a later union impossible.
    smaller, block_labels = quotient(table, labels, blocks)
    # Pairs that known contexts separate cannot be united, so they are not tried.
    apart = _differ_apart(smaller, block_labels)
    return np.asarray(_united(smaller, apart, np.argwhere(np.triu(~apart, 1)).tolist())[blocks])


def quotient(table: Table, labels: Labels, blocks: Labels) -> tuple[Int64[np.ndarray, "*N"], Int64[np.ndarray, " N"]]:
    """Return the table and the labels of a congruence's blocks.

    An entry of the new table is `GAP` if the old table has only `GAP` for classes in the entry's blocks. A block's
    label is `GAP` if the labels of all its classes are unknown.
    """
    count = int(blocks.max()) + 1
    windows = np.argwhere(table >= 0)
    smaller = np.full((count,) * table.ndim, GAP)
    smaller[tuple(blocks[windows].T)] = blocks[table[tuple(windows.T)]]
    block_labels = np.full(count, GAP)
    np.maximum.at(block_labels, blocks, labels)
    return smaller, block_labels


def _united(table: Table, apart: Apart, pairs: Iterable[Sequence[int]]) -> Labels:
    """Return the blocks after uniting each pair in turn, with all unions that follow from the pair.

    A pair is skipped if uniting it would also unite two classes that are `apart`. The known entries of a block are kept
    in the table at the block's first class. A skipped pair is marked as apart permanently. Later blocks are coarser, so
    uniting the pair later would unite at least the same classes.
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


def _closed(table: Table, apart: Apart, blocks: Labels, low: int, high: int) -> Labels | None:
    """Return the finest congruence that unites two given blocks, or None if it would also unite `apart` blocks.

    Windows whose classes all lie in unchanged blocks already agree, because the given blocks are a congruence. So only
    windows with a class in a block that grew are compared. A window is a tuple of classes that indexes the table.
    """
    blocks = np.where(blocks == high, low, blocks)
    grown = np.array([low, high])  # first classes of the old blocks that are now united with others
    # This is congruence closure. Every congruence that unites the pair also unites the results of windows that are now
    # equal. So the fixed point is the finest such congruence. If it unites apart blocks, all such congruences do.
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
            # A congruence unites the results of equal windows, so these results move to their smallest block.
            np.minimum.at(least, keys, results)
            np.minimum.at(into, results, least[keys])
        if not (into < np.arange(len(blocks))).any():
            return blocks
        joined = into[blocks]
        grown = np.union1d(grown, np.flatnonzero(into < np.arange(len(blocks))))
        grown = np.union1d(grown, joined[grown])
        blocks = joined
    return None


def _move_to_first(table: Table, apart: Apart, blocks: Labels, united: Labels) -> None:
    """Move the known entries of each united block to the first class of its new block, in place."""
    for one in np.unique(blocks[united != blocks]):
        first = united[one]
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0)
            around[first] = np.maximum(around[first], around[one])  # known entries agree, and a GAP is smaller
            around[one] = GAP
        # If one member of a block is apart from another class, the whole block is apart from that class.
        apart[first] |= apart[one]
        apart[:, first] |= apart[:, one]


def _differ_apart(table: Table, labels: Labels) -> Apart:
    """Return the pairs of classes that no congruence unites, because known windows lead from them to different labels.

    This is the fixed point of Moore's refinement, restricted to entries that are known for both classes.
    """
    known = labels >= 0
    apart: np.ndarray = known[:, None] & known & (labels[:, None] != labels)
    num_before = -1
    while num_before < apart.sum():
        # Rounds only add pairs, and there are finitely many pairs, so the loop ends.
        num_before = apart.sum()
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0).reshape(len(labels), -1)
            for one in range(len(labels)):
                contexts = np.flatnonzero(around[one] >= 0)
                others = one + np.flatnonzero(~apart[one, one:])  # earlier classes are already compared with this one
                successors = around[np.ix_(others, contexts)]
                differ = ((successors >= 0) & apart[around[one, contexts], successors]).any(1)
                apart[one, others[differ]] = apart[others[differ], one] = True
    return apart
