"""Congruences of tables with gaps: which classes can be one class without changing what any window is."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int64

GAP = -1
"""Entry of a table that is not known, and label of a class that has none."""


def coarse_congruence(
    table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"], likely: Iterable[Sequence[int]] = ()
) -> Int64[np.ndarray, " K"]:
    """The block of each class in a congruence that cannot be made coarser; blocks are numbered by their first classes.

    ``table[k_1, ..., k_C]`` is the class of a window of C classes and ``labels[k] >= 0`` what is read off class k;
    either may be `GAP`. In a congruence no block has two labels, and known windows whose parts lie in the same blocks
    have their classes in one block. Of a table without gaps there is one coarsest congruence, that of Moore's
    refinement, and this is it. With gaps there may be several that cannot be made coarser; pairs of classes are united
    where they can be, the `likely` ones first, then all others in order.

    Example:
        >>> coarse_congruence(np.array([[0, 1, 2], [1, 2, 1], [2, 1, 2]]), np.array([0, 1, 0])).tolist()
        [0, 1, 0]
    """
    known = labels >= 0
    blocks = _united(table, known[:, None] & known & (labels[:, None] != labels), likely)
    smaller, their_labels = quotient(table, labels, blocks)
    apart = _differ_apart(smaller, their_labels)
    joined: np.ndarray = _united(smaller, apart, np.argwhere(np.triu(~apart, 1)).tolist())[blocks]
    return joined


def quotient(
    table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"], blocks: Int64[np.ndarray, " K"]
) -> tuple[Int64[np.ndarray, "*N"], Int64[np.ndarray, " N"]]:
    """Table and labels of the blocks of a congruence; `GAP` where no member knows."""
    count = int(blocks.max()) + 1
    windows = np.argwhere(table >= 0)
    smaller = np.full((count,) * table.ndim, GAP)
    smaller[tuple(blocks[windows].T)] = blocks[table[tuple(windows.T)]]
    their_labels = np.full(count, GAP)
    np.maximum.at(their_labels, blocks, labels)
    return smaller, their_labels


def _united(
    table: Int64[np.ndarray, "*K"], apart: Bool[np.ndarray, "K K"], pairs: Iterable[Sequence[int]]
) -> Int64[np.ndarray, " K"]:
    """The blocks after every pair, in turn, was united with all that follows from it, where no two are `apart`.

    What is known of a block is kept at its first class. A pair that cannot be united stays apart: later blocks are
    coarser, so that no more pairs can be.
    """
    table = table.copy()
    apart = apart.copy()
    blocks = np.arange(len(apart))
    for first, second in pairs:
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
    """The finest congruence in which these blocks of another are one; None where two that are apart would be.

    Windows of blocks that stay as they were agree already: only those with a part in a block that grew are looked at.
    """
    blocks = np.where(blocks == high, low, blocks)
    grown = np.array([low, high])  # first classes of the blocks that are no longer alone
    while not (apart[np.ix_(grown, grown)] & (blocks[grown][:, None] == blocks[grown])).any():
        into = np.arange(len(blocks))
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0)[grown]
            windows = np.nonzero(around >= 0)
            results = blocks[around[windows]]
            of_parts = (np.unique(blocks[grown], return_inverse=True)[1], *[blocks] * (table.ndim - 1))
            parts = [of_part[part] for of_part, part in zip(of_parts, windows, strict=True)]
            keys = np.ravel_multi_index(parts, around.shape)
            least = np.full(around.size, len(blocks))
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
    """Move what is known of blocks that are now parts of others to the first classes of those, in place."""
    for one in np.unique(blocks[united != blocks]):
        first = united[one]
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0)
            around[first] = np.maximum(around[first], around[one])  # those that know agree
            around[one] = GAP
        apart[first] |= apart[one]
        apart[:, first] |= apart[:, one]


def _differ_apart(table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"]) -> Bool[np.ndarray, "K K"]:
    """Pairs that can lie in one block of no congruence: known windows around them lead to different labels."""
    known = labels >= 0
    apart: np.ndarray = known[:, None] & known & (labels[:, None] != labels)
    num_before = -1
    while num_before < apart.sum():
        num_before = apart.sum()
        for index in range(table.ndim):
            around = np.moveaxis(table, index, 0).reshape(len(labels), -1)
            for one in range(len(labels)):
                contexts = np.flatnonzero(around[one] >= 0)
                others = one + np.flatnonzero(~apart[one, one:])  # those before it were compared with it
                successors = around[np.ix_(others, contexts)]
                differ = ((successors >= 0) & apart[around[one, contexts], successors]).any(1)
                apart[one, others[differ]] = apart[others[differ], one] = True
    return apart
