"""Numbers as a reader sees them."""

import math
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

NOTHING = "-"
"""Stands where nothing was measured."""


def percent(share: float) -> str:
    """A share as a percentage, cut (never rounded) to two decimals; only exactly 1 is "100 %", only exactly 0 "0 %".

    Example:
        >>> percent(1.0), percent(0.99996), percent(1 - 1e-15), percent(0.57), percent(0.00001), percent(0.0)
        ('100 %', '99.99 %', '99.99 %', '57.00 %', '0.00 %', '0 %')
    """
    if math.isnan(share):
        return NOTHING
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    # A mean of decimals such as 0.57 may lie a rounding error below it; 12 digits bring it back before the cut.
    hundredths = Decimal(f"{share:.12f}").scaleb(4).to_integral_value(ROUND_FLOOR)
    return f"{min(hundredths, Decimal(9999)).scaleb(-2):.2f} %"


def span(numbers: Sequence[int]) -> str:
    """The smallest and the largest of some numbers.

    Example:
        >>> span([41, 42, 1500]), span([7]), span([])
        ('41-1,500', '7', '-')
    """
    if not numbers:
        return NOTHING
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
