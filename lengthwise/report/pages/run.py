"""A self-contained HTML page about finished runs, with pictures and a CSV file next to it."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import altair as alt

from lengthwise.certification.certificate import Certificate
from lengthwise.certification.verify import check
from lengthwise.display import counted
from lengthwise.files import check_suffix
from lengthwise.report.charts.curves import LOSS_FLOOR, accuracy_chart, loss_chart, side_by_side
from lengthwise.report.pages.certificate import certificate_section
from lengthwise.report.pages.html import html_definitions, html_figures, html_note, html_page, html_table
from lengthwise.report.pages.neighbors import links, write_with_neighbors
from lengthwise.report.tables.numbers import percent, span
from lengthwise.report.tables.protocol import protocol_sentences
from lengthwise.report.tables.runs import RunRow, as_csv, run_rows, summary_table, unbalanced_table
from lengthwise.report.tables.settings import as_toml, preset_below, versions_of
from lengthwise.report.tables.shallow_baselines import shallow_baseline_sentences
from lengthwise.report.tables.table import table_of
from lengthwise.report.tables.training import Change, late_change
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.result import RunResult
from lengthwise.training.loop import StepRecord


class MeasuredRun(NamedTuple):
    """The data of a run in a report; `result` is None if the run is not finished."""

    folder: RunFolder
    metrics: Sequence[StepRecord]
    result: RunResult | None


def read_measured(path: Path) -> MeasuredRun:
    """Read a run for a report, without its weights; a missing or damaged folder raises a ValueError.

    A certificate in the folder replaces the certificate in the result, because the folder's certificate may be newer.
    If the folder's certificate is false, or about another run, a ValueError is raised.
    """
    folder = RunFolder(path)
    folder.read_spec()
    result = folder.read_result()
    if result is not None and folder.certificate.exists():
        result = result.model_copy(update={"certificate": _own_certificate(folder.certificate, result)})
    return MeasuredRun(folder, folder.read_metrics(), result)


def _own_certificate(path: Path, result: RunResult) -> Certificate:
    """Read the certificate in a run's folder, and verify it as far as possible without the weights."""
    certificate = Certificate.read(path)
    about = (certificate.versions.get("run"), certificate.task, certificate.model)
    # The certificate is about the net of the last attempt, which may have another size than the specification.
    attempts = result.training.attempts
    model = result.spec["model"] | (attempts[-1].model if attempts else {})
    if about != (result.run_id, result.spec["task"], model):
        raise ValueError(
            f"{path}: expected a certificate of run {result.run_id}, got a certificate of another run, task or model; "
            "certify this run again with `lengthwise certify`"
        )
    check(certificate)
    return certificate


class _Panel(NamedTuple):
    """The runs of one configuration, in order of their seeds."""

    title: str
    results: tuple[RunResult, ...]
    rows: tuple[RunRow, ...]
    metrics: Mapping[int, Sequence[StepRecord]]

    def accuracy(self, *, hover: bool) -> alt.LayerChart:
        trained_to = int(self.results[0].spec["train"]["max_length"])
        return accuracy_chart(self.rows, trained_to=trained_to, hover=hover)

    @property
    def change(self) -> Change | None:
        return late_change(self.results[0].spec["train"])

    def loss(self) -> alt.LayerChart:
        return loss_chart(self.metrics, self.change)


def write_report(runs: Sequence[MeasuredRun], page: Path) -> list[Path]:
    """Write a page about runs and, next to it, its charts (PNG, SVG) and all accuracies (CSV); return the paths.

    Raises:
        ValueError: no run is given, a run is given twice, is not finished or has answers that are not classes, or the
            page's name does not end in .html.
    """
    check_suffix("page", page, [".html"])
    results = _finished(runs)
    panels = _panels(results, [run.metrics for run in runs])
    # A chart's Vega-Lite specification takes long to make and to check, so the chart's two files share it.
    accuracy = side_by_side({panel.title: panel.accuracy(hover=False) for panel in panels}).to_dict()
    loss = side_by_side({panel.title: panel.loss() for panel in panels}).to_dict()
    charts = {"-accuracy.png": accuracy, "-accuracy.svg": accuracy, "-loss.png": loss}
    return write_with_neighbors(page, charts, as_csv(results), lambda neighbors: _html(panels, neighbors))


