"""Runs whose progress is shown, and which save a checkpoint if they are stopped."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lengthwise.cli.streams import Output
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.report.pages.terminal import progress_display
from lengthwise.runs.pools.base import POOLS, PoolOptions
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.signals import StopRequested, stop_on_interrupt
from lengthwise.runs.spec import RunSpec

PAGE_EVERY = 900.0
"""The smallest number of seconds between two updates of a page while runs execute."""


def page_updates(write: Callable[[], object]) -> Listener:
    """Return a listener that calls `write` when a run ends, at most once in `PAGE_EVERY` seconds."""
    latest = time.monotonic()

    def listener(progress: Progress) -> None:
        nonlocal latest
        if progress.phase == "done" and time.monotonic() - latest >= PAGE_EVERY:
            write()
            latest = time.monotonic()

    return listener


@contextmanager
def watched(specs: Iterable[RunSpec], also: Listener | None = None) -> Iterator[tuple[Listener, StopRequested]]:
    """Show the progress of runs on standard error, and yield a listener and a function that returns whether to stop.

    Runs stop after Ctrl-C, or if nobody reads the progress any more. `also` is another listener.
    """
    hung_up = threading.Event()
    screen = Output(is_error=True)  # standard output is for results
    with progress_display(screen, specs) as listener, stop_on_interrupt(_confirm_stop) as interrupted:

        def show(progress: Progress) -> None:
            try:
                listener(progress)
            except BrokenPipeError:
                # The program that read standard error has ended, as after `2>&1 | head`. So the run stops with a
                # checkpoint.
                hung_up.set()
            except OSError:
                pass  # Standard error is closed; the run continues without a display.
            if also is not None:
                also(progress)

        yield show, lambda: interrupted() or hung_up.is_set()


def _confirm_stop() -> None:
    """Confirm on a terminal that the request to stop was received, because a step may take a long time."""
    with suppress(OSError):  # the request may come from a terminal that is closing
        if sys.stderr is not None and sys.stderr.isatty():
            # A signal handler may interrupt a print, so nothing buffered is used here.
            os.write(sys.stderr.fileno(), b"\nlengthwise: stops after this step; Ctrl-C again stops at once\n")


def run_all(
    specs: Sequence[RunSpec],
    plans: Sequence[EvaluationPlan],
    root: Path,
    options: PoolOptions,
    pool: str = "local",
    also: Listener | None = None,
    is_enough: StopRequested = lambda: False,
) -> list[Outcome]:
    """Execute all runs on a pool, and return their outcomes.

    `also` is a further listener. If `is_enough` returns True, the runs stop as after Ctrl-C.
    """
    opener = POOLS[pool]
    if not specs:
        return []
    with watched(specs, also) as (listener, stop_requested), opener(options) as (executor, held):
        return execute_all(
            specs,
            root,
            plans,
            listener,
            pool=executor,
            held=held,
            stop_requested=lambda: stop_requested() or is_enough(),
        )
