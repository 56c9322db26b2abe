"""The base class of trackers, the facts about a run that trackers get, and their registry."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from lengthwise.registry import Registry


class About(NamedTuple):
    """Facts with which a tracker opens a run: id, settings under dotted keys, project, and a folder for files."""

    run_id: str
    settings: Mapping[str, str | int | float | bool]
    project: str
    folder: Path


class Measured(NamedTuple):
    """The measurements of a finished run: numbers, words, and curves of accuracy or error against length."""

    numbers: Mapping[str, float]
    words: Mapping[str, str]
    by_length: Mapping[str, Sequence[tuple[int, float]]]


Entry = tuple[int, Mapping[str, float]]
"""A step of training, and the numbers that were measured at this step, under their names."""


class Tracker(ABC):
    """A run in a tracker. The constructor opens the run, which accepts numbers until `finish` is called.

    Each object opens a new run of the tracker, and all steps are sent to this new run, beginning with the first step.
    So runs are never mixed.

    `modules` are the modules that the extra with the tracker's name installs.

    Raises:
        ValueError: the modules are not installed.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]

    @classmethod
    def load(cls) -> list[Any]:
        """Import the tracker's modules; a missing module raises a ValueError with the command that installs it."""
        return [optional_module(module, cls.name) for module in cls.modules]

    @abstractmethod
    def __init__(self, about: About) -> None: ...

    @abstractmethod
    def log(self, entries: Sequence[Entry]) -> None:
        """Log entries, each with a training step and its numbers; the entries are in order of their steps."""

    @abstractmethod
    def summarize(self, measured: Measured, step: int) -> None:
        """Log the measurements of the finished run; `step` is the run's last step."""

    @abstractmethod
    def finish(self) -> None:
        """Close the run after all numbers are written."""

    @property
    @abstractmethod
    def location(self) -> str:
        """The place where a user finds the curves, in a few words."""


TRACKERS: Registry[type[Tracker]] = Registry("tracker", "lengthwise.runs.tracking")


def optional_module(module: str, tracker: str) -> Any:
    """Import a module of a tracker's extra.

    Raises:
        ValueError: the module is not installed; the message contains the command that installs it.

    Example:
        >>> optional_module("gone", "trackio")
        Traceback (most recent call last):
        ValueError: tracker: expected the package gone for tracker trackio, got none; pip install 'lengthwise[trackio]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A missing dependency of an installed package is another problem, which this advice would not solve.
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ValueError(
            f"tracker: expected the package {module} for tracker {tracker}, got none; pip install "
            f"'lengthwise[{tracker}]'"
        ) from None
