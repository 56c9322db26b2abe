"""The outcomes of the runs of a sweep."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from lengthwise.conventions import Diverged
from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.measurements import is_complete
from lengthwise.runs.result import RunResult
from lengthwise.runs.spec import RunSpec

NOT_RUN = "not run yet"
"""The reason for a missing result, if the run has not begun or has not finished."""


class Outcome(NamedTuple):
    """The outcome of a run: its result, or the reason why the run has no result."""

    spec: RunSpec
    result: RunResult | None
    reason: str = ""


def finished(specs: Sequence[RunSpec], root: Path, plans: Sequence[EvaluationPlan]) -> list[Outcome]:
    """Return each run's present outcome: a result that covers the run's plan, or the reason for a missing result."""
    return [_outcome(spec, RunFolder(root / spec.id), plan) for spec, plan in zip(specs, plans, strict=True)]


def _outcome(spec: RunSpec, folder: RunFolder, plan: EvaluationPlan) -> Outcome:
    try:
        result, status = folder.read_result(), folder.read_status()
    except ValueError as error:  # the file is damaged or of another version; executing the run sets it aside
        return Outcome(spec, None, str(error))
    if result and is_complete(result, spec, plan):
        return Outcome(spec, result)
    # A run that diverged would diverge again, so it counts as done without a result.
    is_lost = result is None and status.status == "diverged"
    return Outcome(spec, None, f"{Diverged.__name__}: {status.message}" if is_lost else NOT_RUN)


def older_files(outcomes: Iterable[Outcome], root: Path) -> dict[str, list[str]]:
    """Return, by run id, the names of the user's files that have changed since a run with a result began."""
    changed = {
        outcome.spec.id: RunFolder(root / outcome.spec.id).changed_files(outcome.spec)
        for outcome in outcomes
        if outcome.result is not None
    }
    return {run_id: names for run_id, names in changed.items() if names}


def diverged(outcome: Outcome) -> bool:
    """Return whether the run ended because its loss or its gradient was not finite."""
    return outcome.reason.startswith(f"{Diverged.__name__}: ")
