"""The provenance of results: versions, the commit, the device, and the user's own files."""

import os
import platform
import subprocess
from collections.abc import Collection, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

import torch

from lengthwise.devices import describe_device
from lengthwise.registry import file_of, loaded_extensions
from lengthwise.version import __version__

EXTENSION = "extension"
"""The prefix of the keys of a user's files in `versions`."""


def versions(device: str | None = None) -> dict[str, str]:
    """Return facts outside the specification that may change a result: versions, commit, device, threads, user's files.

    `device` is the name of the device (default: the CPU).
    """
    return {
        "lengthwise": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": _commit() or "unknown (not run from a checkout)",
        "device": device or describe_device(torch.device("cpu")),
        "torch threads": str(torch.get_num_threads()),
        **_extensions(),
    }


def changed_extensions(begun: Mapping[str, str]) -> list[str]:
    """Return the names of the user's own files that have changed since the versions `begun` were recorded."""
    changed = []
    for path in _extension_files():
        known = {digest for key, digest in begun.items() if _is_of(key, path.name)}
        if known and _digest(path) not in known:
            changed.append(path.name)
    return changed


def file_digests(begun: Mapping[str, str]) -> set[str]:
    """Return the hashes of the user's own files that are recorded in `begun`, a result of `versions`."""
    return {digest for key, digest in begun.items() if key.startswith(EXTENSION)}


def files_of_others(known: Collection[str], *members: type) -> list[str]:
    """Return the names of the user's files that define one of these classes and whose hash is not in `known`."""
    # The package's version covers its own members, so only files of users are compared.
    own = {Path(path) for path in map(file_of, members) if path} & {*loaded_extensions()}
    return sorted(path.name for path in own if path.is_file() and _digest(path) not in known)


def _digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=8).hexdigest()


def _extension_files() -> list[Path]:
    return [path for path in loaded_extensions() if path.is_file()]


def _is_of(key: str, name: str) -> bool:
    """Return whether a key belongs to a file of this name; several files of one name are numbered."""
    return key == f"{EXTENSION} {name}" or key.startswith(f"{EXTENSION} {name} (")


def _extensions() -> dict[str, str]:
    """Return a hash of each file of the user that registers members."""
    digests: dict[str, str] = {}
    for path in _extension_files():
        count = sum(_is_of(key, path.name) for key in digests)
        digests[f"{EXTENSION} {path.name}" + (f" ({count + 1})" if count else "")] = _digest(path)
    return digests


@cache
def _commit() -> str | None:
    """Return the commit of the checkout that this package runs from, with a mark if files have changed since.

    A process asks git only once, because the process runs the code that it has imported, even if files change later.
    """
    top = Path(__file__).parent.parent.parent
    if not (top / ".git").exists():
        return None
    # Optional locks are off, because a process that is killed here would leave .git/index.lock in the user's checkout.
    command = ["git", "-C", str(top)]
    settings = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        outputs = [
            subprocess.run([*command, *words], capture_output=True, text=True, check=True, env=settings).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "lengthwise"])
        ]
    # git is missing, or fails in this checkout.
    except (OSError, subprocess.CalledProcessError):
        return None
    return outputs[0] + (" with changes" if outputs[1] else "")
