"""What an earlier process left of a run: a result, an unreadable one, and a status."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import UnreadableFile
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.measurements import is_complete
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import RunSpec


def finished_result(folder: RunFolder, spec: RunSpec, plan: EvaluationPlan) -> RunResult | None:
    """Return the run's result if it was measured by this plan or a larger one, else None; nothing is written."""
    try:
        result = folder.read_result()
    except UnreadableFile:  # the disk may fail only now, so the result is not given up
        raise
    except ValueError:
        return None
    return result if result and is_complete(result, spec, plan) else None


def set_unreadable_result_aside(folder: RunFolder) -> None:
    """Rename a result that another version or run wrote, so that a new one can take its name."""
    try:
        folder.read_result()
    except UnreadableFile:  # the file may be whole
        raise
    except ValueError:
        folder.set_result_aside()


def earlier_status(folder: RunFolder) -> RunStatus:
    """Return how far the run has come, or a new status if it cannot be read, since a status only adds up times."""
    if not folder.checkpoint.exists():
        return RunStatus()
    try:
        return folder.read_status()
    except UnreadableFile:
        raise
    except ValueError:
        return RunStatus()
