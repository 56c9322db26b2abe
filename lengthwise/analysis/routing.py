"""Which values are merged at which step: the tree of RegularGPT next to the parallel scans it resembles.

A routing is a list of merges over the places 0 ... T-1 of a string. Each place first holds its symbol. A merge says
that after its step, `place` holds the product of what `parts` held before the step, oldest first; places that no merge
of a step names keep what they hold. Negative parts are pads, the identity.

Source: Chi et al. (2023), Figures 1 and 2.
"""

from collections.abc import Iterable
from typing import NamedTuple

from lengthwise.ops.tree_attention import num_levels


class Merge(NamedTuple):
    """After step `step` (from 1), `place` holds the product of what the places `parts` held, oldest first."""

    step: int
    position: int
    parts: tuple[int, ...]


def sliding_routing(length: int, chunk_size: int = 2) -> list[Merge]:
    """RegularGPT's answers to all prefixes: at level l every place m merges m - (C-1) C^(l-1), ..., m - C^(l-1), m.

    ceil(log_C T) steps of T merges. Afterwards each place holds the product of its prefix.

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
    """RegularGPT's answer to the whole string: at level l only the places T-1, T-1 - C^l, ... are merged.

    As many steps, but only T / (C - 1) or so merges. Afterwards the last place holds the product of the string.

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
    """All prefixes in the fewest steps: at step l every place m >= 2^(l-1) merges m - 2^(l-1) and m.

    ceil(log_2 T) steps, about T log_2 T merges: `sliding_routing` without its pads.

    Source: Hillis and Steele, "Data Parallel Algorithms" (1986).
    """
    merges, step, stride = [], 1, 1
    while stride < length:
        merges += [Merge(step, position, (position - stride, position)) for position in range(stride, length)]
        step, stride = step + 1, 2 * stride
    return merges


def blelloch_scan(length: int) -> list[Merge]:
    """All prefixes with the fewest merges: up a tree over aligned pairs, then down again.

    Going up, places 2^l - 1, 2 * 2^l - 1, ... take in the place 2^(l-1) before; coming down, in reverse order of l, the
    places half-way between them do. At most 2 log_2 T steps and 2 T merges.

    Source: Blelloch, "Prefix Sums and Their Applications" (1990).
    Differs from the source: a place ends with its own symbol included (the form of Brent and Kung); T need be no power
        of two.
    """
    strides = [1]
    while 2 * strides[-1] < length:
        strides.append(2 * strides[-1])
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
    """The merges on which the value that `place` ends with depends, in order of their steps.

    Example:
        >>> [(merge.step, merge.parts) for merge in path_to(hillis_steele_scan(4), 3)]
        [(1, (0, 1)), (1, (2, 3)), (2, (1, 3))]
    """
    needed, path = {position}, []
    in_order = sorted(merges, key=lambda merge: (-merge.step, merge.position))
    at = {(merge.step, merge.position): merge for merge in in_order}
    for step in dict.fromkeys(merge.step for merge in in_order):
        expected = [at[step, some] for some in needed if (step, some) in at]
        needed -= {merge.position for merge in expected}
        needed |= {part for merge in expected for part in merge.parts if part >= 0}
        path += expected
    return sorted(path)


def _window(position: int, stride: int, chunk_size: int) -> tuple[int, ...]:
    return tuple(position - j * stride for j in reversed(range(chunk_size)))
