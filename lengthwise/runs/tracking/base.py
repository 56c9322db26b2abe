"""What a tracker is told of a run, and the registry of trackers."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from lengthwise.registry import Registry


class About(NamedTuple):
    """A run before its numbers: its id, its settings under dotted keys, the tracker's project, a folder for files."""

    run_id: str
    settings: Mapping[str, str | int | float | bool]
    project: str
    folder: Path


class Measured(NamedTuple):
    """What a finished run measured: numbers, words, and accuracies or errors against length."""

    numbers: Mapping[str, float]
    words: Mapping[str, str]
    by_length: Mapping[str, Sequence[tuple[int, float]]]


Entry = tuple[int, Mapping[str, float]]
"""A step, and the numbers that belong to it by their names."""


class Tracker(ABC):
    """A run in a tracker: it is opened when it is made, and takes numbers until it is finished.

    Each is a new run of the tracker, with everything from the first step, so that none is mixed with another.

    `modules` are those that the extra of the tracker's name installs.

    Raises:
        ValueError: they are not installed.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]

    @classmethod
    def load(cls) -> list[Any]:
        """The modules of its package, imported now; of one that is not installed a ValueError says how to."""
        return [optional_module(module, cls.name) for module in cls.modules]

    @abstractmethod
    def __init__(self, about: About) -> None: ...

    @abstractmethod
    def log(self, entries: Sequence[Entry]) -> None:
        """Take numbers of training steps, in order of the steps."""

    @abstractmethod
    def summarize(self, measured: Measured, step: int) -> None:
        """Take what was measured after the last step."""

    @abstractmethod
    def finish(self) -> None:
        """Close it: all numbers are written."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where its curves are, in a few words."""


TRACKERS: Registry[type[Tracker]] = Registry("tracker", "lengthwise.runs.tracking")


def optional_module(module: str, tracker: str) -> Any:
    """A module of a tracker's extra, imported now.

    Raises:
        ValueError: it is not installed; the sentence says how to install it.

    Example:
        >>> optional_module("no_such_module", "tensorboard")
        Traceback (most recent call last):
        ValueError: tracker: expected the package of tensorboard, got none; pip install 'lengthwise[tensorboard]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ValueError(
            f"tracker: expected the package of {tracker}, got none; pip install 'lengthwise[{tracker}]'"
        ) from None
