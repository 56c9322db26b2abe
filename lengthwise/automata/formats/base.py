"""The contract of a file format of machines, and the registry of formats."""

from abc import ABC, abstractmethod
from typing import ClassVar

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.registry import Registry


class Format(ABC):
    """A way to write machines as text, known by the suffixes of its files."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    @staticmethod
    @abstractmethod
    def write(machine: LabeledMachine) -> str:
        """The machine as text.

        Raises:
            ValueError: the format cannot hold its symbols, its answers or its size.
        """


class ReadableFormat(Format):
    """A format that is read, too: what `write` writes answers every string but the empty one as before.

    The empty string, too, where the machine accepts or rejects every string.
    """

    @staticmethod
    @abstractmethod
    def read(text: str) -> LabeledMachine:
        """The machine of a text.

        Raises:
            ValueError: the text is no machine of this format, or no deterministic one.
        """


FORMATS: Registry[type[Format]] = Registry("format", "lengthwise.automata.formats")
