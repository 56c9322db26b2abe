"""Grid machines in certificates, which answer a pair of strings by a rule over a grid. This module imports no torch."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, final

import numpy as np
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from lengthwise.automata.grid_machine import GridMachine, Ids
from lengthwise.automata.grid_product import difference
from lengthwise.conventions import BAR, NUM_SPECIAL, SEP

SPECIAL_SYMBOLS = {SEP: "<sep>", BAR: "|"}
"""The symbols that are not letters, by their ids."""

NUM_LETTERS = (10, 40, 160)
"""The tested numbers of letters in a string; both strings of a pair have the same number of letters."""

NUM_PAIRS = 200
"""The number of tested pairs of strings for each number of letters."""

Class = Annotated[int, Field(ge=0, lt=2**31)]
"""A class of a grid machine, by its index."""

Number = Annotated[int, Field(gt=-(2**31), lt=2**31)]
"""A number that a grid machine adds to its answer."""


@final
class GridMachineFields(TypedDict):
    """The fields that `GridMachine.to_json` returns."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    letters: list[str]
    cells: list[list[list[list[list[Class]]]]]
    top: Class
    left: Class
    numbers: list[Number]
    per_row: Number


class GridError(NamedTuple):
    """The symbols of a problem (a pair of strings) that a machine and the task answer differently.

    `is_shortest` is True if the machine and the task are known to agree on all problems with fewer symbols.
    """

    symbols: tuple[str, ...]
    is_shortest: bool


def first_grid_error(machine: GridMachine, task: GridMachine) -> GridError | None:
    """Return a problem that the machine and the task answer differently; None proves that they agree on all problems.

    Raises:
        ValueError: neither such a problem nor a proof was found.
    """
    distinguishing = difference(machine, task)
    if distinguishing is None:
        return None
    first, second = ([task.symbols[letter] for letter in string] for string in distinguishing[:2])
    return GridError((*first, SPECIAL_SYMBOLS[BAR], *second, SPECIAL_SYMBOLS[SEP]), distinguishing.is_shortest)


def problems_of(first: Ids, second: Ids) -> Ids:
    """Return a problem for each pair of strings: the first string, a bar, the second string, and `SEP`.

    Example:
        >>> problems_of(np.array([[0, 1]]), np.array([[1]]))  # in problems, the ids of letters begin at 2
        array([[2, 3, 1, 3, 0]])
    """
    bar, sep = (np.full((len(first), 1), symbol) for symbol in (BAR, SEP))
    return np.hstack([first + NUM_SPECIAL, bar, second + NUM_SPECIAL, sep])


def answer_to(problem: Sequence[str], task: GridMachine) -> int | None:
    """Return the number that a task's machine answers to a problem; None if the symbols do not form a problem."""
    ids = {symbol: index for index, symbol in enumerate(task.symbols)}
    bar_symbol = SPECIAL_SYMBOLS[BAR]
    *content, end = problem or ("",)
    if end != SPECIAL_SYMBOLS[SEP] or content.count(bar_symbol) != 1 or not set(content) <= {bar_symbol, *ids}:
        return None
    bar = content.index(bar_symbol)
    strings = content[:bar], content[bar + 1 :]
    if not all(strings):
        return None
    first, second = (np.array([[ids[symbol] for symbol in string]]) for string in strings)
    return int(task.run(first, second)[0])
