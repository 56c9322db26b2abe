"""Locks on files, which show that a process is at work; the system frees the locks of a process that ends."""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path

from lengthwise.files import HOST, naming, read_file

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, 524)
"""The error numbers (errno) of file systems without locks; 524 is ENOTSUPP in Linux, which Python does not name."""
WAY_OUT = "keep runs on a local disk, or on a file system with locks (NFS without the mount option nolock)"
"""The advice at the end of an error about locks."""


class RunHeld(ValueError):
    """An error that is raised if another process is working on a run."""


@contextmanager
def held(path: Path) -> Iterator[TextIOWrapper]:
    """Hold the lock of a file, and yield the file for appending. The file is created if it does not exist.

    Raises:
        BlockingIOError: another process holds the lock.
        OSError: the file system has no locks, or the file cannot be opened; the message names the cause.
    """
    with _open_lock(path) as file:
        try:
            # The system frees this lock when the process dies, even by SIGKILL. If the existence of a file were the
            # lock, the file would remain.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError as error:
            way_out = f"; {WAY_OUT}" if error.errno in WITHOUT_LOCKS else ""
            raise OSError(f"{path}: cannot be locked: {error.strerror or error}{way_out}") from None
        yield file


@contextmanager
def held_run(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock of a run, and yield a function that notes in the lock's file that this process begins its work.

    Raises:
        RunHeld: another process holds the lock.
        OSError: the file system has no locks, or the lock is not a file.
    """
    lock = folder / ".lock"
    with ExitStack() as stack:
        try:
            file = stack.enter_context(held(lock))
        except BlockingIOError:
            # The lock does not name its holder, which is probably the last process that noted its beginning.
            by = "".join(f" ({beginning})" for beginning in read_beginnings(folder)[-1:])
            raise RunHeld(
                f"{folder}: another process is working on this run{by}; wait until that process ends"
            ) from None

        def begin() -> None:
            with naming(lock):
                file.write(f"process {os.getpid()} on {HOST}\n")
                file.flush()

        yield begin


def read_beginnings(folder: Path) -> list[str]:
    """Return the processes that have begun to work on a run; the last of them may still be working."""
    try:
        return read_file(folder / ".lock").decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def _open_lock(path: Path) -> TextIOWrapper:
    # A link could lead to another user's file, so O_NOFOLLOW rejects links. Opening a pipe without O_NONBLOCK could
    # wait for a reader indefinitely.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        is_other = error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR)
        problem = "expected a file, got a link, a pipe or a folder; remove it" if is_other else error.strerror
        raise OSError(f"{path}: cannot be locked: {problem}") from None
    # A device opens without an error, so the type is checked on the open descriptor, which nobody can exchange.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path}: cannot be locked: expected a file, got a pipe or a device; remove {path}")
    return os.fdopen(descriptor, "a", encoding="utf-8")


def check_locks(root: Path) -> None:
    """Check that files below `root` can be locked, and that a locked file cannot be locked again.

    One process cannot check whether two machines see each other's locks.

    Raises:
        OSError: a file cannot be locked, or a locked file could be locked again.
    """
    probe = root / f".lock-{HOST}-{os.getpid()}"
    try:
        with held(probe):
            try:
                with held(probe):
                    # Some network file systems grant every lock. Two processes would then train one run at the same
                    # time.
                    raise OSError(
                        f"{root}: a held lock was granted a second time, so locks have no effect here; {WAY_OUT}"
                    )
            except BlockingIOError:
                pass
    finally:
        probe.unlink(missing_ok=True)
