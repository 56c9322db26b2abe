"""Files that appear whole or not at all; JSON with a digest, so that a number that was changed shows."""

import json
import os
import platform
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

HOST = platform.node().replace("/", "-")[:64] or "localhost"
"""This machine's name, as it stands in names of files: processes of two machines may have one number."""


class UnreadableFile(ValueError):
    """A path is there, but cannot be read as a file: it is protected, or is a folder, a pipe or a device."""


def open_file(path: Path) -> BinaryIO:
    """Open a plain file to read bytes; what it is gets checked first, as opening a pipe waits for its writer.

    Raises:
        FileNotFoundError: there is no such file.
        UnreadableFile: it may not be read, lies in a folder that may not be entered, or is not a file.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UnreadableFile(f"{path}: expected a file, got a pipe or a device; name a file")
        return path.open("rb")
    except OSError as error:
        raise _missing_or_unreadable(path, error) from None


def read_file(path: Path, size: int = -1) -> bytes:
    """Return what a plain file contains, or its first `size` bytes; errors are as in `open_file`."""
    with open_file(path) as file:
        try:
            return file.read(size)
        except OSError as error:
            raise _missing_or_unreadable(path, error) from None


def exists(path: Path) -> bool:
    """Return whether a path exists.

    Raises:
        UnreadableFile: a folder on the way may not be entered, or a name is longer than any file's.
    """
    try:
        path.stat()
    except OSError as error:
        problem = _missing_or_unreadable(path, error)
        if isinstance(problem, UnreadableFile):
            raise problem from None
        return False
    except ValueError:  # a name with a zero byte
        return False
    return True


def _missing_or_unreadable(path: Path, error: OSError) -> FileNotFoundError | UnreadableFile:
    """Tell a file that does not exist from one that cannot be read: what to do next differs."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileNotFoundError(error.errno, error.strerror, str(path))
    return UnreadableFile(f"{path}: cannot be read: {error.strerror or error}; change that, or name another")


def write_by_rename(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    Its draft stands next to it, under a name with those of the machine and the process. A link is replaced, and what it
    leads to stays as it is.

    Raises:
        OSError: the file cannot be written, for a full disk say, or is no file, but a pipe or a device; the sentence
            names it.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(f"{path}: cannot be written: expected a file, got a pipe or a device")
    draft = path.with_name(f".{path.name}.{HOST}.{os.getpid()}")
    try:
        with naming(path):
            draft.unlink(missing_ok=True)  # of a killed process of the same number, or a link that leads elsewhere
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
    finally:
        with suppress(OSError):  # its name may be none: what is wrong with that is said above
            draft.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Return what an error of the system is about, its file first, without its number."""
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return error.strerror or str(error)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system say which file could not be written: the error of a full disk names none."""
    try:
        yield
    except OSError as error:
        raise OSError(f"{path}: cannot be written: {error.strerror or error}") from None


def remove_drafts(path: Path) -> None:
    """Remove what processes left that were killed while they wrote this file; for the one that alone may write it."""
    for draft in path.parent.glob(f".{path.name}.*"):
        with suppress(OSError):
            draft.unlink()


def is_empty(folder: Path) -> bool:
    """Whether a folder contains no files but hidden ones, such as drafts of processes that were killed."""
    return not any(path.is_file() and path.name[0] != "." for path in folder.rglob("*"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object, with the digest of its content."""
    write_by_rename(path, json_text(content).encode())


def read_json(path: Path, way_out: str) -> dict[str, Any]:
    """The object that `write_json` wrote; a damaged file is a ValueError that ends in `way_out`.

    Raises:
        FileNotFoundError: there is no such file.
        UnreadableFile: it may not be read, or is not a file.
        ValueError: the file is not a JSON object, or its content has changed.
    """
    content = read_file(path)
    try:
        return parse_json_text(content.decode())
    except ValueError as error:
        raise ValueError(f"{path}: damaged file ({error}); {way_out}") from None


def json_text(content: Mapping[str, Any]) -> str:
    """An object as JSON, with the digest of its content."""
    return json.dumps({**content, "digest": _digest(content)}, indent=1) + "\n"


def parse_json_text(text: str) -> dict[str, Any]:
    """The inverse of `json_text`; a text that is no JSON object, or whose content has changed, is a ValueError."""
    content = strict_json_loads(text)
    if not isinstance(content, dict):
        raise ValueError("expected a JSON object, got something else")
    if content.pop("digest", None) != _digest(content):
        raise ValueError("its contents have changed")
    return content


def strict_json_loads(text: str | bytes) -> Any:
    """Return the value of a JSON text that says everything once and in numbers that JSON has.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, repeats a key in an object, or contains NaN, an infinite
            number or an integer of more digits than Python converts.

    Example:
        >>> strict_json_loads('{"a": 1, "a": 2}')
        Traceback (most recent call last):
        ValueError: expected each key of an object once, got 'a' twice; keep one entry
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            repeated = max(counts, key=counts.__getitem__)
            raise ValueError(f"expected each key of an object once, got {repeated[:80]!r} twice; keep one entry")
        return content

    def reject(number: str) -> Any:
        raise ValueError(f"expected finite numbers, got {number[:80]}; write null or a text for it")

    def finite(number: str) -> float:
        value = float(number)
        return value if isfinite(value) else reject(number)

    def whole(number: str) -> int:
        try:
            return int(number)
        except ValueError:  # Python converts no number of more than 4,300 digits
            raise ValueError(
                f"expected numbers that can be read, got one of {len(number):,} digits; round it"
            ) from None

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=reject, parse_float=finite, parse_int=whole)
    except json.JSONDecodeError as problem:
        raise ValueError(f"expected JSON, got something else ({problem})") from None
    except UnicodeDecodeError:
        raise ValueError("expected JSON in UTF-8, got other bytes; convert it") from None
    except RecursionError:
        raise ValueError("expected JSON, got something that is nested too deeply; make it flatter") from None


def digest_of(text: str) -> str:
    """The digest that `json_text` put into a text."""
    return str(json.loads(text)["digest"])


def _digest(content: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()
