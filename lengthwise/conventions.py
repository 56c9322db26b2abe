"""What tasks, models and training agree on."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

IGNORE = -100
"""Target of an unsupervised position (integer targets; NaN in float targets)."""

PAD = -1
"""Input id of "no symbol": legal only for models that accept pads (`lengthwise.models.capabilities.AcceptsPads`)."""


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


@contextmanager
def counting_from(steps: int) -> Iterator[None]:
    """Within it, the step of a `Diverged` is counted from the beginning of a string, of which so many are read."""
    try:
        yield
    except Diverged as error:
        if error.step:
            error.step += steps
        raise


_OVERFLOW_IS_LET = ContextVar("overflow_is_let", default=False)


@contextmanager
def letting_overflow() -> Iterator[None]:
    """Within it no state raises `Diverged`: a string that overflows has states that are not finite from there on.

    The other strings are read as ever. So a batch is read once, however many of its strings overflow, and wherever.
    """
    before = _OVERFLOW_IS_LET.set(True)
    try:
        yield
    finally:
        _OVERFLOW_IS_LET.reset(before)


def overflow_is_let() -> bool:
    """Whether this is within `letting_overflow`."""
    return _OVERFLOW_IS_LET.get()