def _finished(runs: Sequence[MeasuredRun]) -> list[RunResult]:
    if not runs:
        raise ValueError("runs: expected at least one finished run, got none; `lengthwise train` makes one")
    results: dict[str, RunResult] = {}
    for run in runs:
        if run.result is None:
            spec, status = run.folder.read_spec(), run.folder.read_status()
            raise ValueError(
                f"{run.folder.path}: this run is not finished ({status.status}, step {status.step:,} of "
                f"{spec.recipe.steps:,}); `lengthwise resume {run.folder.path}` continues it"
            )
        if run.result.errors is not None:
            raise ValueError(
                f"{run.folder.path}: expected a run whose answers are classes, got a run whose answers are "
                "numbers; this page has no chart of squared errors, but `lengthwise resume` prints them"
            )
        if run.result.perplexity is not None:
            raise ValueError(
                f"{run.folder.path}: expected a run whose answers are classes, got a run of a language model; this "
                "page has no chart of perplexities, but `lengthwise resume` prints them"
            )
        if run.result.run_id in results:
            raise ValueError(f"{run.folder.path}: run {run.result.run_id} is given twice; leave out one of the two")
        results[run.result.run_id] = run.result
    return list(results.values())


def _title(row: RunRow) -> str:
    """Return the task and the model of a run, and the settings in which it differs from other runs."""
    return f"{row.task}, {row.model}" + (f" ({row.variation})" if row.variation else "")


def _panels(results: Sequence[RunResult], metrics: Sequence[Sequence[StepRecord]]) -> list[_Panel]:
    members = list(zip(run_rows(results), results, metrics, strict=True))
    panels = []
    for title in dict.fromkeys(_title(row) for row, _, _ in members):
        group = sorted((each for each in members if _title(each[0]) == title), key=lambda each: each[0].seed)
        rows, own, records = zip(*group, strict=True)
        panels.append(_Panel(title, own, rows, {row.seed: each for row, each in zip(rows, records, strict=True)}))
    return panels


def _html(panels: Sequence[_Panel], neighbors: Sequence[str]) -> str:
    results = [result for panel in panels for result in panel.results]
    rows = [row for panel in panels for row in panel.rows]
    charts = {f"accuracy-{index}": panel.accuracy(hover=True) for index, panel in enumerate(panels)}
    losses = {f"loss-{index}": panel.loss() for index, panel in enumerate(panels)}
    certified, maps = certificate_section(
        {
            f"{_title(row)}, seed {row.seed}": result.certificate
            for row, result in zip(rows, results, strict=True)
            if result.certificate is not None
        }
    )
    files = links(neighbors, "-accuracy.png", "-accuracy.svg", ".csv")
    sections = {
        "Results": _results(rows),
        **({"Certificates": certified} if certified else {}),
        "Accuracy against length": html_note(_ACCURACY_NOTE + files) + _figures(panels, "accuracy"),
        "Training loss": html_note(_loss_note(panels) + links(neighbors, "-loss.png")) + _figures(panels, "loss"),
        "How it was measured": html_definitions(
            protocol_sentences(results, rows)
            + [("Best shallow baseline", sentence) for sentence in shallow_baseline_sentences(results)]
        ),
        "Configuration": "".join(_configuration(panel) for panel in panels),
        "Runs and versions": _runs(results),
    }
    title, summary = "Accuracy beyond the training length", _summary(results, rows)
    return html_page(title, summary, sections, {**charts, **losses, **maps})


