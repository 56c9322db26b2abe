"""The reader of grid recurrences with categorical messages. Training turns these recurrences into rules."""

import math

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lengthwise.automata.grid_machine import GridMachine
from lengthwise.conventions import BAR, NUM_SPECIAL
from lengthwise.extraction.base import READERS, Extraction, Reader, TraceCount, Traces
from lengthwise.layers.grid_cells import CategoricalCell
from lengthwise.models.grid_recurrence import GridRecurrence
from lengthwise.ops.grid import antidiagonals
from lengthwise.validation import narrow

MAX_NUMBER = 1 << 24
"""The bound on the numbers that a net adds: float32 represents all integers up to this bound exactly."""


def grid_machine(cell: CategoricalCell, symbols: tuple[str, ...]) -> GridMachine:
    """Return the machine of a cell at temperature 0, without classes that neither a cell nor a border produces.

    Raises:
        ValueError: the cell's messages are still distributions, or a number is so large that float32 may round it.
    """
    if not cell.is_rule:
        raise ValueError("model: its messages are distributions until training ends; train the net to the end")
    largest = max(float(part.abs().max()) for part in (cell.per_class, cell.per_row))
    if not largest < MAX_NUMBER:
        raise ValueError(
            f"model: expected per_class and per_row below {MAX_NUMBER:,}, which float32 does not round, got "
            f"{largest:g}; train a model with smaller values"
        )
    table, top, left = (part.numpy() for part in cell.classes())
    per_class, per_row = (part.numpy() for part in cell.integers())
    down, right = {int(top)}, {int(left)}
    count = 0
    while count < (count := len(down) + len(right)):
        cells = table[np.ix_(sorted(down), sorted(right))].reshape(-1, 2)
        down, right = ({*known, *made.tolist()} for known, made in zip((down, right), cells.T, strict=True))
    kept = [np.array(sorted(classes)) for classes in (down, right)]
    table = table[np.ix_(*kept)]
    below, passed = (np.searchsorted(classes, table[..., axis]) for axis, classes in enumerate(kept))
    first, second = (int(np.searchsorted(classes, border)) for classes, border in zip(kept, (top, left), strict=True))
    return GridMachine(symbols, np.stack([below, passed], -1), first, second, per_class[kept[0]], int(per_row))


def kept_classes(cell: CategoricalCell, machine: GridMachine) -> tuple[Int64[Tensor, " P"], Int64[Tensor, " Q"]]:
    """Return the cell's index of each class of the machine, for messages downwards and for messages rightwards.

    The machine numbers its classes itself, because it omits classes that neither a cell nor a border produces.
    """
    table, top, left = cell.classes()
    down, right = torch.full((len(machine.table),), -1), torch.full((machine.table.shape[1],), -1)
    down[machine.top], right[machine.left] = top, left
    for _ in range(machine.num_classes):  # each round finds at least one more class
        known = torch.cartesian_prod(torch.nonzero(down >= 0)[:, 0], torch.nonzero(right >= 0)[:, 0])
        results = table[down[known[:, 0]], right[known[:, 1]]].flatten(0, -2)
        named = torch.tensor(machine.table)[known[:, 0], known[:, 1]].flatten(0, -2)
        down[named[:, 0]], right[named[:, 1]] = results.unbind(-1)
    return down, right


class GridTraces(Traces):
    """The messages of a net over the grids of some pairs of strings; all grids have the same shape."""

    def __init__(self, model: GridRecurrence, strings: Int64[Tensor, "B T"]) -> None:
        self.model = model
        self.strings = strings

    def compare(self, extraction: Extraction) -> TraceCount:
        """Compare the net's messages with the machine's messages in each cell, one antidiagonal at a time."""
        cell = narrow(self.model.cell, CategoricalCell)
        machine = narrow(extraction.machine, GridMachine)
        bar = int((self.strings[0] == BAR).int().argmax())
        strings = self.strings[:, :bar] - NUM_SPECIAL, self.strings[:, bar + 1 : -1] - NUM_SPECIAL
        expected = [torch.from_numpy(part) for part in machine.messages(*(string.numpy() for string in strings))]
        named = kept_classes(cell, machine)
        num_wrong = 0
        for diagonal, part in enumerate(antidiagonals(cell.rule(), *cell.borders(), *strings)):
            rows = torch.arange(part.start, part.start + part.down.shape[1])
            differs = [
                message != classes[of_machine[:, rows, diagonal - rows]]
                for message, classes, of_machine in zip(part[1:], named, expected, strict=True)
            ]
            num_wrong += int((differs[0] | differs[1]).sum())
        return TraceCount(len(self.strings), expected[0].numel(), num_wrong, 0.0)


@READERS.register("grid")
class GridReader(Reader[GridRecurrence]):
    """A reader of grid recurrences with categorical messages; the messages are the classes of the machine."""

    kind = GridRecurrence

    @classmethod
    def reads(cls, model: GridRecurrence) -> bool:
        return isinstance(model.cell, CategoricalCell)

    def radii(self, strings: Int64[Tensor, "B T"]) -> list[float]:
        return [0.0]

    def extract(self, radius: float) -> Extraction:
        cell = narrow(self.model.cell, CategoricalCell)
        with torch.no_grad():
            machine = grid_machine(cell, self.symbols[NUM_SPECIAL:])
        messages = torch.eye(len(cell.top), dtype=cell.top.dtype)
        classes, gap = np.arange(len(messages)), math.sqrt(2)  # the distance between any two one-hot vectors
        return Extraction(machine, machine, classes, messages, 0, 0.0, gap, machine.num_classes, exact=True)

    def traces(self, strings: Int64[Tensor, "B T"]) -> Traces:
        return GridTraces(self.model, strings)
