"""The contract of a file format of machines, and the registry of formats."""

from abc import ABC, abstractmethod
from functools import wraps
from typing import Any, ClassVar

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.formats.notes import Notes
from lengthwise.registry import Registry


def check_labeled(machine: object) -> None:
    """Raise a ValueError unless a machine is a LabeledMachine, which has a name for each answer."""
    if not isinstance(machine, LabeledMachine):
        raise ValueError(
            f"machine: expected a LabeledMachine, got {type(machine).__name__}; write LabeledMachine(task.transducer, "
            "task.classes) for a task, and labeled_dfa(dfa) for an automaton (both from lengthwise.automata.labeled)"
        )


class Format(ABC):
    """A text format of finite machines; the suffix of a file determines its format."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    comment: ClassVar[str | None] = None
    """The beginning of comment lines, which do not change the machine; None if the format has no comments."""
    holds_automata_alone: ClassVar[bool] = False
    """True if the format expresses only automata; answers such as OK and FAIL are then written as accept and reject."""
    has_names: ClassVar[bool] = False
    """True for source code, whose identifiers begin with the name of the file."""

    def __init_subclass__(cls) -> None:
        """Make `write` of each format check that it is given a LabeledMachine."""
        super().__init_subclass__()
        if "write" not in cls.__dict__:
            return
        write = cls.write

        @wraps(write)
        def checked(machine: LabeledMachine, **options: Any) -> str:
            check_labeled(machine)
            return write(machine, **options)

        cls.write = staticmethod(checked)  # type: ignore[method-assign]

    @staticmethod
    @abstractmethod
    def write(machine: LabeledMachine) -> str:
        """Return the machine as text.

        Raises:
            ValueError: the format cannot express the machine's symbols, answers or size.
        """

    @classmethod
    def write_annotated(cls, machine: LabeledMachine, notes: Notes) -> str:
        """Return the machine as text with notes, by default as comments before it.

        Raises:
            ValueError: the format has no comments, or cannot express the machine (`write`).
        """
        if cls.comment is None:
            raise ValueError(f"format: expected a format with comments, got {cls.name}; choose another format")
        return "".join(f"{cls.comment}{line}\n" for line in notes.lines()) + cls.write(machine)


class ReadableFormat(Format):
    """A format of finite machines that can be written and read.

    A machine that is written and then read gives the same answers to all nonempty strings. If every string is either
    accepted or rejected, the answer to the empty string also stays the same.
    """

    @staticmethod
    @abstractmethod
    def read(text: str) -> LabeledMachine:
        """Return the machine that a text describes.

        Raises:
            ValueError: the text is not a machine of this format, or describes a nondeterministic machine with
                outputs on states or edges.
        """


class Drawing(Format):
    """A format for people, which omits some sinks (`find_sinks`), and lists the omitted sinks in a note."""

    @staticmethod
    @abstractmethod
    def write(machine: LabeledMachine, *, with_sinks: bool = False) -> str:
        """Return the machine as text; `with_sinks` includes the sinks that are omitted by default.

        Raises:
            ValueError: the format cannot express the machine's symbols, answers or size.
        """


FORMATS: Registry[type[Format]] = Registry("format", "lengthwise.formats")
