"""Reading and writing of machines in files; the suffix of a file decides its format."""

from pathlib import Path

from lengthwise.automata.labeled import LabeledMachine
from lengthwise.files import UnreadableFile, open_file, write_by_rename
from lengthwise.formats.base import FORMATS, Format, ReadableFormat
from lengthwise.formats.dot import DOT
from lengthwise.formats.notes import notes_on

MAX_BYTES = 64 * 2**20
"""The largest size of a machine's file that is read, in bytes."""


def suffixes(*, readable: bool = False) -> dict[str, type[Format]]:
    """Return the format of each suffix, or only of suffixes that can be read.

    Example:
        >>> sorted(set(suffixes()) - set(suffixes(readable=True)))
        ['.cjs', '.h', '.js', '.mermaid', '.mmd', '.svg']
    """
    known = [kind for kind in FORMATS.values() if not readable or issubclass(kind, ReadableFormat)]
    return {suffix: kind for kind in known for suffix in kind.suffixes}


def format_of(path: Path, *, readable: bool = False) -> type[Format]:
    """Return the format of a file by its suffix; raise a ValueError with all known suffixes if there is none."""
    known, suffix = suffixes(readable=readable), path.suffix.lower()
    if suffix not in known:
        names = ", ".join(known)
        raise ValueError(
            f"{_named(path)}: expected a machine's file ({names}), got suffix {suffix!r}; choose one of these"
        )
    return known[suffix]


def read_machine(path: str | Path) -> LabeledMachine:
    """Return the machine in a file.

    Raises:
        ValueError: the file is missing, not UTF-8, of unknown suffix, larger than `MAX_BYTES`, or does not contain a
            machine.
    """
    path = Path(path)
    kind = format_of(path, readable=True)
    assert issubclass(kind, ReadableFormat)
    try:
        return kind.read(_content(path).decode("utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{_named(path)}: expected a machine's file, got no such file; check its name") from None
    except UnicodeDecodeError:
        raise ValueError(f"{_named(path)}: expected text in UTF-8, got others; convert it") from None
    except UnreadableFile:
        raise
    except ValueError as problem:
        raise ValueError(f"{_named(path)}: {problem}") from None


def write_machine(machine: LabeledMachine, path: str | Path, *, mealy: bool = False) -> None:
    """Write a machine in the format of the file's suffix, by rename; with `mealy`, as a Mealy machine in DOT.

    Raises:
        ValueError: the suffix is unknown, or the format cannot express the machine.
        OSError: the file cannot be written.
    """
    path = Path(path)
    kind = format_of(path)
    if mealy and not issubclass(kind, DOT):
        raise ValueError(f"{_named(path)}: expected a DOT file ({DOT.suffixes[0]}) for a Mealy machine; name one")
    try:
        if mealy:
            content = DOT.write_mealy(machine)
        elif kind.has_names:
            content = kind.write_annotated(machine, notes_on(machine, path.stem))
        else:
            content = kind.write(machine)
    except ValueError as problem:
        raise ValueError(f"{_named(path)}: {problem}") from None
    write_by_rename(path, content.encode())


def _content(path: Path) -> bytes:
    """Return the bytes of a plain file, unless it is too large."""
    with open_file(path) as file:  # one byte more than allowed is read, because sizes of special files are unknown
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"expected a machine's file of at most {MAX_BYTES:,} bytes, got more; make the machine smaller"
        )
    return content


def _named(path: Path) -> str:
    name = str(path)
    return name if name.isprintable() and len(name) <= 200 else f"{name[:200]!r}"
