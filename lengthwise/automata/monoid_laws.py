"""Checking whether the merges of a tree machine are the products of a monoid."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from lengthwise.automata.tree_machine import TreeMachine
from lengthwise.validation import check_kind


class MonoidLaws(NamedTuple):
    """The result of testing whether known entries of a table are products in a monoid whose identity is the pad.

    Let the product ``a b`` be the class of the window that contains pads, then a, then b.

    - `pad_is_identity`: True if each known window of one class a among pads has class a.
    - `num_decided`: the number of triples for which ``(a b) c`` and ``a (b c)`` are both known. For chunk sizes
      C > 2, the windows ``k_1 ... k_C`` whose class and ``((k_1 k_2) ...) k_C`` are both known also count.
    - `num_violations`: the number of these triples and windows for which the two results differ.
    """

    pad_is_identity: bool
    num_decided: int
    num_violations: int


def monoid_laws(machine: TreeMachine) -> MonoidLaws:
    """Check the laws of a monoid on all classes of a reduced machine, in which no two classes are equivalent.

    Example:
        >>> from lengthwise.automata import library
        >>> from lengthwise.automata.tree_machine import tree_machine
        >>> monoid_laws(tree_machine(library.parity()))
        MonoidLaws(pad_is_identity=True, num_decided=8, num_violations=0)
    """
    check_kind("machine", machine, TreeMachine, "a TreeMachine")
    every = np.arange(machine.num_classes)
    pad = int(machine.leaves[0])
    chunk = machine.chunk_size
    alone = np.full((chunk, machine.num_classes, chunk), pad)
    alone[np.arange(chunk), :, np.arange(chunk)] = every
    merged = machine.merged(alone)
    product = machine.table[(pad,) * (chunk - 2)]
    num_decided, num_violations = 0, 0
    # Only the triples with the same a are checked at once, because all triples would take K^3 numbers.
    for a in every:
        left = _products(product, product[a][:, None], every)
        decided, violated = _compared(left, _products(product, a, product))
        num_decided, num_violations = num_decided + decided, num_violations + violated
    if chunk > 2:
        windows = np.argwhere(machine.table >= 0).T
        # A window of more than two classes is compared with the product from the left. For a window of two classes,
        # both are the same entry.
        from_left = windows[0]
        for part in windows[1:]:
            from_left = _products(product, from_left, part)
        decided, violated = _compared(from_left, machine.table[tuple(windows)])
        num_decided, num_violations = num_decided + decided, num_violations + violated
    return MonoidLaws(bool(((merged == every) | (merged < 0)).all()), num_decided, num_violations)


def _products(
    product: Int64[np.ndarray, "K K"], first: Int64[np.ndarray, "*#N"] | np.int64, second: Int64[np.ndarray, "*#N"]
) -> Int64[np.ndarray, "*N"]:
    """Return the products of classes, or -1 if a factor or the product is unknown."""
    return np.where((first >= 0) & (second >= 0), product[first, second], -1)


def _compared(one: Int64[np.ndarray, "*N"], other: Int64[np.ndarray, "*N"]) -> tuple[int, int]:
    """Return the number of entries that are known in both arrays, and the number of these entries that differ."""
    decided = (one >= 0) & (other >= 0)
    return int(decided.sum()), int((decided & (one != other)).sum())
