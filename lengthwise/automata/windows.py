"""The windows of parts that a level of a tree can have."""

import numpy as np
from jaxtyping import Int64

MAX_MERGES = 20_000_000
"""Merges of one level that a comparison looks at, at most."""

MAX_PARTS = 4 * MAX_MERGES
"""Of all windows of one level together, at most."""


def window_blocks(num_mixed: int, num_full: int, chunk_size: int) -> list[Int64[np.ndarray, "N C"]]:
    """All windows that strings show, made of parts 0 ... num_mixed + num_full - 1 and of pads (-1), oldest first.

    The first `num_mixed` parts begin with pads, the others are of symbols only. Block j < C has pads, then one part
    with symbols, then j parts of symbols only; the last block has parts of symbols only. In each, the oldest part
    varies slowest: where parts are in order of length and symbols, so are the windows of all blocks but the last, and
    those of the last.
    """
    if (size := chunk_size * count_windows(num_mixed, num_full, chunk_size)) > MAX_PARTS:
        raise ValueError(
            f"chunk_size: expected windows of at most {MAX_PARTS:,} parts at a level, got {size:,}, of "
            f"{num_full:,} classes in chunks of {chunk_size}; take smaller chunks"
        )
    parts, full = np.arange(num_mixed + num_full), np.arange(num_mixed, num_mixed + num_full)
    blocks = []
    for behind in range(chunk_size):
        # Without a pad before it, a part of symbols only makes a window of the last block.
        begins = parts if behind < chunk_size - 1 else parts[:num_mixed]
        grid = _grid([begins] + [full] * behind)
        blocks.append(np.column_stack([np.full((len(grid), chunk_size - grid.shape[1]), -1), grid]))
    return [*blocks, _grid([full] * chunk_size)]


def count_windows(num_mixed: int, num_full: int, chunk_size: int) -> int:
    """How many windows `window_blocks` has, which can be far more than memory holds."""
    with_pads = sum((num_mixed + num_full) * num_full**behind for behind in range(chunk_size - 1))
    return int(with_pads + num_mixed * num_full ** (chunk_size - 1) + num_full**chunk_size)


def _grid(axes: list[Int64[np.ndarray, " _"]]) -> Int64[np.ndarray, "M C"]:
    """All combinations, the first axis slowest."""
    size = int(np.prod([len(axis) for axis in axes], dtype=np.float64))
    if size > MAX_MERGES:
        raise ValueError(f"table: a level has {size:,} merges, more than {MAX_MERGES:,}; reduce the machine first")
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
