"""The page of an experiment: our numbers next to the paper's, with everything needed to grade and repeat them."""

import math
from collections.abc import Sequence
from datetime import date

from lengthwise.certification.certificate import CLAIMS, Level
from lengthwise.evaluation.length_curve import LengthCurve, LengthPoint
from lengthwise.evaluation.probe import PROBE_EVERY, PROBE_LENGTHS, TEST_EVERY, TEST_STRINGS, best_of_guesses
from lengthwise.experiments.base import Cell, Experiment
from lengthwise.report.tables.cells import accuracies_scored, results_of, runs_text
from lengthwise.report.tables.differences import differences
from lengthwise.report.tables.errors import ABOUT_ERRORS, error_cell_lines
from lengthwise.report.tables.markdown import markdown_table
from lengthwise.report.tables.numbers import NOTHING, percent, span
from lengthwise.report.tables.protocol import protocol_sentences
from lengthwise.report.tables.runs import RunRow, run_rows
from lengthwise.report.tables.settings import versions_of
from lengthwise.report.tables.shallow_baselines import with_shallow_baselines
from lengthwise.runs.folder import RunResult
from lengthwise.runs.pool import Outcome

Line = tuple[str, ...]


_SCORED = {
    "balanced": "Accuracy of the final answer at lengths at which every class can occur.",
    "legal": "Accuracy of the final answer at all lengths, also those at which only one answer can occur.",
}


_COLUMNS = {
    "lowest": "*Mean* and *best run* are means over lengths; *lowest* is the lowest accuracy of any run at any one.",
    "structured": (
        "Long lengths and *structured* show the lowest run, the latter with what a constant answer scores there in "
        "brackets."
    ),
    "solved": "*Solved* counts runs without a single error at the lengths scored.",
    "at step": (
        "*At step* and *after CPU s* say from where on these made no error on a fixed probe of other strings of 48 to "
        f"500 symbols (or of the task's longest below), taken every {PROBE_EVERY} steps (-: the last probe erred)."
    ),
    "chance": "*Chance* is the mean over lengths of what the best constant answer scores.",
}
"""What stands below a table that has such a column."""


_BEST_TEST = (
    f"*Best test*: the mean over runs of the best of the tests that were taken every {TEST_EVERY:,} steps, each on "
    f"{TEST_STRINGS} fresh strings of {PROBE_LENGTHS[-1]} symbols (or of the longest that the task has below): the "
    "paper's rule, which selects on test data. "
    "*Guesses*: what that rule is expected to give a net that knows nothing but the most frequent answer."
)


def cell_lines(experiment: Experiment, outcomes: Sequence[Outcome]) -> tuple[Line, list[Line]]:
    """Header and one line for each cell: over its runs, mean and extremes of the accuracy at the lengths scored.

    `solved` counts the runs that are right on every string; `lowest` is over runs and lengths; `at step` and
    `after CPU s` are the span, over the solved runs whose last probe is flawless, of where flawless probes began.
    Where errors are scored, the lines are `error_cell_lines`.
    """
    if experiment.scored == "error":
        return error_cell_lines(experiment, outcomes)
    long = [f"{length:,}" for length, _ in experiment.plan.long]
    columns = ("row", "column", "runs", "lengths", "mean", "best run", "lowest")
    solved = ("solved", "at step", "after CPU s")
    best = ("best test", "guesses") if experiment.best_test else ()
    header = (*columns, *solved, *long, "structured", "chance", "steps", "CPU s", *best, "paper")
    return header, [_cell_line(cell, results_of(cell, outcomes), experiment) for cell in experiment.cells]


