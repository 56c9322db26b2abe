"""What an earlier process left of a run: a result, an unreadable one, and how far it had come."""

from lengthwise.evaluation.plan import EvaluationPlan
from lengthwise.files import UnreadableFile
from lengthwise.runs.folder import RunFolder
from lengthwise.runs.measurements import has_all_of
from lengthwise.runs.result import RunResult, RunStatus
from lengthwise.runs.spec import RunSpec


def finished_result(folder: RunFolder, spec: RunSpec, plan: EvaluationPlan) -> RunResult | None:
    """The run's own result under this plan or one that has all of it, None where there is none; nothing is written."""
    try:
        result = folder.read_result()
    except UnreadableFile:
        raise
    except ValueError:
        return None
    return result if result and has_all_of(result, spec, plan) else None


def set_unreadable_result_aside(folder: RunFolder) -> None:
    """Make way for a new result where that of another version or run stands."""
    try:
        folder.read_result()
    except UnreadableFile:  # it may be whole
        raise
    except ValueError:
        folder.set_result_aside()


def earlier_status(folder: RunFolder) -> RunStatus:
    """How far the run had come, or a new status where that cannot be read: it only adds up times."""
    if not folder.checkpoint.exists():
        return RunStatus()
    try:
        return folder.read_status()
    except UnreadableFile:
        raise
    except ValueError:
        return RunStatus()
