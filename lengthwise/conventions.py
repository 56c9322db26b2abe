"""Conventions that tasks, models and training share."""

IGNORE = -100
"""The target of an unsupervised position, for integer targets; float targets use NaN."""

PAD = -1
"""The input id of "no symbol", for models that accept pads (`lengthwise.models.capabilities.AcceptsPads`) only."""

SEP, BAR = 0, 1
"""The ids of ``<sep>``, which ends a problem that is written as a string, and of ``|``, between its parts."""

NUM_SPECIAL = 2
"""The number of ids before letters and integers in such problems: integer n is symbol ``NUM_SPECIAL + n``."""


class Diverged(RuntimeError):
    """A state, a loss or a gradient became infinite or NaN, although all numbers that it depends on were finite.

    `step` is the first symbol of a string, counted from 1, whose state is not finite, or None for a loss or a gradient.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step

    def __str__(self) -> str:
        return super().__str__() + (f" (step {self.step:,})" if self.step else "")


class Tie(ArithmeticError):
    """The largest logit is tied, or a logit is NaN, so that the next symbol is undefined."""
