"""One self-contained HTML page about finished runs, with pictures and a CSV file beside it."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple, Protocol, runtime_checkable
from urllib.parse import quote

import altair as alt
import vl_convert

from lengthwise.report.charts import LOSS_FLOOR, accuracy_chart, loss_chart, side_by_side
from lengthwise.report.protocol import protocol_sentences
from lengthwise.report.settings import as_toml
from lengthwise.report.table import RunRow, Table, as_csv, percent, run_rows, span, summary_table, unbalanced_table
from lengthwise.runs.folder import RunFolder, RunResult
from lengthwise.training.checkpoint import write_by_rename
from lengthwise.training.loop import StepRecord


@runtime_checkable
class MeasuredRun(Protocol):
    """What a report reads of a run (`lengthwise.runs.folder.Run` has it)."""

    @property
    def folder(self) -> RunFolder: ...
    @property
    def metrics(self) -> Sequence[StepRecord]: ...
    @property
    def result(self) -> RunResult | None: ...


class Panel(NamedTuple):
    """The runs of one configuration, by seed, and their charts."""

    title: str
    results: tuple[RunResult, ...]
    rows: tuple[RunRow, ...]
    accuracy: alt.LayerChart
    loss: alt.LayerChart


def write_report(runs: Sequence[MeasuredRun], page: Path) -> list[Path]:
    """Write the page and, beside it, its charts (PNG, SVG) and every measured point (CSV); return their paths.

    Errors: no run, a run given twice, a run that is not finished, or a page that is no .html file is a ValueError.
    """
    if page.suffix != ".html":
        raise ValueError(f"page: wanted a name that ends in .html, got {page.name!r}")
    results = _finished(runs)
    panels = _panels(results, {run.folder.path.name: run.metrics for run in runs})
    accuracy = side_by_side({panel.title: panel.accuracy for panel in panels})
    loss = side_by_side({panel.title: panel.loss for panel in panels})
    beside = {
        "-accuracy.png": _picture(accuracy, "png"),
        "-accuracy.svg": _picture(accuracy, "svg"),
        "-loss.png": _picture(loss, "png"),
        ".csv": as_csv(results).encode(),
    }
    contents = {page: _html(results, panels, page.stem).encode()}
    contents |= {page.with_name(page.stem + ending): content for ending, content in beside.items()}
    page.parent.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_by_rename(path, content)
    return list(contents)


def _finished(runs: Sequence[MeasuredRun]) -> list[RunResult]:
    if not runs:
        raise ValueError("runs: wanted at least one finished run, got none; `lengthwise train` makes one")
    results: dict[str, RunResult] = {}
    for run in runs:
        if run.result is None:
            spec, status = run.folder.read_spec(), run.folder.read_status()
            raise ValueError(
                f"{run.folder.path}: this run is not finished ({status.status}, step {status.step:,} of "
                f"{spec.recipe.steps:,}); `lengthwise train {spec.task.name} {spec.model_name} --seed {spec.seed}` with "
                "the same settings goes on with it"
            )
        if run.result.run_id in results:
            raise ValueError(f"{run.folder.path}: run {run.result.run_id} is given twice; leave one of the two out")
        results[run.result.run_id] = run.result
    return list(results.values())