def _cell_line(cell: Cell, found: Sequence[RunResult], experiment: Experiment) -> Line:
    low, high = cell.window or experiment.plan.dense
    start = (cell.row, cell.column, runs_text(cell, found), span([low, high]))
    if not found:
        blanks = 10 + len(experiment.plan.long) + 2 * experiment.best_test
        return (*start, *[NOTHING] * blanks, cell.published)
    rows = run_rows(found)
    curves = [accuracies_scored(result, cell, experiment) for result in found]
    means = [curve.mean() for curve in curves]
    solved = [result for result, curve in zip(found, curves, strict=True) if curve.min() == 1.0]
    solved_at = [probe for result in solved if (probe := result.flawless_from)]
    return (
        *start,
        percent(sum(means) / len(means)),
        percent(max(means)),
        percent(min(curve.min() for curve in curves)),
        f"{len(solved)} of {len(rows)}",
        span([probe.step for probe in solved_at]),
        span([round(probe.cpu_seconds) for probe in solved_at]),
        *(_lowest([row.long[n] for row in rows if n in row.long]) for n, _ in experiment.plan.long),
        _lowest_and_chance([point for row in rows for point in row.structured]),
        percent(max(_chance(curve) for curve in curves)),
        span([row.steps for row in rows]),
        span([round(result.training.cpu_seconds) for result in found]),
        *(_best_tests(found) if experiment.best_test else ()),
        cell.published,
    )


def _without_empty_columns(header: Line, lines: Sequence[Line]) -> tuple[Line, list[Line]]:
    """The columns in which some line says something."""
    kept = [index for index in range(len(header)) if not lines or any(line[index] != NOTHING for line in lines)]
    return tuple(header[index] for index in kept), [tuple(line[index] for index in kept) for line in lines]


def _about_accuracies(scored: str, header: Line) -> str:
    return " ".join([scored, *(sentence for column, sentence in _COLUMNS.items() if column in header)])


def _best_tests(found: Sequence[RunResult]) -> tuple[str, str]:
    """The mean over runs of each one's best test, and what that is expected to be for guesses or a constant answer."""
    tests = [result.fresh_tests for result in found]
    if not all(tests):
        return NOTHING, NOTHING
    best = [max(some) for some in tests]
    guesses = [
        best_of_guesses(result.dense.points[-1].baseline, len(some)) for result, some in zip(found, tests, strict=True)
    ]
    return percent(sum(best) / len(best)), percent(sum(guesses) / len(guesses))


def file_stem(name: str, scale: str) -> str:
    """What the page of an experiment is called, and its records in the folder next to it."""
    return name.replace("/", "-") + ("" if scale == "small" else f"-{scale}")


def markdown_page(name: str, scale: str, experiment: Experiment, outcomes: Sequence[Outcome], today: date) -> str:
    """The page of an experiment that was run."""
    header, lines = _without_empty_columns(*cell_lines(experiment, outcomes))
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    parts = [
        f"# {experiment.title}",
        experiment.about,
        *(
            ["**A smoke run: it shows that everything works, and its numbers say nothing.**"]
            if scale == "smoke"
            else []
        ),
        f"```console\nlengthwise reproduce {name} --scale {scale}\n```",
        markdown_table(header, lines),
        ABOUT_ERRORS if experiment.scored == "error" else _about_accuracies(_SCORED[experiment.scored], header),
        *([_BEST_TEST] if "best test" in header else []),
        *with_shallow_baselines(experiment, outcomes),
        *differences(experiment, outcomes),
        *_certificates(experiment, outcomes),
        *_failures(outcomes),
        *_overflows(results),
        *_measured(results, run_rows(results)),
        _provenance(results, today),
        f"All results, a line of JSON for each run: [{file_stem(name, scale)}.jsonl.gz](records/"
        f"{file_stem(name, scale)}.jsonl.gz). `lengthwise reproduce {name} --scale {scale} --recorded` counts these "
        "runs as finished.",
    ]
    return "\n\n".join(parts) + "\n"


_LEVELS: tuple[Level, ...] = ("proved", "extracted", "tested", "refuted")


