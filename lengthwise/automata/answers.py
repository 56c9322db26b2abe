"""Pairs of answer names that mean "rejected" and "accepted"."""

from collections.abc import Sequence, Set

REJECT_ACCEPT = ("reject", "accept")
"""The answers of an automaton: class 0 means rejected, and class 1 means accepted."""

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
"""Pairs of lower-case names that mean rejected and accepted. A machine may list the two names in either order."""

COMMON_PAIRS = frozenset(
    {
        *((name, "ok") for name in ("fail", "failed", "error", "nok")),
        *((name, "normal") for name in ("anomaly", "anomalous", "abnormal")),
        ("fail", "pass"),
        ("failed", "passed"),
        ("failure", "success"),
        ("bad", "good"),
        ("incorrect", "correct"),
        ("wrong", "right"),
    }
)
"""Pairs of labels in logs. They mean reject and accept only for a machine that is known to be an automaton."""


def accepting_index(classes: Sequence[str], pairs: Set[tuple[str, str]] = REJECT_ACCEPT_PAIRS) -> int | None:
    """Return the index of the class that means "accepted", or None if `pairs` does not contain the two classes."""
    lower = tuple(name.lower() for name in classes)
    return 1 if lower in pairs else 0 if lower[::-1] in pairs else None


def acceptor_index(classes: Sequence[str]) -> int | None:
    """Return the index of the class that means "accepted"; None unless the two classes mean rejected and accepted.

    The pairs of log labels in `COMMON_PAIRS` also count here, unlike in `accepting_index`. So this function is only
    for machines that are known to be automata.

    Example:
        >>> acceptor_index(("OK", "FAIL")), accepting_index(("OK", "FAIL")), acceptor_index(("even", "odd"))
        (0, None, None)
    """
    return accepting_index(classes, REJECT_ACCEPT_PAIRS | COMMON_PAIRS)
