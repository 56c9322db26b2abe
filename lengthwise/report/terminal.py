"""What a terminal shows: progress, results, curves, and what there is to choose from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic.fields import FieldInfo
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table as Grid
from rich.text import Text

from lengthwise.evaluation.length_curve import LengthCurve
from lengthwise.experiments import EXPERIMENTS
from lengthwise.models.base import MODELS
from lengthwise.report.table import percent, run_rows, summary_table, unbalanced_table
from lengthwise.runs.execute import Listener, Progress
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pool import Outcome
from lengthwise.tasks.base import TASKS
from lengthwise.training.recipe import PRESETS


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


def print_results(console: Console, results: Sequence[RunResult], title: str) -> None:
    """A line for each run; below it what all lines share, and unbalanced lengths apart."""
    if not results:
        return
    rows = run_rows(results)
    for heading, table in ((title, summary_table(rows)), ("Lengths that one class has alone", unbalanced_table(rows))):
        if table is not None:
            print_grid(console, heading, table.header, table.lines)
            for name, text in table.shared:
                console.print(f"  {name}: {text}", highlight=False, soft_wrap=True)
    seconds = [result.training.cpu_seconds for result in results]
    console.print(f"  CPU seconds of training: {min(seconds):.1f} to {max(seconds):.1f}", highlight=False)
    weights = " / ".join(sorted({result.weights for result in results}))
    console.print(f"  accuracy of the final answer; {weights}", highlight=False, soft_wrap=True)


def print_failures(console: Console, outcomes: Iterable[Outcome]) -> bool:
    """A line for each run that failed, with its reason; whether there was any."""
    failed = [outcome for outcome in outcomes if outcome.result is None]
    for outcome in failed:
        console.print(f"failed: {outcome.spec.id}: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
    return bool(failed)


def print_curve(console: Console, curve: LengthCurve, *, trained_to: int) -> None:
    """Accuracy at up to 20 lengths of a curve, and its mean and minimum."""
    shown = curve.points[:: max(1, len(curve.points) // 20)]
    lines = []
    for point in shown:
        low, high = point.interval
        family = () if curve.protocol != "structured" else (point.family,)
        counts = (f"{point.num_correct}/{point.num_strings}", percent(point.accuracy))
        lines.append(
            (f"{point.length:,}", *family, *counts, f"{percent(low)} to {percent(high)}", percent(point.baseline))
        )
    header = ["length", "right", "accuracy", "95 % interval", "constant answer"]
    if curve.protocol == "structured":
        header.insert(1, "family")
    print_grid(
        console, f"Final answer, protocol {curve.protocol}, trained at lengths up to {trained_to}", header, lines
    )
    balanced = curve.balanced()
    summary = f"mean {percent(balanced.mean())}, lowest {percent(balanced.min())}"
    console.print(f"{summary} over {len(balanced.points)} balanced points", highlight=False)
    if len(balanced.points) < len(curve.points):
        apart = len(curve.points) - len(balanced.points)
        console.print(f"{apart} points at lengths that one class has alone are not counted", highlight=False)


def print_catalogue(console: Console) -> None:
    """Tasks, models, presets and experiments: names, what they are, settings with their defaults."""
    tasks = [(name, _first_line(task), _defaults(task.model_fields)) for name, task in TASKS.items()]
    models = [(name, _first_line(model), _defaults(model.Config.model_fields)) for name, model in MODELS.items()]
    print_grid(console, "Tasks", ("name", "what", "settings"), tasks)
    print_grid(console, "Models", ("name", "what", "settings"), models)
    print_grid(console, "Experiments", ("name", "what"), [(name, _first_line(e)) for name, e in EXPERIMENTS.items()])
    console.print(f"Presets: {', '.join(PRESETS)}", highlight=False)


def print_grid(console: Console, title: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """A table without frames, or a sentence for each line where the terminal is too narrow for its longest words."""
    rows = [list(line) for line in lines]
    columns = list(zip(header, *rows, strict=True))
    if console.width < sum(1 + _least_width(column) for column in columns):
        console.print(Text(title, style="italic"))
        for row in rows:
            told = (f"{name} {cell}" for name, cell in zip(header, row, strict=True) if cell)
            console.print(Text("- " + "; ".join(told)))
        return
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    grid.header_style = "underline"
    for name, column in zip(header, columns, strict=True):
        grid.add_column(name, overflow="fold", min_width=_least_width(column))
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def _least_width(column: Sequence[str]) -> int:
    """What a column needs: short cells whole, such as "50.00 %", and of longer ones the longest word."""
    return max(len(cell) if len(cell) <= len("50.00 %") else max(map(len, cell.split())) for cell in column)


def _first_line(member: object) -> str:
    return (member.__doc__ or "").strip().partition("\n")[0]


def _defaults(fields: Mapping[str, FieldInfo]) -> str:
    settings = []
    for name, field in fields.items():
        settings.append(name if field.is_required() else f"{name}={field.default}")
    return ", ".join(settings)
