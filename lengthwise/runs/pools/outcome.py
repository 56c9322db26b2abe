"""What became of the runs of a sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.folder import RunFolder, RunResult
from lengthwise.runs.spec import RunSpec


class Outcome(NamedTuple):
    """What became of a run: its result, or why there is none."""

    spec: RunSpec
    result: RunResult | None
    reason: str = ""


def finished(specs: Sequence[RunSpec], root: Path, plans: Sequence[EvaluationPlan]) -> list[Outcome]:
    """What is there already: the results that were measured by their run's plan, or one that has all of it."""
    results = [RunFolder(root / spec.id).read_result() for spec in specs]
    return [
        Outcome(spec, result) if result and result.plan.covers(plan) else Outcome(spec, None, "not run yet")
        for spec, result, plan in zip(specs, results, plans, strict=True)
    ]
