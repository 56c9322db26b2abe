"""Certificates of models that answer two strings by a rule over their grid; never imports torch."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple, final

import numpy as np
from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from lengthwise.automata.grid_machine import GridMachine, Ids
from lengthwise.automata.grid_product import difference
from lengthwise.conventions import BAR, NUM_SPECIAL, SEP

SPECIAL = {SEP: "<sep>", BAR: "|"}
"""Symbols that are no letters, by their ids."""

NUM_LETTERS = (10, 40, 160)
"""Of each of the two strings that are tested and traced."""

NUM_PAIRS = 200
"""The number of pairs of strings of each length."""

Class = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[int, Field(gt=-(2**31), lt=2**31)]


@final
class GridMachineFields(TypedDict):
    """What `GridMachine.to_json` gives."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    letters: list[str]
    cells: list[list[list[list[list[Class]]]]]
    top: Class
    left: Class
    numbers: list[Number]
    per_row: Number


class GridError(NamedTuple):
    """A problem that a machine answers otherwise than the task, as its symbols.

    `is_shortest`: no problem of fewer symbols is one.
    """

    symbols: tuple[str, ...]
    is_shortest: bool


def first_grid_error(machine: GridMachine, task: GridMachine) -> GridError | None:
    """A problem on which the two differ; None is a proof that there is none.

    Raises:
        ValueError: neither was found.
    """
    distinguishing = difference(machine, task)
    if distinguishing is None:
        return None
    first, second = ([task.symbols[letter] for letter in string] for string in distinguishing[:2])
    return GridError((*first, SPECIAL[BAR], *second, SPECIAL[SEP]), distinguishing.is_shortest)


def problems_of(first: Ids, second: Ids) -> Ids:
    """Return pairs of strings of letters as problems of symbols, with a bar between the two strings."""
    bar, sep = (np.full((len(first), 1), symbol) for symbol in (BAR, SEP))
    return np.hstack([first + NUM_SPECIAL, bar, second + NUM_SPECIAL, sep])


def answer_to(problem: Sequence[str], task: GridMachine) -> int | None:
    """The number that a task's machine gives a problem of symbols; None where it is no problem."""
    ids = {symbol: index for index, symbol in enumerate(task.symbols)}
    *content, end = problem or ("",)
    if end != SPECIAL[SEP] or content.count(SPECIAL[BAR]) != 1 or not set(content) <= {SPECIAL[BAR], *ids}:
        return None
    bar = content.index(SPECIAL[BAR])
    strings = content[:bar], content[bar + 1 :]
    if not all(strings):
        return None
    first, second = (np.array([[ids[symbol] for symbol in string]]) for string in strings)
    return int(task.run(first, second)[0])


def check_classes(classes: tuple[str, ...]) -> None:
    """Raise a ValueError unless each class is named by the integer that it stands for."""
    if classes != tuple(map(str, range(len(classes)))):
        raise ValueError("certificate: expected the integers from 0 as the names of its classes, got others")
