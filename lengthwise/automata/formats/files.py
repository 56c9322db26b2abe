"""Machines in files: the format by the suffix."""

from pathlib import Path

from lengthwise.automata.formats.base import FORMATS, Format, ReadableFormat
from lengthwise.automata.labeled import LabeledMachine
from lengthwise.files import write_by_rename


def suffixes(kind: type[Format] = Format) -> dict[str, type[Format]]:
    """The format of each suffix; only those of this kind.

    Example:
        >>> sorted(set(suffixes()) - set(suffixes(ReadableFormat)))
        ['.mermaid', '.mmd', '.svg']
    """
    return {suffix: known for known in FORMATS.values() if issubclass(known, kind) for suffix in known.suffixes}


def format_of(path: Path, kind: type[Format] = Format) -> type[Format]:
    """The format of a file by its suffix; a ValueError names the suffixes that there are."""
    known, suffix = suffixes(kind), path.suffix.lower()
    if suffix not in known:
        raise ValueError(f"{path}: expected a machine's file ({', '.join(known)}), got suffix {suffix!r}; rename it")
    return known[suffix]


def read_machine(path: str | Path) -> LabeledMachine:
    """The machine in a file.

    Raises:
        ValueError: the file is missing, not UTF-8, of no known suffix, or holds no machine; the sentence names it.
    """
    path = Path(path)
    kind = format_of(path, ReadableFormat)
    assert issubclass(kind, ReadableFormat)
    try:
        return kind.read(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{path}: expected a machine's file, got no such file; check its name") from None
    except UnicodeDecodeError as problem:
        raise ValueError(f"{path}: expected text in UTF-8, got other bytes at {problem.start:,}; convert it") from None
    except OSError as problem:
        raise ValueError(f"{path}: cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None


def write_machine(machine: LabeledMachine, path: str | Path) -> None:
    """Write a machine in the format of the file's suffix, by rename.

    Raises:
        ValueError: the suffix is of no format, or the format cannot hold the machine.
        OSError: the file cannot be written.
    """
    path = Path(path)
    kind = format_of(path)
    try:
        content = kind.write(machine)
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    write_by_rename(path, content.encode())
