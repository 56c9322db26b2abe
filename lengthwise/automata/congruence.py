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
    blocks = _united(table, labels, likely)
    smaller, their_labels = quotient(table, labels, blocks)
    pairs = np.argwhere(np.triu(~_differ_apart(smaller, their_labels), 1))
    joined: np.ndarray = _united(smaller, their_labels, pairs.tolist())[blocks]
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
    table: Int64[np.ndarray, "*K"], labels: Int64[np.ndarray, " K"], pairs: Iterable[Sequence[int]]
) -> Int64[np.ndarray, " K"]:
    """The blocks after every pair, in turn, was united with all that follows from it, where no labels clash."""
    windows = np.argwhere(table >= 0).T
    results = table[tuple(windows)]
    blocks = np.arange(len(labels))
    for first, second in pairs:
        if blocks[first] != blocks[second]:
            low, high = sorted((blocks[first], blocks[second]))
            united = _closed(windows, results, labels, np.where(blocks == high, low, blocks))
            blocks = blocks if united is None else united
    return np.unique(blocks, return_inverse=True)[1]


def _closed(
    windows: Int64[np.ndarray, "C N"],
    results: Int64[np.ndarray, " N"],
    labels: Int64[np.ndarray, " K"],
    blocks: Int64[np.ndarray, " K"],
) -> Int64[np.ndarray, " K"] | None:
    """The finest congruence that is no finer than `blocks`, each named by its first class; None where labels clash."""
    count, sizes = len(blocks), (len(blocks),) * len(windows)
    while not _labels_clash(labels, blocks):
        of_windows, of_results = np.ravel_multi_index(tuple(blocks[windows]), sizes), blocks[results]
        minimum = np.full(np.prod(sizes), count)
        np.minimum.at(minimum, of_windows, of_results)
        into = np.arange(count)
        np.minimum.at(into, of_results, minimum[of_windows])
        joined = into[blocks]
        if np.array_equal(joined, blocks):
            return blocks
        blocks = joined
    return None


def _labels_clash(labels: Int64[np.ndarray, " K"], blocks: Int64[np.ndarray, " K"]) -> bool:
    known = labels >= 0
    greatest = np.full(len(labels), GAP)
    np.maximum.at(greatest, blocks[known], labels[known])
    return bool((greatest[blocks[known]] != labels[known]).any())


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
                others = np.flatnonzero(~apart[one])
                successors = around[np.ix_(others, contexts)]
                differ = ((successors >= 0) & apart[around[one, contexts], successors]).any(1)
                apart[one, others[differ]] = apart[others[differ], one] = True
    return apart
