"""A share of a sweep's runs, which one task of a scheduler's job array executes."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from lengthwise.validation import check_kind

T = TypeVar("T")


class Shard(NamedTuple):
    """Share `number` (from 1) of `total` shares of a sweep's runs; all shares together contain each run once."""

    number: int
    total: int

    def select(self, everything: Sequence[T]) -> list[T]:
        """Return every `total`-th item, so that all shares of a list that is sorted by cost take about the same time.

        Example:
            >>> Shard(1, 3).select("abcdefg"), Shard(3, 3).select("abcdefg")
            (['a', 'd', 'g'], ['c', 'f'])
        """
        # Items are taken in turn and not in blocks, because a last block of the largest runs would take most of the
        # time.
        return list(everything[self.number - 1 :: self.total])


def parse_shard(text: str) -> Shard:
    """Parse a share such as ``2/3``, the second of three; any other text raises a ValueError.

    Example:
        >>> parse_shard("2/3")
        Shard(number=2, total=3)
    """
    check_kind("shard", text, str, "a share such as 2/3")
    index, slash, count = text.partition("/")
    numbers = [int(part) if part.isdecimal() and len(part) < 10 else 0 for part in (index, count)]
    if not (slash and 1 <= numbers[0] <= numbers[1]):
        raise ValueError(
            f"shard: expected I/N with I from 1 to N, got {text[:40]!r}; for the second of three shards, give 2/3"
        )
    return Shard(*numbers)
