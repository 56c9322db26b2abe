"""Processes that are killed at a write, or whose disk is full, and the same command after them."""

import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable

import lengthwise.files


def killed_at(write: int, call: Callable[[], object]) -> bool:
    """Run a call in a process that gets SIGKILL at its n-th write; return whether it got so far."""

    def prepare() -> None:
        writes = 0
        fsync = os.fsync

        def dying(file: int) -> None:
            nonlocal writes
            writes += 1
            if writes == write:
                os.kill(os.getpid(), signal.SIGKILL)
            fsync(file)

        lengthwise.files.os.fsync = dying

    return os.WIFSIGNALED(_status_of(prepare, call))


def with_full_disk(num_bytes: int, call: Callable[[], object]) -> bool:
    """Run a call in a process that can write no file of more bytes; return whether it failed."""

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))

    return _status_of(prepare, call) != 0


def _status_of(prepare: Callable[[], None], call: Callable[[], object]) -> int:
    with warnings.catch_warnings():  # Python 3.12 warns of threads, of which the child uses none
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        prepare()
        call()
    except SystemExit as ending:
        os._exit(int(ending.code or 0))
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)
