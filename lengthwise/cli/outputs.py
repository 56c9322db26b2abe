"""Results as JSON, and checks before the work: whether results can be written, and whether a run is finished."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from lengthwise.cli.streams import say
from lengthwise.files import exists, is_empty
from lengthwise.printing import write_row

if TYPE_CHECKING:
    from lengthwise.runs.folder import Run


AsJSON = Annotated[
    bool, Parameter(name="--json", help="Print a JSON object for other programs; messages go to stderr.")
]


def write_object(content: Mapping[str, Any]) -> None:
    """Print a result as one line of strict JSON; a number that is not finite becomes null."""
    write_row([json.dumps(_finite(content), allow_nan=False)])  # never wrapped


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def check_writable(file: Path) -> None:
    """Raise a ValueError if a file cannot be written. Commands check this before they begin to work."""
    is_existing = exists(file)
    if file.is_dir():
        raise ValueError(f"{file}: expected a file to write, got a folder; name a file in this folder")
    if is_existing and not file.is_file():
        raise ValueError(f"{file}: expected a file to write, got a pipe or a device; name an ordinary file")
    if (taken := next((path for path in file.parents if exists(path)), file.parent)).is_file():
        raise ValueError(f"{file}: expected a file in a folder, but {taken} is a file; name another path")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Only writing shows whether it is possible: permissions do not reveal a read-only disk.
        with TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise ValueError(f"{file}: cannot be written ({error.strerror}); name a file in another folder") from None


def note_unfinished(path: object, run: "Run") -> None:
    """Write a message to standard error if the training of a run is unfinished."""
    if not run.is_trained:
        say(f"{path}: weights {run.steps_text}; `lengthwise resume {path}` continues the run", 0)


def check_folder(folder: Path, command: str, is_own: bool) -> None:
    """Raise a ValueError if a command cannot write into a folder, or if the folder has files of other programs.

    `is_own` states whether `command` wrote the files in the folder.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if exists(path))
    if not existing.is_dir():
        raise ValueError(f"{existing}: expected a folder, got a file; name another folder")
    if not os.access(existing, os.W_OK):
        raise ValueError(f"{existing}: expected a folder to write in, got a protected folder; name another folder")
    if existing == folder and not is_own and not is_empty(folder):
        raise ValueError(
            f"{folder}: expected a new or empty folder, or one that `{command}` wrote, got a folder with other files; "
            "name another folder"
        )
