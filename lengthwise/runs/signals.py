"""Requests to stop, as the system makes them."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

StopRequested = Callable[[], bool]

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a scheduler that takes its machine back, a connection that is lost."""


@contextmanager
def stop_on_interrupt() -> Iterator[StopRequested]:
    """Turn the first of `STOP_SIGNALS` into a request that is honored between steps; a second one interrupts at once.

    A signal that the process was started to ignore, as by `nohup`, stays ignored.
    """
    requested = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if requested.is_set() and "WORLD_SIZE" not in os.environ:  # torchrun repeats what all have got already
            raise KeyboardInterrupt
        requested.set()

    handled = [number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, on_signal) for number in handled}
    try:
        yield requested.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
