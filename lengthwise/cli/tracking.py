"""The command track, and tracking during training."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from lengthwise.cli.options import folder
from lengthwise.cli.streams import say
from lengthwise.display import counted

if TYPE_CHECKING:
    from lengthwise.runs.progress import Listener


def track(
    runs: Annotated[tuple[Path, ...], Parameter(help="Folders of runs, finished or not.")],
    /,
    *,
    to: Annotated[str, Parameter(help="tensorboard, wandb, trackio or mlflow; each has its own optional dependency.")],
    project: Annotated[str, Parameter(help="The tracker's project or experiment.")] = "lengthwise",
    out: Annotated[
        Path,
        Parameter(converter=folder, help="Folder of local files; trackio and an MLflow server use their own folders."),
    ] = Path("tracked"),
) -> int:
    """Send runs to a tracker: loss and probes by step, settings, results, and accuracy by length.

    Each call makes new runs in the tracker. `train --track NAME` sends a run during training.
    """
    from lengthwise.cli.streams import Output
    from lengthwise.runs.tracking.replay import track as track_run

    console = Output()
    for run in runs:
        steps, location = track_run(run, to, project=project, folder=out)
        console.print_line(f"{run}: {counted(steps, 'step')} sent to {to}: {location}")
    return 0


@contextmanager
def tracked(tracker: str | None, root: Path) -> "Iterator[Listener | None]":
    """Yield a listener that sends runs below a folder to a tracker during training, or None without a tracker."""
    if tracker is None:
        yield None
        return
    from lengthwise.runs.tracking.replay import live_tracking

    with live_tracking(tracker, root) as tracking:
        yield tracking
    if tracking.location:
        say(f"tracked: {tracking.location}", 0)


COMMANDS = {"track": track}
