"""The budget of a search that runs in steps, and the reports on its steps."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real

from lengthwise.validation import check_function


class BudgetSpent(Exception):
    """An error: the budget of a search ended before a step. The message names the step."""


@dataclass(frozen=True)
class StepBudget:
    """A limit on the CPU seconds of a search, counted from `started`, and a listener that learns which step begins.

    If `seconds` is None, the time is not limited. `report` is called with a sentence when a step begins.
    """

    seconds: float | int | None = None
    report: Callable[[str], None] = lambda sentence: None
    started: float = field(default_factory=time.process_time)

    def __post_init__(self) -> None:
        """Raise a ValueError if the budget is not a number above 0, or if the listener is not a function."""
        seconds = self.seconds
        is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 < seconds < math.inf):
            raise ValueError(f"budget: expected CPU seconds above 0, or None for no limit, got {seconds!r}; try 60")
        check_function("report", self.report)

    @property
    def used(self) -> float:
        """Return the CPU seconds since the search began."""
        return time.process_time() - self.started

    @property
    def left(self) -> float | None:
        """Return the remaining CPU seconds, which may be negative, or None without a limit."""
        return None if self.seconds is None else self.seconds - self.used

    def begin(self, step: str, expected: float = 0.0) -> None:
        """Report that a step begins, or raise `BudgetSpent` if at most `expected` CPU seconds are left."""
        if self.left is not None and self.left <= expected:
            raise BudgetSpent(f"the budget of {self.seconds:g} CPU s ended before step {step!r}")
        self.report(f"{step}; {self.used:.1f} CPU s so far")
