"""The sources of an experiment's numbers: the seeds of its runs, the protocol, and the commits of the code."""

from collections.abc import Sequence

from lengthwise.experiment import Experiment
from lengthwise.report.tables.cells import results_of
from lengthwise.report.tables.numbers import NOTHING, span
from lengthwise.report.tables.protocol import protocol_methods
from lengthwise.report.tables.runs import run_rows
from lengthwise.report.tables.table import Table
from lengthwise.runs.pools.outcome import Outcome
from lengthwise.runs.result import RunResult

COLUMNS = {
    "seeds": "the seeds of the cell's runs; runs with equal seeds differ in other settings",
    "commits": (
        "the commits at which the cell's runs began and at which they were measured; a + marks uncommitted changes"
    ),
}
"""The meaning of each of the two columns that `with_sources` adds."""

DIGITS = 8
"""The number of digits to which commits are shortened."""

_CHANGED = " with changes"


def with_sources(table: Table, experiment: Experiment, outcomes: Sequence[Outcome]) -> Table:
    """Return a table with one line for each `Cell` of an experiment, and two more columns: seeds and commits."""
    sources = [results_of(cell, outcomes) for cell in experiment.cells]
    lines = (
        (*line, seeds_text(results), commits_text(results)) for line, results in zip(table.lines, sources, strict=True)
    )
    return table._replace(header=(*table.header, *COLUMNS), lines=tuple(lines))


def source_lines(experiment: Experiment, outcomes: Sequence[Outcome]) -> list[str]:
    """Return lines for a terminal: the seeds, scored lengths, commits and protocol of all runs with a result."""
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    if not results:
        return []
    low, high = experiment.plan.dense
    windows = [cell.window or experiment.plan.dense for cell in experiment.cells]
    # At scale `smoke`, a cell's scored lengths (`Cell.window`) can go beyond the measured lengths.
    scored = dict.fromkeys(span([max(low, first), min(high, last)]) for first, last in windows)
    # Errors and perplexities are measured at other lengths, which their tables contain.
    is_of_accuracies = experiment.scoring.measure not in ("error", "perplexity")
    lengths = [f"lengths scored: {', '.join(scored)}"] if is_of_accuracies else []
    protocol = [f"{name.lower()}: {method}" for name, method in protocol_methods(results, run_rows(results))]
    return [f"seeds: {seeds_text(results)}", *lengths, f"commits: {commits_text(results)}", *protocol]


def seeds_text(results: Sequence[RunResult]) -> str:
    """Return the seeds of some runs in ascending order; three and more successive seeds are shown as a range."""
    ranges: list[list[int]] = []
    for seed in sorted({int(result.spec["seed"]) for result in results}):
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    texts = [f"{each[0]}-{each[-1]}" if len(each) > 2 else ", ".join(map(str, each)) for each in ranges]
    return ", ".join(texts) or NOTHING


def commits_text(results: Sequence[RunResult]) -> str:
    """Return the shortened hashes of the commits with which runs were begun and measured, in the order of the runs."""
    commits = [result.versions.get(key, "") for result in results for key in ("begun at commit", "commit")]
    return ", ".join(dict.fromkeys(_short_commit(commit) for commit in commits if commit)) or NOTHING


def _short_commit(commit: str) -> str:
    """Return the first digits of a commit, with a mark if there were uncommitted changes.

    Example:
        >>> _short_commit("4892c24a8691d4c0e6ab732411e4ea367722269f with changes")
        '4892c24a+'
        >>> _short_commit("unknown (no checkout)")
        'unknown'
    """
    return commit.split()[0][:DIGITS] + ("+" if commit.endswith(_CHANGED) else "")