def _certificate_table(experiment: Experiment, outcomes: Sequence[Outcome]) -> tuple[Line, list[Line]]:
    """Header and one line for each cell: how many of its runs have which certificate, and the size of the machines."""
    header = ("row", "column", *_LEVELS, "classes", "states apart", "CPU s", "shortest error", "not higher, because")
    return header, [_certificate_line(cell, results_of(cell, outcomes)) for cell in experiment.cells]


def _certificate_line(cell: Cell, results: Sequence[RunResult]) -> Line:
    found = [result.certificate for result in results if result.certificate]
    sizes = [len(certificate.machine["outputs"]) for certificate in found if certificate.machine]
    gaps = [c.closure.gap for c in found if c.closure and c.closure.gap is not None]
    errors = [len(certificate.counterexample.string) for certificate in found if certificate.counterexample]
    reasons = dict.fromkeys(c.reason for c in found if c.level in ("tested", "extracted"))
    return (
        cell.row,
        cell.column,
        *(str(sum(certificate.level == level for certificate in found)) for level in _LEVELS),
        span(sizes),
        f"{min(gaps):.1f}" if gaps else NOTHING,
        span([round(certificate.seconds) for certificate in found]),
        span(errors),
        " / ".join(reasons) or NOTHING,
    )


def _certificates(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    if not experiment.plan.certificate:
        return []
    header, lines = _certificate_table(experiment, outcomes)
    return [
        "## Certificates",
        "How many of the runs have which level. " + " ".join(f"*{level}*: {CLAIMS[level]}" for level in _LEVELS),
        markdown_table(header, lines),
        "*Classes*: of the machines. *States apart*: the smallest distance, in any run, between representatives of two "
        "classes (a state of RegularGPT has norm 8 for D=64). *CPU s*: of one certificate, tests included.",
    ]


def _failures(outcomes: Sequence[Outcome]) -> list[str]:
    failed = [outcome for outcome in outcomes if outcome.result is None]
    lines = [f"- {outcome.spec.id}: {outcome.reason}" for outcome in failed]
    return ["## Without a result\n\n" + "\n".join(lines)] if failed else []


def _overflows(results: Sequence[RunResult]) -> list[str]:
    """Which runs have states that overflow, and on how many of the strings that they were measured on."""
    lines = []
    for result in results:
        points = [point for curve in result.curves for point in curve.points]
        if affected := [point for point in points if point.num_overflowed]:
            strings, supervised = sum(p.num_overflowed for p in points), sum(p.num_strings for p in points)
            shortest = min(point.length for point in affected)
            lines.append(
                f"- {result.run_id}: on {strings:,} of {supervised:,} strings, of {shortest:,} symbols or more"
            )
    return ["## States that overflow\n\nCounted as wrong answers.\n\n" + "\n".join(lines)] if lines else []


def _measured(results: Sequence[RunResult], rows: Sequence[RunRow]) -> list[str]:
    sentences = [f"- {name}. {sentence}" for name, sentence in protocol_sentences(results, rows)]
    return ["## How it was measured\n\n" + "\n".join(sentences)] if sentences else []


def _provenance(results: Sequence[RunResult], today: date) -> str:
    found = [f"- {name}: {', '.join(values)}" for name, values in versions_of(results)]
    weights = dict.fromkeys(result.weights for result in results)
    return "\n".join([f"## Where it comes from\n\n- date: {today}", f"- weights: {' or '.join(weights)}", *found])


def _chance(curve: LengthCurve) -> float:
    """The mean score of the best constant answer at each length."""
    return sum(point.baseline for point in curve.points) / len(curve.points) if curve.points else math.nan


def _lowest(points: Sequence[LengthPoint]) -> str:
    return percent(min(point.accuracy for point in points)) if points else NOTHING


def _lowest_and_chance(points: Sequence[LengthPoint]) -> str:
    """Structured strings share few answers, so that a constant one may score high."""
    lowest = min(points, key=lambda point: (point.accuracy, point.baseline), default=None)
    return f"{percent(lowest.accuracy)} ({percent(lowest.baseline)})" if lowest else NOTHING
