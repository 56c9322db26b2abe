"""The contract of a file format of machines, and the registry of formats."""

from abc import ABC, abstractmethod
from typing import ClassVar

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.notes import Notes
from lengthwise.registry import Registry


class Format(ABC):
    """A way to write machines as text, known by the suffixes of its files."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    comment: ClassVar[str | None] = None
    """What lines begin with that say nothing of the machine; None: there are no such lines."""
    holds_automata_alone: ClassVar[bool] = False
    """Whether its machines accept or reject, so that two common labels such as OK and FAIL are taken for that."""
    has_names: ClassVar[bool] = False
    """Whether it is source code, whose names begin with that of the file."""

    @staticmethod
    @abstractmethod
    def write(machine: LabeledMachine) -> str:
        """The machine as text.

        Raises:
            ValueError: the format cannot hold its symbols, its answers or its size.
        """

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """The machine as text with notes, here in comments before it.

        Raises:
            ValueError: as `write`; the format has no comments.
        """
        if cls.comment is None:
            raise ValueError(f"format: expected one that has comments, got {cls.name}; convert the machine to it")
        return "".join(f"{cls.comment}{line}\n" for line in notes.lines()) + cls.write(machine)


class ReadableFormat(Format):
    """A format that is read, too: what `write` writes answers every string but the empty one as before.

    The empty string, too, where the machine accepts or rejects every string.
    """

    @staticmethod
    @abstractmethod
    def read(text: str) -> LabeledMachine:
        """The machine of a text.

        Raises:
            ValueError: the text is no machine of this format, or one with several answers that is not deterministic.
        """


FORMATS: Registry[type[Format]] = Registry("format", "lengthwise.formats")
