"""Conventions that all rooms share: ids of special symbols, exceptions, and the form of messages."""

IGNORE = -100
"""The integer target of an unsupervised position. Targets that are floats contain NaN instead."""

PAD = -1
"""The input id of "no symbol". Only models that accept pads read it (`lengthwise.models.capabilities.AcceptsPads`)."""

SEP, BAR = 0, 1
"""The ids of two symbols in problems written as strings: ``<sep>`` ends a problem, and ``|`` separates its parts."""

NUM_SPECIAL = 2
"""The number of special ids, which come before the ids of letters and integers. In problems written as strings, integer
n is symbol ``NUM_SPECIAL + n``."""


def without_way_out(problem: object) -> str:
    """Return the message of this package without its way out, which follows the last semicolon.

    A message that quotes another message has a way out of its own, and two ways out may contradict each other.

    Example:
        >>> without_way_out("length: expected 1 or more, got 0; give 1 or more")
        'length: expected 1 or more, got 0'
    """
    return str(problem).rsplit("; ", 1)[0]


class Diverged(RuntimeError):
    """An exception: a state, a loss or a gradient is infinite or NaN, although it was computed from finite numbers.

    For a state, `step` is the position, counted from 1, of the first symbol after which a state is not finite. For a
    loss or a gradient, `step` is None.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step

    def __str__(self) -> str:
        return super().__str__() + (f" (step {self.step:,})" if self.step else "")


class Tie(ArithmeticError):
    """An exception: the next symbol is undefined, because the largest logit is tied or a logit is NaN."""