_ACCURACY_NOTE = (
    "The axis always shows 0 to 100 %; the table also shows small differences. Lines show the dense range. Diamonds "
    "show the single lengths with Wilson's 95 % interval, with seeds side by side. Only lengths at which every class "
    "can occur are shown. "
)
_LOSS_NOTE = 'The axis is logarithmic. If its title contains "median", single steps with a high loss are hidden.'
_FLOOR_NOTE = f"Losses below {LOSS_FLOOR:.0e} are drawn at this value. "
_UNBALANCED_NOTE = (
    "At these lengths some class cannot occur, so a constant answer may be right. The numbers above do not include "
    "random strings of such lengths."
)


def _summary(results: Sequence[RunResult], rows: Sequence[RunRow]) -> str:
    trained = [result.spec["train"][key] for result in results for key in ("min_length", "max_length")]
    measured = [point.length for result in results for curve in result.curves for point in curve.points]
    tasks = dict.fromkeys(row.task for row in rows)
    models = dict.fromkeys(row.model for row in rows)
    lowest = [row.dense.min() for row in rows if row.dense.points]
    text = (
        f"{counted(len(rows), 'run')} of {', '.join(models)} on {', '.join(tasks)}, trained at lengths {span(trained)} "
        f"and measured at lengths {span(measured)}, with {' or '.join(dict.fromkeys(r.weights for r in results))}."
    )
    if lowest:
        text += f" Lowest accuracy of any run at any length of the dense range: {percent(min(lowest))}."
    return text


def _loss_note(panels: Sequence[_Panel]) -> str:
    changes = dict.fromkeys(change.sentence for panel in panels if (change := panel.change) is not None)
    return " ".join([_LOSS_NOTE + _FLOOR_NOTE * _reach_floor(panels), *map(escape, changes)]) + " "


def _reach_floor(panels: Sequence[_Panel]) -> bool:
    # The note appears only if it explains something in the charts.
    return any(record.loss < LOSS_FLOOR for panel in panels for records in panel.metrics.values() for record in records)


def _results(rows: Sequence[RunRow]) -> str:
    html = html_table(summary_table(rows))
    unbalanced = unbalanced_table(rows)
    if unbalanced:
        html += f"<h3>Unbalanced lengths</h3>{html_note(_UNBALANCED_NOTE)}{html_table(unbalanced)}"
    return html


def _runs(results: Sequence[RunResult]) -> str:
    rows = [
        {
            "run": result.run_id,
            "parameters": f"{result.num_parameters:,}",
            "CPU s, training": f"{result.training.cpu_seconds:,.1f}",
            "wall s, training": f"{result.training.wall_seconds:,.1f}",
            "wall s, measuring": f"{result.evaluation_seconds:,.1f}",
            "peak MB of its process": f"{result.process_peak_memory_mb:,.0f}",
        }
        for result in results
    ]
    versions = ((name, " and ".join(values)) for name, values in versions_of(results))
    return html_table(table_of(rows)) + html_definitions(versions, "pairs")


def _configuration(panel: _Panel) -> str:
    spec = panel.results[0].spec
    command = f"lengthwise train {spec['task']['name']} {spec['model']['name']}"
    goal = "until {level} with a budget of {budget:g} CPU seconds, ".format(**spec["until"]) if "until" in spec else ""
    seeds = ", ".join(str(row.seed) for row in panel.rows)
    how = (
        "To repeat the training, save these settings as a file, and pass the file as the configuration to "
        f"<code>{escape(command)}</code>, with preset {preset_below(spec)}, {goal}seed {seeds}."
    )
    return (
        f"<details><summary>{escape(panel.title)}</summary>{html_note(how)}<pre>{escape(as_toml(spec))}</pre></details>"
    )


def _figures(panels: Sequence[_Panel], kind: str) -> str:
    return html_figures({f"{kind}-{index}": panel.title for index, panel in enumerate(panels)})
