"""Runs that are watched: their progress is shown, and they stop, with a checkpoint, on request."""

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
from lengthwise.runs.execute import Listener, Progress
from lengthwise.runs.pools.base import POOLS, PoolOptions
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.pools.sweep import execute_all
from lengthwise.runs.signals import StopRequested, stop_on_interrupt
from lengthwise.runs.spec import RunSpec

PAGE_EVERY = 900.0
"""Seconds from one page that is written while runs run to the next."""


def now_and_then(write: Callable[[], object]) -> Listener:
    """A listener that writes when a run has ended, unless it began or wrote less than `PAGE_EVERY` before."""
    latest = time.monotonic()

    def listener(progress: Progress) -> None:
        nonlocal latest
        if progress.phase == "done" and time.monotonic() - latest >= PAGE_EVERY:
            write()
            latest = time.monotonic()

    return listener


@contextmanager
def watched(
    console: Output, specs: Iterable[RunSpec], also: Listener | None = None
) -> Iterator[tuple[Listener, StopRequested]]:
    """Show the progress of runs, and say when to stop: after Ctrl-C, or when nobody reads the output any more.

    `also` is told of the progress, too.
    """
    hung_up = threading.Event()
    with progress_display(console, specs) as listener, stop_on_interrupt(_say_so) as interrupted:

        def show(progress: Progress) -> None:
            try:
                listener(progress)
            except BrokenPipeError:
                hung_up.set()
            if also is not None:
                also(progress)

        yield show, lambda: interrupted() or hung_up.is_set()


def _say_so() -> None:
    """Steps may take long: tell who watches a terminal that the request has been heard."""
    with suppress(OSError):  # the terminal may be what is gone
        if sys.stderr is not None and sys.stderr.isatty():
            os.write(sys.stderr.fileno(), b"\nlengthwise: stops after this step; Ctrl-C again stops at once\n")


def run_all(
    specs: Sequence[RunSpec],
    plans: Sequence[EvaluationPlan],
    root: Path,
    console: Output,
    options: PoolOptions,
    pool: str = "local",
    also: Listener | None = None,
) -> list[Outcome]:
    """Run all runs on a pool; returns what became of each. `also` is told of the progress, too."""
    opener = POOLS[pool]
    if not specs:
        return []
    with watched(console, specs, also) as (listener, stop_requested), opener(options) as (executor, held):
        return execute_all(specs, root, plans, listener, pool=executor, held=held, stop_requested=stop_requested)
