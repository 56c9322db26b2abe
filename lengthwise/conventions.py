"""What tasks, models and training agree on."""

IGNORE = -100
"""Target of an unsupervised position (integer targets; NaN in float targets)."""

PAD = -1
"""Input id of "no symbol": legal only for models that accept pads (`lengthwise.models.capabilities.AcceptsPads`)."""

SEP, BAR = 0, 1
"""In problems that are written as strings: the ids of ``<sep>``, which ends one, and of ``|``, between its parts."""

NUM_SPECIAL = 2
"""In such problems letters and integers have the ids that follow: integer n is symbol ``NUM_SPECIAL + n``."""


class Diverged(RuntimeError):
    """A state, a loss or a gradient is no longer finite, although all that it was computed from was.

    `step`: the first symbol of a string, counted from 1, whose state is not finite; None where there is no such thing.
    """

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step

    def __str__(self) -> str:
        return super().__str__() + (f" (step {self.step:,})" if self.step else "")


class Tie(ArithmeticError):
    """The largest logit is not one alone, or logits are no numbers: nothing says which symbol is next."""
