"""Names of answers that say whether a string is accepted."""

from collections.abc import Sequence

REJECT_ACCEPT = ("reject", "accept")
"""The answers of an automaton."""

REJECT_ACCEPT_PAIRS = frozenset(
    {
        REJECT_ACCEPT,
        ("rejected", "accepted"),
        ("out", "in"),
        ("no", "yes"),
        ("false", "true"),
        ("0", "1"),
        ("-", "+"),
        ("invalid", "valid"),
        ("negative", "positive"),
    }
)
"""Names of two answers that say whether a string is accepted, in any case and order."""


def accepting_index(classes: Sequence[str]) -> int | None:
    """Which of the names says "accepted"; None where they are others than those of `REJECT_ACCEPT_PAIRS`."""
    lower = tuple(name.lower() for name in classes)
    if lower in REJECT_ACCEPT_PAIRS:
        return 1
    return 0 if lower[::-1] in REJECT_ACCEPT_PAIRS else None
