"""The two integers on which tasks, models and training agree."""

IGNORE = -100
"""Target where nothing is asked (integer targets; NaN in float targets)."""

PAD = -1
"""Input id of "no symbol": legal only for models that declare `accepts_pad`."""
