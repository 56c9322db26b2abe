"""Rules over the grid of two strings with a fault planted in them."""

from collections.abc import Iterator

import numpy as np

from lengthwise.automata.grid_machine import GridMachine

A_AND_B = ("a", "b")

Entry = tuple[int, int, int, int]


def with_entry(machine: GridMachine, entry: Entry, classes: tuple[int, int]) -> GridMachine:
    """The machine with other classes from one cell."""
    table = machine.table.copy()
    table[entry] = classes
    return GridMachine(machine.symbols, table, machine.top, machine.left, machine.numbers, machine.per_row)


def planted(machine: GridMachine) -> Iterator[tuple[Entry, GridMachine]]:
    """Machines with one wrong class, downwards or to the right, in one cell of two letters."""
    for p in range(machine.table.shape[0]):
        for q in range(machine.table.shape[1]):
            for letters in ((0, 0), (1, 1), (0, 1), (2, 0)):
                entry = (p, q, *letters)
                right = machine.table[entry]
                for axis in (0, 1):
                    wrong = right.copy()
                    wrong[axis] = (wrong[axis] + 1) % machine.table.shape[axis]
                    yield entry, with_entry(machine, entry, tuple(wrong.tolist()))


def counting(machine: GridMachine, limit: int, direction: str, *, errs: bool) -> GridMachine:
    """The machine with classes that count the cells of a column or row up to a limit, where one gives another class.

    Column c of counts up to `limit` has the class (c, class) as number ``c * classes + class``.
    """
    axis = ("down", "right").index(direction)
    size = machine.table.shape[axis]
    copies = limit + 1
    counts, classes = np.divmod(np.arange(copies * size), size)
    table = np.take(machine.table, classes, axis=axis).copy()
    shape = [1] * 4
    shape[axis] = copies * size
    next_count = np.minimum(counts + 1, limit).reshape(shape)
    made = table[..., axis]
    if errs:
        made = np.where(next_count + 0 * made == limit, (made + (counts.reshape(shape) == limit)) % size, made)
    table[..., axis] = next_count * size + made
    numbers = machine.numbers[classes] if axis == 0 else machine.numbers
    top, left = machine.top, machine.left
    return GridMachine(machine.symbols, table, top, left, numbers, machine.per_row)
