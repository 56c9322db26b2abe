"""The contract of an export, and the registry of formats."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from lengthwise.registry import Registry
from lengthwise.validation import check_kind, path_of

Form = Literal["step", "strings", "parts"]
"""The form of a graph: one step of a recurrent model, whole strings, or (in ONNX) parts of strings in sequence."""


class Options(NamedTuple):
    """Options that only some formats take: `form` and `max_length` for graphs, `answer` for regular expressions."""

    form: Form | None = None
    max_length: int | None = None
    answer: str | None = None

    def check_given(self, format_name: str, takes: Sequence[str]) -> None:
        """Raise a ValueError if an option is given that the format does not take."""
        for option, value in self._asdict().items():
            if value is not None and option not in takes:
                raise ValueError(
                    f"{option}: expected no value for format {format_name}, got {value}; leave out this option"
                )


class Export(ABC):
    """A format to which a stored model, or its machine, is exported.

    `has_weights` is True if the format contains the model itself, and `is_folder` if an export is a folder of files.
    """

    name: ClassVar[str]
    has_weights: ClassVar[bool] = False
    is_folder: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def write(source: str, out: Path, options: Options) -> list[tuple[str, str]]:
        """Write the model or machine of `source` to `out`, and return a report: pairs of a topic and a text.

        Raises:
            ValueError: the path has no model or machine, or the format cannot represent it.
        """


EXPORTS: Registry[type[Export]] = Registry("export format", "lengthwise.export")


def export(source: str | Path, to: str, out: str | Path, options: Options | None = None) -> list[tuple[str, str]]:
    """Write a stored model or its machine in the format `to` (of `EXPORTS`), and return a report.

    Raises:
        ValueError: the format does not exist, the source has no model or machine, or the format cannot represent it.
        OSError: the file cannot be written.
    """
    check_kind("options", options, (Options, type(None)), "an Options of lengthwise.export.base")
    given = Options() if options is None else options
    return EXPORTS[to].write(str(source), path_of("out", out), given)
