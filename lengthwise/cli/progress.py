"""Runs that are watched: their progress is shown, and they stop, with a checkpoint, on request."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lengthwise.cli.streams import Output
from lengthwise.experiments.base import Experiment
from lengthwise.report.pages.terminal import progress_display
from lengthwise.runs.execute import Listener, Progress, StopRequested, stop_on_interrupt
from lengthwise.runs.pool import Outcome, execute_all
from lengthwise.runs.spec import RunSpec


@contextmanager
def watched(
    console: Output, specs: Iterable[RunSpec], also: Listener | None = None
) -> Iterator[tuple[Listener, StopRequested]]:
    """Show the progress of runs, and say when to stop: after Ctrl-C, or when nobody reads the output any more.

    `also` is told of the progress, too.
    """
    hung_up = threading.Event()
    with progress_display(console, specs) as listener, stop_on_interrupt() as interrupted:

        def show(progress: Progress) -> None:
            try:
                listener(progress)
            except BrokenPipeError:
                hung_up.set()
            if also is not None:
                also(progress)

        yield show, lambda: interrupted() or hung_up.is_set()


def run_experiment(experiment: Experiment, root: Path, workers: int, console: Output) -> list[Outcome]:
    """Run all runs of an experiment; returns what became of each."""
    with watched(console, experiment.specs) as (listener, stop_requested):
        return execute_all(
            experiment.specs, root, experiment.plans, listener, num_workers=workers, stop_requested=stop_requested
        )
