"""Reading and writing of machine files; the suffix of a file determines its format."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.files import UnreadableFile, open_file, write_by_rename
from lengthwise.formats.base import FORMATS, Drawing, Format, ReadableFormat, check_labeled
from lengthwise.formats.dot import DOT
from lengthwise.formats.notes import notes_on
from lengthwise.pictures import SUFFIXES, save_drawing
from lengthwise.validation import path_of

Parsed = TypeVar("Parsed")

MAX_BYTES = 64 * 2**20
"""The largest size of a machine's file that is read, in bytes."""


def suffixes(*, readable: bool = False) -> dict[str, type[Format]]:
    """Return the format of each suffix; with `readable`, only of suffixes whose files can be read.

    Example:
        >>> sorted(set(suffixes()) - set(suffixes(readable=True)))
        ['.cjs', '.h', '.js', '.mermaid', '.mmd', '.pdf', '.png', '.svg']
    """
    known = [kind for kind in FORMATS.values() if not readable or issubclass(kind, ReadableFormat)]
    return {suffix: kind for kind in known for suffix in kind.suffixes}


def format_of(path: Path, *, readable: bool = False) -> type[Format]:
    """Return the format for a file's suffix; if the suffix is unknown, raise a ValueError that lists all suffixes."""
    known, suffix = suffixes(readable=readable), path.suffix.lower()
    if suffix not in known:
        names, way_out = ", ".join(known), "choose one of these suffixes"
        if suffix == ".py":
            way_out = "in Python, task_from_function and write_machine write the machine of a function to such a file"
        raise ValueError(f"{_named(path)}: expected a machine's file ({names}), got suffix {suffix!r}; {way_out}")
    return known[suffix]


def read_machine(path: str | Path) -> LabeledMachine:
    """Return the machine in a file.

    Raises:
        ValueError: the file is missing, is not UTF-8, has an unknown suffix, is larger than `MAX_BYTES`, or does not
            contain a machine.
    """
    path = path_of("path", path)
    kind = format_of(path, readable=True)
    assert issubclass(kind, ReadableFormat)
    return parsed_file(path, "a machine's file", kind.read)


def parsed_file(path: Path, what: str, parse: Callable[[str], Parsed]) -> Parsed:
    """Return the result of `parse` for the text of a file; errors name the file and its expected content, `what`."""
    try:
        return parse(_content(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{_named(path)}: expected {what}, found no such file; check its name") from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{_named(path)}: expected text in UTF-8, got other bytes; convert the file to UTF-8"
        ) from None
    except UnreadableFile:
        raise
    except ValueError as problem:
        raise ValueError(f"{_named(path)}: {problem}") from None


def write_machine(machine: LabeledMachine, path: str | Path, *, mealy: bool = False, with_sinks: bool = False) -> None:
    """Write a machine in the format of the file's suffix; the file appears whole or not at all.

    With `mealy`, write a Mealy machine in DOT. With `with_sinks`, draw the sinks that drawings omit by default.

    Raises:
        ValueError: `machine` is not a LabeledMachine, or the suffix is unknown, or the format cannot express the
            machine, or `mealy` or `with_sinks` is given for a format without this option.
        OSError: the file cannot be written.
        RuntimeError: the library that draws PNG and PDF crashed.
    """
    check_labeled(machine)
    path = path_of("path", path)
    kind = format_of(path)
    if mealy and not issubclass(kind, DOT):
        raise ValueError(
            f"{_named(path)}: expected a path that ends in {DOT.suffixes[0]} for a Mealy machine; change the suffix"
        )
    if with_sinks and not issubclass(kind, Drawing):
        drawn = ", ".join(suffix for suffix, other in suffixes().items() if issubclass(other, Drawing))
        raise ValueError(
            f"with_sinks: expected a drawing ({drawn}), got {path.suffix}, a format that contains all states anyway; "
            "leave with_sinks out"
        )
    try:
        if mealy:
            content = DOT.write_mealy(machine)
        elif kind.has_names:
            content = kind.write_annotated(machine, notes_on(machine, path.stem))
        elif issubclass(kind, Drawing):
            content = kind.write(machine, with_sinks=with_sinks)
        else:
            content = kind.write(machine)
    except ValueError as problem:
        raise ValueError(f"{_named(path)}: {problem}") from None
    if path.suffix.lower() in SUFFIXES:
        save_drawing(content, path)
    else:
        write_by_rename(path, content.encode())


def _content(path: Path) -> bytes:
    """Return the bytes of a plain file, unless it is too large."""
    with open_file(path) as file:  # one byte more than allowed is read, because sizes of special files are unknown
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"expected a machine's file of at most {MAX_BYTES:,} bytes, got a larger file; make the machine smaller"
        )
    return content


def _named(path: Path) -> str:
    name = str(path)
    return name if name.isprintable() and len(name) <= 200 else f"{name[:200]!r}"
