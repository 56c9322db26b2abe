"""Tasks: what a model is asked, how strings are drawn, and what the right answers are."""

from lengthwise.tasks.base import TASKS, Batch, OracleTask, RegularTask, SymbolTask, Task, VectorTask, make_task

__all__ = ["TASKS", "Batch", "OracleTask", "RegularTask", "SymbolTask", "Task", "VectorTask", "make_task"]
