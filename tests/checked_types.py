"""Shapes and types are checked in the first calls of each function in each test.

A check takes 40 microseconds, and a certificate calls the same few functions ten thousands of times: checking all of
these calls took three times as long as the certificate.
"""

import sys
from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import jaxtyping
from beartype import beartype

NUM_CALLS = 10
"""Calls of a function that are checked in each test."""

_counts: dict[Callable[..., Any], int] = {}
_left_alone: list[Any] = []


def first_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """Beartype's checks of a function; jaxtyping asks for two, of arguments alone and of what is returned, too.

    They are made when they are first needed: most workers never call most functions.
    """
    checked = None

    def check(*arguments: Any, **named: Any) -> Any:
        nonlocal checked
        checked = checked or beartype(function)
        _counts[function] = _counts.get(function, 0) + 1
        if _counts[function] == NUM_CALLS:
            _leave_alone(function)
        return checked(*arguments, **named)

    return check


def begin(*, is_checked: bool) -> None:
    """Begin a test, whose calls are checked or not."""
    _counts.clear()
    for current in _left_alone:
        current.__no_type_check__ = False
    _left_alone.clear()
    jaxtyping.config.update("jaxtyping_disable", not is_checked)


def _leave_alone(function: Callable[..., Any]) -> None:
    """Check no more calls of the function that stands in this one's module under its name; one inside another stays."""
    current: Any = sys.modules[function.__module__]
    for name in function.__qualname__.split("."):
        current = getattr_static(current, name, None)
    while isinstance(current, property | staticmethod | classmethod) or hasattr(current, "__wrapped__"):
        current = current.fget if isinstance(current, property) else current.__wrapped__
    if callable(current):
        current.__no_type_check__ = True  # that of `typing.no_type_check`, which jaxtyping asks for at each call
        _left_alone.append(current)
