"""The windows that a level of a tree can contain; a window consists of C neighboring parts, which are merged."""

import numpy as np
from jaxtyping import Int64

MAX_MERGES = 20_000_000
"""The largest number of windows in a block of `window_blocks`, and of entries in the table of an extracted machine."""

MAX_PARTS = 4 * MAX_MERGES
"""The largest number of parts in all windows of a level together."""


def window_blocks(num_mixed: int, num_full: int, chunk_size: int) -> list[Int64[np.ndarray, "N C"]]:
    """Return all windows that occur in strings, in blocks; a window lists the ids of its parts, and -1 for pads.

    The oldest part comes first. Ids below `num_mixed` are parts that begin with pads, and the next `num_full` ids are
    parts of symbols only. With chunk size C, block j < C contains windows that consist of pads, then one part with at
    least one symbol, then j parts of symbols only. The last block contains windows whose parts all consist of symbols
    only. In each block, the oldest part varies slowest. Suppose that parts are in the order of length and symbols. Then
    all windows before the last block are also in this order, and so are the windows of the last block.
    """
    if (size := chunk_size * count_windows(num_mixed, num_full, chunk_size)) > MAX_PARTS:
        raise ValueError(
            f"chunk_size: expected at most {MAX_PARTS:,} parts (chunk_size times the number of windows), got {size:,}, "
            f"from {num_full:,} classes in chunks of {chunk_size}; use smaller chunks or fewer classes"
        )
    parts, full = np.arange(num_mixed + num_full), np.arange(num_mixed, num_mixed + num_full)
    blocks = []
    for behind in range(chunk_size):
        # In the last of these blocks, no part is a pad. If the first part had symbols only, the window would belong to
        # the block of windows without pads, so such first parts are left out here.
        begins = parts if behind < chunk_size - 1 else parts[:num_mixed]
        grid = _grid([begins] + [full] * behind)
        blocks.append(np.column_stack([np.full((len(grid), chunk_size - grid.shape[1]), -1), grid]))
    return [*blocks, _grid([full] * chunk_size)]


def count_windows(num_mixed: int, num_full: int, chunk_size: int) -> int:
    """Return the number of windows of `window_blocks`, without building them, which could need too much memory."""
    with_pads = sum((num_mixed + num_full) * num_full**behind for behind in range(chunk_size - 1))
    return int(with_pads + num_mixed * num_full ** (chunk_size - 1) + num_full**chunk_size)


def _grid(axes: list[Int64[np.ndarray, " _"]]) -> Int64[np.ndarray, "M C"]:
    """Return all combinations of one entry from each axis; the first axis varies slowest."""
    # The size is float64, because a product of int64 numbers could wrap around to a small number.
    size = int(np.prod([len(axis) for axis in axes], dtype=np.float64))
    if size > MAX_MERGES:
        raise ValueError(
            f"table: expected at most {MAX_MERGES:,} windows to merge, got {size:,}; use a machine with fewer classes"
        )
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
