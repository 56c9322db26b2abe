"""Models compared on a task. All models have the same seeds, and are measured by the same plan."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

from lengthwise.evaluation.interval import accuracy_interval
from lengthwise.evaluation.length_curve import best_known
from lengthwise.report.tables.differences import HEADER, Difference, difference_lines, paired_differences
from lengthwise.report.tables.levels import LEVELS
from lengthwise.report.tables.numbers import NOTHING, percent, percent_span, span
from lengthwise.report.tables.runs import RunRow, run_facts, run_rows
from lengthwise.report.tables.settings import collect_differences, task_of, variations, without_seed
from lengthwise.report.tables.table import Table
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import identity

COLUMNS = {
    "mean": "the accuracy of the final answer, averaged over seeds and lengths",
    "95 % interval": (
        "a confidence interval for the mean on new seeds and new strings. If all seeds have equal accuracies, it "
        "accounts only for new strings"
    ),
    "lowest": "the lowest accuracy of any seed at any length",
    "structured": "the lowest accuracy of any seed on structured strings",
    "chance": "the highest score of a constant answer at any length",
    "certificate": "the number of seeds at each level",
    "parameters": "the number of parameters of one net",
    "CPU s": "CPU seconds of training, from the fastest seed to the slowest, over all attempts of a run",
}
"""The meaning of columns of `model_table`. Each long length also has a column, with the lowest accuracy of any seed."""


class ComparedModel(NamedTuple):
    """A model with its settings, and its results in order of the seeds."""

    name: str
    results: tuple[RunResult, ...]
    rows: tuple[RunRow, ...]


class Comparison(NamedTuple):
    """Models with the same seeds. `left_out` lists the runs with a seed that some model lacks."""

    task: str
    seeds: tuple[int, ...]
    models: tuple[ComparedModel, ...]
    left_out: tuple[str, ...]

    @property
    def results(self) -> list[RunResult]:
        """The compared results, model by model."""
        return [result for model in self.models for result in model.results]


def compare_models(results: Sequence[RunResult]) -> Comparison:
    """Group results by model and settings, for the seeds that all models have.

    Raises:
        ValueError: fewer than two runs are given, a run is given twice, tasks or evaluation plans differ, a result has
            errors or perplexities instead of accuracies, there is only one model, or no seed is common to all models.
    """
    _check_comparable(results)
    groups: dict[str, dict[int, RunResult]] = {}
    for result in results:
        # `identity` leaves out settings that change no result, so runs with different budgets belong to one model.
        specification = {key: value for key, value in identity(result.spec).items() if key != "seed"}
        by_seed = groups.setdefault(json.dumps(specification, sort_keys=True), {})
        if result.spec["seed"] in by_seed:
            raise ValueError(f"results: expected each run once, got {result.run_id} twice; leave out one of the two")
        by_seed[result.spec["seed"]] = result
    names = _names([next(iter(group.values())) for group in groups.values()])
    if len(groups) < 2:
        raise ValueError(
            "results: expected runs of two or more models, or of one model with different settings, got only runs of "
            f"{names[0]}; add runs of another model or with other settings"
        )
    seeds = sorted(set.intersection(*(set(group) for group in groups.values())))
    if not seeds:
        having = ", ".join(
            f"seeds {', '.join(map(str, sorted(group)))} of {name}"
            for name, group in zip(names, groups.values(), strict=True)
        )
        raise ValueError(
            f"results: expected a seed that all models have, because runs are compared seed by seed, got {having}; "
            "train the missing seeds"
        )
    models = []
    for name, group in zip(names, groups.values(), strict=True):
        kept = tuple(group[seed] for seed in seeds)
        models.append(ComparedModel(name, kept, tuple(run_rows(kept))))
    left_out = tuple(result.run_id for result in results if result.spec["seed"] not in seeds)
    return Comparison(task_of(results[0]), tuple(seeds), tuple(models), left_out)


def _check_comparable(results: Sequence[RunResult]) -> None:
    if len(results) < 2:
        raise ValueError(
            f"results: expected two or more runs to compare, got {len(results)}; add a run of another model"
        )
    first = results[0]
    for other in results:
        if other.errors is not None:
            raise ValueError(
                f"results: expected runs whose answers are classes, got {other.run_id}, whose answers are numbers; "
                "compare such runs in an experiment (`Scoring.compared`)"
            )
        if other.perplexity is not None:
            raise ValueError(
                f"results: expected runs with accuracies, got {other.run_id}, which has perplexities; compare such "
                "runs in an experiment (`Scoring.compared`)"
            )
        if identity(other.spec)["task"] != identity(first.spec)["task"]:
            raise ValueError(
                f"results: expected runs of one task, got {first.run_id} of {task_of(first)} and {other.run_id} of "
                f"{task_of(other)}; compare runs of one task"
            )
        # Certificates change no accuracy, so runs with and without them can be compared.
        if (one := first.plan.model_copy(update={"certificate": False})) != (
            two := other.plan.model_copy(update={"certificate": False})
        ):
            differing = next(name for name, value in one if value != getattr(two, name))
            raise ValueError(
                f"results: expected runs measured by one plan, got `{differing}` {getattr(one, differing)} in "
                f"{first.run_id} and {getattr(two, differing)} in {other.run_id}; `lengthwise resume` measures a run "
                "again, up to a length that you choose"
            )


def _names(results: Sequence[RunResult]) -> list[str]:
    """Return a name for each model: its registered name, and the settings in which it differs from other models."""
    differing = variations(results)
    names = []
    for result in results:
        settings = differing[result.run_id]
        names.append(str(result.spec["model"]["name"]) + (f" ({settings})" if settings else ""))
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} [{names[: index + 1].count(name)}]" for index, name in enumerate(names)
    ]


def model_table(comparison: Comparison) -> Table:
    """Return one line for each model: accuracies, certificates and cost (see `COLUMNS`)."""
    long = sorted({length for model in comparison.models for row in model.rows for length in row.long})
    header = (
        *("model", "mean", "95 % interval", "lowest", *(f"{length:,}" for length in long), "structured", "chance"),
        *("certificate", "parameters", "steps", "CPU s"),
    )
    table = Table(header, tuple(_model_line(model, long) for model in comparison.models))
    return table.without_empty().folded(["chance", "steps"])


def _model_line(model: ComparedModel, long: Sequence[int]) -> tuple[str, ...]:
    means = [row.dense.mean() for row in model.rows]
    low, high = accuracy_interval(means, max(1, model.rows[0].dense.num_independent))
    counts = Counter(row.level for row in model.rows)
    levels = [f"{level} {counts[level]}" for level in LEVELS if counts[level]]
    seconds = sorted(result.training.cpu_seconds for result in model.results)
    return (
        model.name,
        percent(fmean(means)),
        percent_span(low, high),
        percent(min(row.dense.min() for row in model.rows)),
        *(_lowest([row.long[length].accuracy for row in model.rows if length in row.long]) for length in long),
        _lowest([point.accuracy for row in model.rows for point in row.structured]),
        percent(max(row.baseline for row in model.rows)),
        ", ".join(levels) or NOTHING,
        span([result.num_parameters for result in model.results]),
        span([row.steps for row in model.rows]),
        f"{seconds[0]:,.1f}" + f" to {seconds[-1]:,.1f}" * (len(seconds) > 1),
    )


def comparison_facts(comparison: Comparison) -> dict[str, Any]:
    """Return a `Comparison` as values for JSON: its models with their runs, and the differences between models."""
    models = [
        {"name": model.name, "runs": [run_facts(result) for result in model.results]} for model in comparison.models
    ]
    differences = [difference._asdict() for difference in model_differences(comparison)]
    return {
        "task": comparison.task,
        "seeds": comparison.seeds,
        "models": models,
        "differences": differences,
        "left_out": comparison.left_out,
    }


def comparison_tables(comparison: Comparison) -> dict[str, Table]:
    """Return two tables by title: the models, and the differences between models."""
    seeds = ", ".join(map(str, comparison.seeds))
    return {
        f"{comparison.task}: {len(comparison.models)} models, seeds {seeds}": model_table(comparison),
        "Difference (first - second), paired by seed": model_difference_table(model_differences(comparison)),
    }


def _lowest(accuracies: Sequence[float]) -> str:
    return percent(min(accuracies)) if accuracies else NOTHING


def model_differences(comparison: Comparison) -> list[Difference]:
    """Return the differences in accuracy between any two models, paired by seed.

    Each group of strings has its own differences: the dense range, each long length, and structured strings. The
    p-values are corrected for the total number of differences.
    """
    accuracies = {
        model.name: [
            {group: fmean(points.values()) for group, points in group_accuracies(result).items() if points}
            for result in model.results
        ]
        for model in comparison.models
    }
    groups = dict.fromkeys(group for of_model in accuracies.values() for of_seed in of_model for group in of_seed)
    pairs = []
    for group in groups:
        for first, second in combinations(accuracies, 2):
            both = zip(accuracies[first], accuracies[second], strict=True)
            gaps = [one[group] - other[group] for one, other in both if group in one and group in other]
            pairs.append((group, first, second, gaps))
    return paired_differences(pairs)


def group_accuracies(result: RunResult) -> dict[str, dict[tuple[str, int], float]]:
    """Return a run's accuracies by group (dense range, a long length, structured strings), then by family and length.

    Random strings are included only at lengths at which every class can occur.
    """
    groups = [
        ("dense range", result.dense.balanced().points),
        *((f"length {point.length:,}", (point,)) for point in result.long.balanced().points),
        ("structured strings", result.structured.points),
    ]
    return {name: {(point.family, point.length): point.accuracy for point in points} for name, points in groups}


def model_difference_table(compared: Sequence[Difference]) -> Table:
    """Return one line for each difference in accuracy between two models, in percentage points."""
    return Table(("measured at", *HEADER[1:]), tuple(difference_lines(compared, errors=False)))


def differing_settings(comparison: Comparison) -> Table:
    """Return one line for each setting in which models differ, with a column for each model."""
    differing = collect_differences([without_seed(model.results[0].spec) for model in comparison.models])
    lines = tuple((key, *texts) for key, texts in differing)
    return Table(("setting", *(model.name for model in comparison.models)), lines)


def accuracies_by_length(model: ComparedModel) -> Mapping[int, list[float]]:
    """Return the accuracies of all seeds by length.

    The lengths are the long lengths and the lengths of the dense range at which every class can occur.
    """
    points: dict[int, list[float]] = {}
    for row in model.rows:
        for length, accuracy in best_known([*row.dense.points, *row.long.values()]).items():
            points.setdefault(length, []).append(accuracy)
    return dict(sorted(points.items()))
