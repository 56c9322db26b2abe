"""A grid of cells over two strings. Each cell passes one message downwards and one message to the right.

The cell at row i and column j reads the messages from above and from the left, letter i of the first string and letter
j of the second string. It returns the message downwards and the message to the right. The message above the first row
is `top`, and the message left of the first column is `left`. A message is a tensor of any shape [*M], such as a class
id or a vector. One call of the cell computes N cells, from messages [N, *M] and letters [N].

Cells of an antidiagonal do not depend on one another. So for strings of A and B letters, A + B - 1 calls of the cell
compute all A B cells.

Source: Graves et al., "Multi-dimensional recurrent neural networks" (ICANN 2007).
Differs from the source: the grid is processed in one direction only, and each dimension has its own messages, as in
Kalchbrenner et al., "Grid long short-term memory" (ICLR 2016).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from lengthwise.ops.shapes import check_axes, check_shape, check_tensors, check_whole, values_outside
from lengthwise.validation import check_function

Messages = Shaped[Tensor, "N *M"]
Letters = Int64[Tensor, " N"]
Border = Shaped[Tensor, "*M"]
FirstLetters = Int64[Tensor, "B n"]
SecondLetters = Int64[Tensor, "B m"]
Cell = Callable[[Messages, Messages, Letters, Letters], tuple[Messages, Messages]]


class Antidiagonal(NamedTuple):
    """The messages that the cells of an antidiagonal send. The topmost cell is in row `start`, counted from 0."""

    start: int
    down: Shaped[Tensor, "B W *M"]
    right: Shaped[Tensor, "B W *M"]


def grid_by_definition(
    cell: Cell, top: Border, left: Border, first: FirstLetters, second: SecondLetters
) -> tuple[Shaped[Tensor, "B n m *M"], Shaped[Tensor, "B n m *M"]]:
    """Return all messages of the grid, downwards and to the right, computed cell by cell."""
    _check(cell, top, left, first, second)
    count = len(first)
    row = [top.expand(count, *top.shape)] * second.shape[1]
    downs, rights = [], []
    for a in first.unbind(1):
        message = left.expand(count, *left.shape)
        below, passed = [], []
        for above, b in zip(row, second.unbind(1), strict=True):
            down, message = cell(above, message, a, b)
            below.append(down)
            passed.append(message)
        row = below
        downs.append(torch.stack(below, 1))
        rights.append(torch.stack(passed, 1))
    return torch.stack(downs, 1), torch.stack(rights, 1)


def antidiagonals(
    cell: Cell, top: Border, left: Border, first: FirstLetters, second: SecondLetters
) -> Iterator[Antidiagonal]:
    """Yield the messages of `grid_by_definition`, by antidiagonals; antidiagonal d has the cells (i, d - i).

    Example:
        >>> def cell(above, left, a, b):
        ...     return above + 1, left + (a == b)
        >>> zero, first, second = torch.tensor(0), torch.tensor([[5, 6]]), torch.tensor([[5, 6, 6]])
        >>> [part.right[0].tolist() for part in antidiagonals(cell, zero, zero, first, second)]
        [[1], [1, 0], [1, 1], [2]]
    """
    _check(cell, top, left, first, second)
    count, (height, width) = len(first), (first.shape[1], second.shape[1])
    above, before = (message.expand(count, 1, *message.shape) for message in (top, left))
    down = right = above[:, :0]
    previous = 0  # the first row of the previous antidiagonal
    for diagonal in range(height + width - 1):
        start, end = max(0, diagonal - width + 1), min(height, diagonal + 1)
        from_above = down[:, max(0, start - 1 - previous) : end - 1 - previous]
        from_left = right[:, start - previous :]
        if start == 0:  # its first cell is in the first row
            from_above = torch.cat([above, from_above], 1)
        if end == diagonal + 1:  # its last cell is in the first column
            from_left = torch.cat([from_left, before], 1)
        rows = torch.arange(start, end, device=first.device)
        letters = first[:, start:end].flatten(), second[:, diagonal - rows].flatten()
        messages = cell(from_above.flatten(0, 1), from_left.flatten(0, 1), *letters)
        down, right = (message.unflatten(0, (count, end - start)) for message in messages)
        previous = start
        yield Antidiagonal(start, down, right)


def last_row(
    cell: Cell,
    top: Border,
    left: Border,
    first: FirstLetters,
    second: SecondLetters,
    heights: Int64[Tensor, " B"],
) -> Shaped[Tensor, "B m *M"]:
    """Return the messages that leave row h of each grid downwards; `heights` contains the h of each grid.

    Rows count from 1, and row 0 means the border above the grid. Letters of the first string after row h have no
    influence, so shorter strings may be padded with any letters.
    """
    _check(cell, top, left, first, second)
    check_tensors(heights=heights)
    check_whole("heights", heights)
    check_shape("heights", heights, first.shape[:1], "give one row for each grid")
    count, (height, width) = len(first), (first.shape[1], second.shape[1])
    above = top.expand(count, width, *top.shape)
    if not height or not width:
        return above
    if not torch.compiler.is_exporting() and (got := values_outside(heights, 0, height)):
        raise ValueError(f"heights: expected 0 (the border) or rows 1..{height}, got {got}; count rows from 1")
    row, strings = heights.clamp(min=1) - 1, torch.arange(count, device=heights.device)
    # Only the messages of one row are kept, so memory grows with the sides of the grid, not with its area.
    parts = antidiagonals(cell, top, left, first, second)
    row_messages = torch.stack(
        [part.down[strings, (row - part.start).clamp(0, part.down.shape[1] - 1)] for part in parts]
    )  # an antidiagonal without a cell in this row contributes another cell, which is not selected below
    taken = row_messages[row[:, None] + torch.arange(width, device=heights.device), strings[:, None]]
    is_border = (heights == 0).view(-1, *[1] * (taken.ndim - 1))
    return torch.where(is_border, above, taken)


def _check(cell: Cell, top: Tensor, left: Tensor, first: Tensor, second: Tensor) -> None:
    check_function("cell", cell)
    check_tensors(top=top, left=left, first=first, second=second)
    check_shape("left", left, top.shape, "give messages of one shape at both borders")
    check_axes("first", first, "B, n")
    check_axes("second", second, "B, m")
    if len(first) != len(second):
        raise ValueError(
            f"second: expected {len(first)} strings, as in first, got {len(second)}; give as many as in first"
        )
