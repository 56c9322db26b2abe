"""What tasks, models and training agree on."""

IGNORE = -100
"""Target where nothing is asked (integer targets; NaN in float targets)."""

PAD = -1
"""Input id of "no symbol": legal only for models that declare `accepts_pad`."""


class Diverged(RuntimeError):
    """A state, a loss or a gradient is no longer finite, although all that it was computed from was."""
