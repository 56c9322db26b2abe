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

NUM_CALLS = 100
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
    for found in _left_alone:
        found.__no_type_check__ = False
    _left_alone.clear()
    jaxtyping.config.update("jaxtyping_disable", not is_checked)


def _leave_alone(function: Callable[..., Any]) -> None:
    """Check no more calls of the function that stands in this one's module under its name; one inside another stays."""
    found: Any = sys.modules[function.__module__]
    for name in function.__qualname__.split("."):
        found = getattr_static(found, name, None)
    while isinstance(found, property | staticmethod | classmethod) or hasattr(found, "__wrapped__"):
        found = found.fget if isinstance(found, property) else found.__wrapped__
    if callable(found):
        found.__no_type_check__ = True  # that of `typing.no_type_check`, which jaxtyping asks for at each call
        _left_alone.append(found)
