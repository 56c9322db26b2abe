"""The routings of RegularGPT's tree and of similar parallel scans: the values that are merged at each step.

A routing is a list of merges over the positions 0 ... T-1 of a string. At first, the value of each position is its
symbol. A merge replaces the value of its `position` by the product of the values that the positions `parts` had before
the step, oldest first. Positions without a merge in a step keep their value. Negative parts are pads, whose value is
the identity.

Source: Chi et al. (2023), Figures 1 and 2.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lengthwise.ops.tree import num_levels


class Merge(NamedTuple):
    """A merge: after step `step` (from 1), the value of `position` is the product of `parts`, oldest first."""

    step: int
    position: int
    parts: tuple[int, ...]


def sliding_routing(length: int, chunk_size: int = 2) -> list[Merge]:
    """Return the routing for answers to all prefixes: ceil(log_C T) steps of T merges each.

    T is `length`, and C is `chunk_size`. In step l, each position m merges the positions m - (C-1) C^(l-1), ..., m -
    C^(l-1), m. At the end, the value of each position is the product of the prefix that ends there.

    Example:
        >>> [(merge.step, merge.parts) for merge in sliding_routing(3)]
        [(1, (-1, 0)), (1, (0, 1)), (1, (1, 2)), (2, (-2, 0)), (2, (-1, 1)), (2, (0, 2))]
    """
    merges = []
    for step in range(1, num_levels(length, chunk_size) + 1):
        stride = chunk_size ** (step - 1)
        merges += [Merge(step, position, _window(position, stride, chunk_size)) for position in range(length)]
    return merges


def tree_routing(length: int, chunk_size: int = 2) -> list[Merge]:
    """Return the routing for the answer to the whole string: ceil(log_C T) steps, but only about T / (C - 1) merges.

    T is `length`, and C is `chunk_size`. In step l, only the positions T-1, T-1 - C^l, ... have merges. At the end, the
    value of the last position is the product of the string.

    Example:
        >>> [(merge.step, merge.parts) for merge in tree_routing(5)]
        [(1, (-1, 0)), (1, (1, 2)), (1, (3, 4)), (2, (-2, 0)), (2, (2, 4)), (3, (0, 4))]
    """
    merges = []
    for step in range(1, num_levels(length, chunk_size) + 1):
        reach = chunk_size**step
        positions = range((length - 1) % reach, length, reach)
        merges += [Merge(step, position, _window(position, reach // chunk_size, chunk_size)) for position in positions]
    return merges


def hillis_steele_scan(length: int) -> list[Merge]:
    """Return a routing for all prefixes in the fewest steps: ceil(log_2 T) steps, about T log_2 T merges.

    At step l, each position m >= 2^(l-1) merges m - 2^(l-1) and m. These are the merges of `sliding_routing` with chunk
    size 2 that contain no pads.

    Example:
        >>> [(merge.step, merge.parts) for merge in hillis_steele_scan(3)]
        [(1, (0, 1)), (1, (1, 2)), (2, (0, 2))]

    Source: Hillis and Steele, "Data Parallel Algorithms" (1986).
    """
    return [merge for merge in sliding_routing(length) if min(merge.parts) >= 0]


def blelloch_scan(length: int) -> list[Merge]:
    """Return a routing for all prefixes with few merges: at most 2 log_2 T steps and 2 T merges.

    T is `length`. The scan goes up a tree over aligned pairs, and then down. On the way up, the level l rises from 1.
    At level l, each of the positions 2^l - 1, 2 * 2^l - 1, ... merges with the position that is 2^(l-1) before it. On
    the way down, l falls. Each position halfway between two neighbors in this list of level l merges with the position
    that is 2^(l-1) before it.

    Example:
        >>> [(merge.step, merge.parts) for merge in blelloch_scan(4)]
        [(1, (0, 1)), (1, (2, 3)), (2, (1, 3)), (3, (1, 2))]

    Source: Blelloch, "Prefix Sums and Their Applications" (1990).
    Differs from the source: the product of a position includes its own symbol (the form of Brent and Kung); T need not
        be a power of two.
    """
    strides = [2**level for level in range(num_levels(length, 2))]
    up = [range(2 * stride - 1, length, 2 * stride) for stride in strides]
    down = [range(3 * stride - 1, length, 2 * stride) for stride in reversed(strides)]
    sweeps = [*zip(strides, up, strict=True), *zip(reversed(strides), down, strict=True)]
    filled = [(stride, positions) for stride, positions in sweeps if positions]
    return [
        Merge(step, position, (position - stride, position))
        for step, (stride, positions) in enumerate(filled, start=1)
        for position in positions
    ]


def path_to(merges: Iterable[Merge], position: int) -> list[Merge]:
    """Return the merges on which the final value of `position` depends, in order of their steps.

    Raises:
        ValueError: the position lies outside the merges.

    Example:
        >>> [(merge.step, merge.parts) for merge in path_to(hillis_steele_scan(4), 3)]
        [(1, (0, 1)), (1, (2, 3)), (2, (1, 3))]
    """
    # Go backwards from the last step, because a merge's parts are the results of earlier merges.
    needed, path = {position}, []
    in_order = sorted(merges, key=lambda merge: (-merge.step, merge.position))
    last = max((merge.position for merge in in_order), default=0)
    if not 0 <= position <= last:
        raise ValueError(
            f"position: expected a position from 0 to {last}, got {position}; choose a position in this range"
        )
    at = {(merge.step, merge.position): merge for merge in in_order}
    for step in dict.fromkeys(merge.step for merge in in_order):
        merged = [at[step, needed_position] for needed_position in needed if (step, needed_position) in at]
        needed -= {merge.position for merge in merged}
        needed |= {part for merge in merged for part in merge.parts if part >= 0}
        path += merged
    return sorted(path)


def _window(position: int, stride: int, chunk_size: int) -> tuple[int, ...]:
    return tuple(position - j * stride for j in reversed(range(chunk_size)))
