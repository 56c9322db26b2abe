"""Output on a terminal: progress, results and curves."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from lengthwise.display import counted, printable
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.structured import STRUCTURED
from lengthwise.printing import print_grid, print_line
from lengthwise.report.tables.errors import error_run_table
from lengthwise.report.tables.levels import level_sentences
from lengthwise.report.tables.numbers import percent
from lengthwise.report.tables.perplexities import perplexity_run_table
from lengthwise.report.tables.runs import point_table, run_rows, summary_table, unbalanced_table
from lengthwise.report.tables.shallow_baselines import shallow_baseline_sentences
from lengthwise.report.tables.table import Table
from lengthwise.report.tables.training import late_change
from lengthwise.runs.pools.outcome import NOT_RUN, Outcome
from lengthwise.runs.progress import Listener, Progress
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import RunSpec


@contextmanager
def progress_display(console: Console, specs: Iterable[RunSpec] = ()) -> Iterator[Listener]:
    """Yield a listener that shows the progress of runs.

    On a terminal, runs have bars; elsewhere, each run prints a line after every tenth of its steps. Before the runs, a
    sentence announces noise or losses that training adds after some step, because the loss may then jump. If there are
    several runs, the display also counts finished runs. With more than `MAX_BARS` runs, the bars of finished runs
    disappear.
    """
    specs = list(specs)
    changes = dict.fromkeys(late_change(spec.to_json()["train"]) for spec in specs)
    for change in filter(None, changes):
        print_line(console, change.sentence)
    if not console.is_terminal:
        yield _PlainLines(console, len(specs))
        return
    columns = [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    ]
    with Bars(*columns, console=console, transient=False) as bars:
        yield _Bars(bars, len(specs))


@contextmanager
def measuring_display(console: Console) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the finished fraction and shows it as a bar, which disappears at the end."""
    columns = (TextColumn("measuring"), BarColumn(bar_width=20), TaskProgressColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        line = bars.add_task("", total=1.0)
        yield lambda fraction: bars.update(line, completed=fraction)


@contextmanager
def waiting_display(console: Console, work: str) -> Iterator[None]:
    """Show the name of some work and the seconds since its start in a terminal; the line disappears at the end."""
    columns = (TextColumn(work), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bars.add_task("", total=None)
        yield


MAX_BARS = 20
"""The number of runs above which the bars of finished runs disappear, because a terminal has too few lines."""


class _Bars:
    def __init__(self, bars: Bars, num_runs: int) -> None:
        self._bars = bars
        self._lines: dict[str, TaskID] = {}
        self._done: set[str] = set()
        self._num_runs = num_runs
        self._runs = bars.add_task("runs", total=num_runs, note="") if num_runs > 1 else None

    def __call__(self, progress: Progress) -> None:
        if progress.is_decision:
            print_line(self._bars.console, f"{progress.run_id}: {progress.note}")
            return
        if progress.run_id not in self._lines:
            name = printable(progress.run_id.rsplit("-", 1)[0])
            self._lines[progress.run_id] = self._bars.add_task(name, total=progress.total, note="")
        note = f"{progress.phase} {progress.note}" if progress.phase != "training" else progress.note
        if progress.fraction:
            note += f" {progress.fraction:.0%}"
        line = self._lines[progress.run_id]
        self._bars.update(line, completed=progress.done, total=progress.total, note=printable(note.strip()))
        if progress.phase == "done" and self._runs is not None:
            self._done.add(progress.run_id)
            self._bars.update(self._runs, completed=len(self._done))
            # A terminal has too few lines for all bars, so the bars of finished runs disappear.
            if self._num_runs > MAX_BARS:
                self._bars.update(line, visible=False)


class _PlainLines:
    def __init__(self, console: Console, num_runs: int) -> None:
        self._console, self._num_runs = console, num_runs
        self._tenths: dict[str, int] = {}
        self._done: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        if progress.is_decision:
            print_line(self._console, f"{progress.run_id}: {progress.note}")
            return
        tenth = 10 * progress.done // max(1, progress.total)
        # A log file should get ten lines for each run, not thousands.
        if progress.fraction or (progress.phase == "training" and self._tenths.get(progress.run_id) == tenth):
            return
        self._tenths[progress.run_id] = tenth
        words = f"{progress.run_id}: {progress.phase} {progress.done}/{progress.total} {progress.note}".strip()
        if progress.phase == "done" and self._num_runs > 1:
            self._done.add(progress.run_id)
            words += f" ({len(self._done):,} of {self._num_runs:,} runs)"
        print_line(self._console, words)


def print_results(console: Console, results: Sequence[RunResult], title: str) -> None:
    """Print tables with a line for each run and the shared columns below, then sentences about the measurement."""
    errors = error_run_table(results)
    if errors.lines:
        print_table(console, f"{title}: squared error / dimension of the inputs", errors)
    perplexities = perplexity_run_table(results)
    if perplexities.lines:
        print_table(console, f"{title}: perplexity of last tokens by length of the chunk", perplexities)
    results = [result for result in results if result.errors is None and result.perplexity is None]
    if not results:
        return
    rows = run_rows(results)
    print_table(console, title, summary_table(rows))
    if (unbalanced := unbalanced_table(rows)) is not None:
        print_table(console, "Unbalanced lengths, at which some class cannot occur", unbalanced)
    measured = [result for result in results if result.long.points]
    for plan in sorted({", ".join(f"{count} at {n:,}" for n, count in result.plan.long) for result in measured}):
        print_line(console, f"  strings at single lengths: {plan}")
    for sentence in shallow_baseline_sentences(results):
        print_line(console, f"  best shallow baseline: {sentence}")
    seconds = [result.training.cpu_seconds for result in results]
    span = f"{min(seconds):.1f}" + f" to {max(seconds):.1f}" * (len(seconds) > 1)
    print_line(console, f"  CPU seconds of training: {span}")
    for level, sentence in level_sentences(row.level for row in rows):
        print_line(console, f"  {level}: {sentence}")
    weights = " / ".join(sorted({result.weights for result in results}))
    print_line(console, f"  accuracy of the final answer; {weights}")


def print_failures(console: Console, outcomes: Iterable[Outcome]) -> bool:
    """Print a line with the reason for each run without a result; return whether there is such a run.

    If more than `MAX_ROWS` runs have not been trained yet, a single line states the number of these runs.
    """
    lines = failed = [outcome for outcome in outcomes if outcome.result is None]
    lacking = [outcome for outcome in failed if outcome.reason == NOT_RUN]
    if len(lacking) > MAX_ROWS:
        print_line(console, f"{len(lacking):,} runs: {NOT_RUN}; the first of them is {lacking[0].spec.id}")
        lines = [outcome for outcome in failed if outcome.reason != NOT_RUN]
    for outcome in lines:
        begin = "" if outcome.reason == NOT_RUN else "failed: "
        print_line(console, f"{begin}{outcome.spec.id}: {outcome.reason}")
    return bool(failed)


MAX_ROWS = 24
"""The approximate number of points that are shown if a curve has more points.

It is also the largest number of untrained runs that are named.
"""

BAR_LENGTH = 20
"""The length of a bar for 100 %, in characters."""


def print_curve(console: Console, curve: LengthCurve, *, trained_to: int | None) -> None:
    """Print the accuracy at the points of a curve, with bars if they fit, and the curve's mean and minimum.

    If a curve has more than `MAX_ROWS` points, a subsample is shown with the first, the last and the lowest point.
    """
    if not curve.points:
        print_line(
            console,
            f"protocol {curve.protocol}: nothing was measured, because the task defines no answers for these strings",
        )
        return
    subsample = _subsample(curve.points)
    plain = point_table(subsample)
    # Only 100 % has a whole bar, just as only exactly 1 is shown as 100 %.
    bars = ["#" * math.floor(BAR_LENGTH * point.accuracy) for point in subsample]
    lines = tuple((*line, bar) for line, bar in zip(plain.lines, bars, strict=True))
    table = plain._replace(header=(*plain.header, "plot"), lines=lines)
    if sum(max(map(len, column)) + 1 for column in zip(table.header, *table.lines, strict=True)) > console.width:
        table = plain
    trained = "" if trained_to is None else f", trained up to length {trained_to}"
    print_table(console, f"Final answers, protocol {curve.protocol}{trained}", table)
    if len(subsample) < len(curve.points):
        print_line(console, f"{len(subsample)} of {len(curve.points)} points are shown")
    balanced = curve.balanced()
    left_out = len(curve.points) - len(balanced.points)
    summary = f"mean {percent(balanced.mean())}, lowest {percent(balanced.min())}"
    scope = f"over {counted(len(balanced.points), 'point')}"
    scope += " at which every class can occur" * (curve.protocol != "structured")
    others = f" ({counted(left_out, 'other point')} left out)" * bool(left_out)
    print_line(console, f"{summary}, {scope}{others}")


def _subsample(points: Sequence[LengthPoint]) -> list[LengthPoint]:
    """Return about `MAX_ROWS` points, including the last and the lowest one."""
    stride = -(-len(points) // MAX_ROWS)
    lowest = min(points, key=lambda point: point.accuracy)
    # Points of different families alternate. A stride that shares a factor with the number of families would skip some
    # families.
    while math.gcd(stride, len(STRUCTURED)) > 1:
        stride += 1
    return [p for index, p in enumerate(points) if index % stride == 0 or p is lowest or index == len(points) - 1]


def print_table(console: Console, title: str, table: Table) -> None:
    """Print a table with `print_grid`, and below it the name and value of each column that is equal in all rows."""
    print_grid(console, title, table.header, table.lines)
    for name, text in table.shared:
        print_line(console, f"  {name}: {text}")
