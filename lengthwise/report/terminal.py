"""Progress in a terminal, or as plain lines where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from lengthwise.runs.execute import Listener, Progress


@contextmanager
def progress_display(console: Console) -> Iterator[Listener]:
    """A listener that shows one line for each run under way: a bar in a terminal, else a line at every tenth."""
    if not console.is_terminal:
        yield _PlainLines(console)
        return
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    ]
    with Bars(*columns, console=console, transient=False) as bars:
        yield _Bars(bars)


class _Bars:
    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._lines: dict[str, TaskID] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.run_id not in self._lines:
            name = progress.run_id.rsplit("-", 1)[0]
            self._lines[progress.run_id] = self._bars.add_task(name, total=progress.total, note="")
        note = f"{progress.phase} {progress.note}" if progress.phase != "training" else progress.note
        self._bars.update(self._lines[progress.run_id], completed=progress.done, note=note.strip())


class _PlainLines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._tenths: dict[str, int] = {}

    def __call__(self, progress: Progress) -> None:
        tenth = 10 * progress.done // progress.total
        if progress.phase == "training" and self._tenths.get(progress.run_id) == tenth:
            return
        self._tenths[progress.run_id] = tenth
        words = f"{progress.run_id}: {progress.phase} {progress.done}/{progress.total} {progress.note}"
        self._console.print(words.strip(), highlight=False, soft_wrap=True)
