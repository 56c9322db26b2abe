"""Files that are written completely or not at all, and JSON with a digest that reveals changes."""

import json
import os
import platform
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib.resources import files
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any, BinaryIO, TypeVar

Content = TypeVar("Content")
Default = TypeVar("Default")

HOST = platform.node().replace("/", "-")[:64] or "localhost"
"""This machine's name, which goes into names of files, because processes on two machines may have the same id."""


class UnreadableFile(ValueError):
    """An existing path that cannot be read as a file: it is protected, or is a folder, a pipe or a device."""


def open_file(path: Path) -> BinaryIO:
    """Open a plain file to read bytes. Its kind is checked first, because opening a pipe would wait for a writer.

    Raises:
        FileNotFoundError: the file does not exist.
        UnreadableFile: the path is protected, is in a protected folder, or is not a file.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UnreadableFile(f"{path}: expected a file, got a pipe or a device; name a file")
        return path.open("rb")
    except OSError as error:
        raise _missing_or_unreadable(path, error) from None


def read_file(path: Path, size: int = -1) -> bytes:
    """Return the bytes of a plain file, or only the first `size` of them; errors are as in `open_file`."""
    with open_file(path) as file:
        try:
            return file.read(size)
        except OSError as error:
            raise _missing_or_unreadable(path, error) from None


def exists(path: Path) -> bool:
    """Return whether a path exists.

    Raises:
        UnreadableFile: a folder on the path is protected, or a name is too long for the file system.
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


def package_template(package: str, name: str) -> Template:
    """Return the template that a file of a package contains: a text with marks such as ``$name``."""
    return Template(files(package).joinpath(name).read_text(encoding="utf-8"))


def check_new(paths: Iterable[Path]) -> None:
    """Raise a ValueError if one of the paths exists, even as a broken link."""
    for path in paths:
        if os.path.lexists(path):
            raise ValueError(f"{path}: expected a path without a file, got a file that exists; write to another folder")


def check_no_file(argument: str, folder: Path) -> None:
    """Raise a ValueError, which names the argument, if the path of a folder or of one of its parents is a file."""
    for path in (folder, *folder.parents):
        if os.path.exists(path) and not os.path.isdir(path):
            raise ValueError(f"{argument}: expected a folder, got the file {path}; name another folder")


def unless_damaged(read: Callable[[], Content], default: Default) -> Content | Default:
    """Return what `read` returns, or the default if the file that it reads is missing or damaged.

    An `UnreadableFile` is passed on, because the file may be intact, for example if a disk fails for a moment.
    """
    try:
        return read()
    except UnreadableFile:
        raise
    except (ValueError, FileNotFoundError, RecursionError):
        return default


def _missing_or_unreadable(path: Path, error: OSError) -> FileNotFoundError | UnreadableFile:
    """Return the exception for a missing file or for an unreadable file, because users fix them differently."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return FileNotFoundError(error.errno, error.strerror, str(path))
    return UnreadableFile(
        f"{path}: cannot be read: {error.strerror or error}; make the file readable, or name another file"
    )


def check_suffix(argument: str, path: Path, suffixes: Collection[str], *, any_case: bool = False) -> None:
    """Raise a ValueError, which names the argument, unless the path ends in one of the suffixes."""
    if (path.suffix.lower() if any_case else path.suffix) not in suffixes:
        raise ValueError(
            f"{argument}: expected a name that ends in {', '.join(suffixes)}, got {path.name!r}; change its suffix"
        )


def write_by_rename(path: Path, content: bytes) -> None:
    """Write a file by renaming a complete draft.

    So a reader finds either the old or the new content, even during the writing or after a crash. The draft is in the
    same folder, because a rename must stay on one file system. The draft's name contains the machine and the process. A
    link is replaced, and its target stays as it is.

    Raises:
        OSError: the file cannot be written, for example because the disk is full, or the path is a pipe or a device.
            The message names the file.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(f"{path}: cannot be written: expected a file, got a pipe or a device; name a file")
    draft = path.with_name(f".{path.name}.{HOST}.{os.getpid()}")
    try:
        with naming(path):
            # A killed process with the same id may have left a draft, or the name may be a link to another file.
            draft.unlink(missing_ok=True)
            # Mode "x" creates the file, so a link that appears under this name in the meantime is not followed.
            with draft.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # without this, a crash after the rename could leave an empty file
            draft.replace(path)
    finally:
        with suppress(OSError):  # the name may be invalid, and then the error above has the reason
            draft.unlink(missing_ok=True)


