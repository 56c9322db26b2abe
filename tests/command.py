"""Commands run as their users run them: in this process, or in processes forked from one that has imported torch."""

import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from lengthwise.cli.app import main
from lengthwise.runs.pools.local import PRELOADED
from lengthwise.runs.signals import STOP_SIGNALS


def exit_code(*arguments: str) -> int:
    """Exit code of `lengthwise ARGUMENTS` in this process; any exception but SystemExit is raised."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code of `lengthwise ARGUMENTS`, with what it printed to standard output and to standard error."""
    code = exit_code(*arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


class Command:
    """`lengthwise ARGUMENTS` in a folder, in a process group of its own, as a terminal or a scheduler would start it.

    With `max_file_size`, files cannot grow beyond that many bytes: writing fails as on a full disk. `environment` has
    variables that it gets besides.
    """

    def __init__(
        self,
        arguments: list[str],
        folder: Path,
        max_file_size: int | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)  # there is one server
        with tempfile.NamedTemporaryFile(delete=False) as printed:
            self._printed = Path(printed.name)
        self._process = context.Process(
            target=_run, args=(arguments, folder, self._printed, max_file_size, dict(environment))
        )
        self._process.start()

    @property
    def is_running(self) -> bool:
        return self._process.is_alive()

    def send(self, number: signal.Signals, *, group: bool = True) -> None:
        """Send a signal to the process, or to all of its group."""
        pid = self._process.pid
        assert pid is not None
        (os.killpg if group else os.kill)(pid, number)

    def wait(self) -> tuple[int, str]:
        """Exit code, minus the signal for one that was killed, and all that was printed."""
        self._process.join(timeout=300)
        code = self._process.exitcode
        assert code is not None, "the command does not end"
        output = self._printed.read_text(encoding="utf-8")
        self._printed.unlink()
        return code, output


def _run(
    arguments: list[str], folder: Path, printed: Path, max_file_size: int | None, environment: Mapping[str, str]
) -> None:
    os.setsid()
    os.environ.update(environment)
    os.chdir(folder)
    with printed.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the server may have been started while signals were blocked
    handle_signals()
    if max_file_size is not None:
        sys.dont_write_bytecode = True  # else what is imported from now on has damaged bytecode for all that come after
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_size, max_file_size))
    main(arguments)


def handle_signals() -> dict[signal.Signals, Any]:
    """Handle signals as a process that a terminal starts does, and return how they were handled before.

    In what a shell starts in the background SIGINT is ignored, after `nohup` SIGHUP, and so it is in all that starts
    from there.
    """
    default = dict.fromkeys(STOP_SIGNALS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    return {number: signal.signal(number, handler) for number, handler in default.items()}


def environment_of(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a process about the others."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1", **{name: str(number) for name, number in numbers.items()}}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
