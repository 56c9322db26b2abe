"""Tasks: how strings are drawn, which positions a model must answer, and the right answers."""

from typing import TYPE_CHECKING

from lengthwise.registry import lazy_names

__all__ = ["TASKS", "Batch", "OracleTask", "RegularTask", "SymbolTask", "Task", "VectorTask", "make_task"]

if TYPE_CHECKING:
    from lengthwise.tasks.base import TASKS as TASKS
    from lengthwise.tasks.base import Batch as Batch
    from lengthwise.tasks.base import OracleTask as OracleTask
    from lengthwise.tasks.base import RegularTask as RegularTask
    from lengthwise.tasks.base import SymbolTask as SymbolTask
    from lengthwise.tasks.base import Task as Task
    from lengthwise.tasks.base import VectorTask as VectorTask
    from lengthwise.tasks.base import make_task as make_task

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lengthwise.tasks.base"))
