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

COMMON_PAIRS = frozenset(
    {
        ("fail", "ok"),
        ("failed", "ok"),
        ("error", "ok"),
        ("nok", "ok"),
        ("fail", "pass"),
        ("failed", "passed"),
        ("failure", "success"),
        ("anomaly", "normal"),
        ("anomalous", "normal"),
        ("abnormal", "normal"),
        ("bad", "good"),
        ("incorrect", "correct"),
        ("wrong", "right"),
    }
)
"""Labels of logs that are taken for reject and accept only where a machine must be an automaton."""


def accepting_index(classes: Sequence[str]) -> int | None:
    """Which of the names says "accepted"; None where they are others than those of `REJECT_ACCEPT_PAIRS`."""
    lower = tuple(name.lower() for name in classes)
    if lower in REJECT_ACCEPT_PAIRS:
        return 1
    return 0 if lower[::-1] in REJECT_ACCEPT_PAIRS else None


def acceptor_index(classes: Sequence[str]) -> int | None:
    """Return which of the names says "accepted" in a machine that must be an automaton; None if neither does.

    Example:
        >>> acceptor_index(("OK", "FAIL")), accepting_index(("OK", "FAIL")), acceptor_index(("even", "odd"))
        (0, None, None)
    """
    lower = tuple(name.lower() for name in classes)
    for index, pair in ((1, lower), (0, lower[::-1])):
        if pair in REJECT_ACCEPT_PAIRS or pair in COMMON_PAIRS:
            return index
    return None
