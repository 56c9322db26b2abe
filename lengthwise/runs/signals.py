"""Requests to stop by signals of the system, and processes that do not receive these signals."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

StopRequested = Callable[[], bool]

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals of Ctrl-C, of a scheduler that takes back its machine, and of a lost connection."""


class Interrupted(RuntimeError):
    """An exception: a run was stopped on request, and its checkpoint is saved.

    `signal_number` is the signal that made the request, or None if no signal did.
    """

    signal_number: int | None = None


@contextmanager
def stop_on_interrupt(also: Callable[[], None] = lambda: None) -> Iterator[StopRequested]:
    """Turn the first stop signal into a request to stop between steps.

    A second signal interrupts at once, except in processes of torchrun. `also` is called at the first signal. A signal
    that is ignored from the start, as under `nohup`, stays ignored. If the block raises `Interrupted`, the exception
    gets the number of the first signal.
    """
    # A handler may interrupt any instruction, so it only sets a flag; training saves between steps.
    requested = threading.Event()
    first: int | None = None

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        # torchrun forwards signals that its processes have received from the terminal already, so a second signal is
        # ignored.
        if requested.is_set() and "WORLD_SIZE" not in os.environ:
            raise KeyboardInterrupt
        if not requested.is_set():
            first = number
            requested.set()
            also()

    # nohup ignores the hang-up before the program starts; handling the hang-up again would undo this choice.
    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield requested.is_set
    except Interrupted as error:
        error.signal_number = first
        raise
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Keep the processes that start in this block from ever receiving the signals that stop a run.

    A terminal sends these signals to the whole process group. Only this process handles the signals. This process
    decides whether the runs stop, and tells its workers. Signals that arrive in the block are handled afterwards.
    """
    # Child processes inherit the mask, so that Ctrl-C does not kill a worker before it can save.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
