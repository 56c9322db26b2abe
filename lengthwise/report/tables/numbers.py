"""Numbers in the form that a reader sees."""

import math
from collections.abc import Sequence

from lengthwise.display import NOTHING as NOTHING
from lengthwise.display import percent as percent


def span(numbers: Sequence[int]) -> str:
    """Return the smallest and the largest of some numbers as text.

    Example:
        >>> span([41, 42, 1500]), span([7]), span([])
        ('41-1,500', '7', '-')
    """
    if not numbers:
        return NOTHING
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"


def whole_percent(share: float) -> str:
    """Return a share as a percentage without decimals.

    Example:
        >>> whole_percent(0.15)
        '15 %'
    """
    return f"{share:.0%}".replace("%", " %")


def percent_span(low: float, high: float) -> str:
    """Return an interval of shares as text; "-" if a limit is unknown.

    Example:
        >>> percent_span(0.25, 0.5), percent_span(math.nan, math.nan)
        ('25.00 % to 50.00 %', '-')
    """
    return NOTHING if math.isnan(low) else f"{percent(low)} to {percent(high)}"
