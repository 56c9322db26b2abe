"""Results and statuses that earlier processes left in the folder of a run."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import UnreadableFile, unless_damaged
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.measurements import is_complete
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import RunSpec


def finished_result(folder: RunFolder, spec: RunSpec, plan: EvaluationPlan) -> RunResult | None:
    """Return the run's result if nothing is left to do for this plan (`is_complete`); otherwise, return None."""
    result = unless_damaged(folder.read_result, None)
    return result if result and is_complete(result, spec, plan) else None


def set_unreadable_result_aside(folder: RunFolder) -> None:
    """Rename a result that is damaged or of another version or run, so that a new result can take its name."""
    try:
        folder.read_result()
    except UnreadableFile:  # the disk may fail only now, and the file may be intact
        raise
    except ValueError:
        folder.set_result_aside()


def earlier_status(folder: RunFolder) -> RunStatus:
    """Return the saved status of the run, or a new status if there is no checkpoint or the status cannot be read."""
    return unless_damaged(folder.read_status, RunStatus()) if folder.checkpoint.exists() else RunStatus()
