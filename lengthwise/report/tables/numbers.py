"""Numbers as a reader sees them."""

from collections.abc import Sequence

from lengthwise.display import NOTHING as NOTHING
from lengthwise.display import percent as percent


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
