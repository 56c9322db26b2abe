"""What tasks, models and training agree on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

IGNORE = -100
"""Target where nothing is asked (integer targets; NaN in float targets)."""

PAD = -1
"""Input id of "no symbol": legal only for models that declare `accepts_pad`."""


class Diverged(RuntimeError):
    """A state, a loss or a gradient is no longer finite, although all that it was computed from was.

    `steps`: for every string that was read, the first symbol, counted from 1, whose state is not finite, 0 where all of
    them are; empty where it is no state. `step`: the first of all these, or None.
    """

    def __init__(self, message: str, steps: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.steps = tuple(steps)

    @property
    def step(self) -> int | None:
        return min(filter(None, self.steps), default=None)

    def __str__(self) -> str:
        return super().__str__() + (f" (step {self.step:,})" if self.step else "")


class Tie(ArithmeticError):
    """The largest logit is not one alone, or logits are no numbers: nothing says which symbol is next."""


@contextmanager
def counting_from(steps: int) -> Iterator[None]:
    """Within it, steps of a `Diverged` are counted from the beginning of strings, of which so many symbols are read."""
    try:
        yield
    except Diverged as error:
        error.steps = tuple(step and step + steps for step in error.steps)
        raise
