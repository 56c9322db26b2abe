"""Where results are to be written, looked at before the work."""

import os
from pathlib import Path


def check_writable(file: Path) -> None:
    """Raise a ValueError where a file cannot be written, before the work whose result it is to hold."""
    if file.is_dir():
        raise ValueError(f"{file}: expected a file to write, got a folder; name a file in it")
    if file.exists() and not file.is_file():
        raise ValueError(f"{file}: expected a file to write, got a pipe or a device; name a file")
    if (taken := next((path for path in file.parents if path.exists()), file.parent)).is_file():
        raise ValueError(f"{file}: expected a file in a folder, but {taken} is a file; name a folder")
    file.parent.mkdir(parents=True, exist_ok=True)


def check_folder(folder: Path, command: str, is_own: bool) -> None:
    """Raise a ValueError where a command cannot write into a folder, or would mix with what others wrote there."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise ValueError(f"{existing}: expected a folder, got a file; name another")
    if not os.access(existing, os.W_OK):
        raise ValueError(f"{existing}: expected a folder to write in, got one that is protected; name another")
    if existing == folder and any(path.name[0] != "." for path in folder.iterdir()) and not is_own:
        raise ValueError(
            f"{folder}: expected a new or empty folder, or one that `{command}` wrote, got one with other files; name "
            "another"
        )
