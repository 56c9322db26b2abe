"""The contract of an export, and the registry of formats."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from lengthwise.registry import Registry

Form = Literal["step", "strings", "parts"]
"""Of graphs: one step of a recurrent model, the answers to whole strings, or, in ONNX, to parts that go on."""


class Options(NamedTuple):
    """What only some formats take: of graphs `form` and `max_length`, of regular expressions `answer`."""

    form: Form | None = None
    max_length: int | None = None
    answer: str | None = None

    def check_given(self, format_name: str, takes: Sequence[str]) -> None:
        """Raise a ValueError where something is given that a format does not take."""
        for option, value in self._asdict().items():
            if value is not None and option not in takes:
                raise ValueError(f"{option}: expected none for format {format_name}, got {value}; leave it out")


class Export(ABC):
    """A format that a stored model, or its machine, is exported in.

    `has_weights`: the format contains the model itself; `is_folder`: it is a folder of files.
    """

    name: ClassVar[str]
    has_weights: ClassVar[bool] = False
    is_folder: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write what lies at a path in this format, by rename, and say what was written, by topics.

        Raises:
            ValueError: there is no such model or machine, or the format cannot hold it.
        """


EXPORTS: Registry[type[Export]] = Registry("export format", "lengthwise.export")


def export(source: str | Path, to: str, out: str | Path, options: Options | None = None) -> list[tuple[str, str]]:
    """Write a stored model or its machine in the format `to` (of `EXPORTS`), and say what was written, by topics.

    Raises:
        ValueError: there is no such format, model or machine, or the format cannot hold it.
        OSError: the file cannot be written.
    """
    return EXPORTS[to].write(str(source), Path(out), options or Options())