def reason(error: OSError) -> str:
    """Return the message of a system error, with the file's name in front and without the error number."""
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return error.strerror or str(error)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to system errors during writing, because the error of a full disk does not name a file."""
    try:
        yield
    except OSError as error:
        way_out = "" if os.path.isdir(path.parent) else "; create its folder first"
        raise OSError(f"{path}: cannot be written: {error.strerror or error}{way_out}") from None


def remove_drafts(path: Path) -> None:
    """Remove the drafts of a file (`write_by_rename`) that killed processes left.

    Call this function only in the process that alone writes the file.
    """
    for draft in path.parent.glob(f".{path.name}.*"):
        with suppress(OSError):
            draft.unlink()


def is_empty(folder: Path) -> bool:
    """Return whether a folder contains only hidden files, such as drafts of killed processes."""
    return not any(path.is_file() and path.name[0] != "." for path in folder.rglob("*"))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as JSON, with the digest of its content."""
    write_by_rename(path, json_text(content).encode())


def read_json(path: Path, way_out: str) -> dict[str, Any]:
    """Return the object that `write_json` wrote; an error about a damaged file ends in the sentence `way_out`.

    Raises:
        FileNotFoundError: the file does not exist.
        UnreadableFile: the path is protected, or is not a file.
        ValueError: the file is not a JSON object, or its content has changed.
    """
    content = read_file(path)
    try:
        return parse_json_text(content.decode())
    except ValueError as error:
        cause = str(error).rsplit("; ", 1)[0]  # without the way out, which is for files written by hand
        raise ValueError(f"{path}: damaged file ({cause}); {way_out}") from None


def json_text(content: Mapping[str, Any]) -> str:
    """Return an object as JSON, with the digest of its content."""
    return json.dumps({**content, "digest": _digest(content)}, indent=1) + "\n"


def parse_json_text(text: str) -> dict[str, Any]:
    """Return the object in a text that `json_text` made; any other text, or a changed text, raises a ValueError."""
    content = strict_json_loads(text)
    if not isinstance(content, dict):
        raise ValueError("expected a JSON object, got something else")
    if content.pop("digest", None) != _digest(content):
        raise ValueError("its contents have changed")
    return content


def strict_json_loads(text: str | bytes) -> Any:
    """Return the value of a JSON text; reject repeated keys and numbers that are not finite.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or repeats a key in an object; or it contains NaN, an
            infinite number or an integer with more digits than Python converts.

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
        raise ValueError(f"expected finite numbers, got {number[:80]}; write null or a text instead")

    def finite(number: str) -> float:
        value = float(number)
        return value if isfinite(value) else reject(number)

    def whole(number: str) -> int:
        try:
            return int(number)
        except ValueError:  # Python refuses to convert more than 4,300 digits
            raise ValueError(
                f"expected numbers that Python can read, got a number with {len(number):,} digits; round it"
            ) from None

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=reject, parse_float=finite, parse_int=whole)
    except json.JSONDecodeError as problem:
        raise ValueError(f"expected JSON, got something else ({problem}); correct the text there") from None
    except TypeError:
        raise ValueError(f"expected the text of JSON, got {type(text).__name__}; read the file first") from None
    except UnicodeDecodeError:
        raise ValueError("expected JSON in UTF-8, got other bytes; convert the text to UTF-8") from None
    except RecursionError:
        raise ValueError("expected JSON with fewer nested levels, got too many; reduce the nesting") from None


def digest_of(text: str) -> str:
    """Return the digest that `json_text` put into a text."""
    return str(json.loads(text)["digest"])


def _digest(content: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()
