"""Shapes and types are checked in the first calls of each function in each test.

A check takes 40 microseconds, and a certificate calls the same few functions ten thousands of times: checking all of
these calls took three times as long as the certificate.
"""

import re
import sys
from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import jaxtyping
from beartype import beartype

NUM_CALLS = 3
"""Calls of a function that are checked in each test."""

_counts: dict[Callable[..., Any], int] = {}
_left_alone: list[Any] = []


def first_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return beartype's checks of a function, which are made when they are first needed.

    jaxtyping asks for two functions: one gets the arguments before a call, the other also gets the result after it.
    Sizes of the arguments stay known in between, so the second function need not check the arguments again.
    """
    if _has_result(function):
        function.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if name == "return"}
    checked = None

    def check(*arguments: Any, **named: Any) -> Any:
        nonlocal checked
        checked = checked or beartype(function)
        _counts[function] = _counts.get(function, 0) + 1
        if _counts[function] == NUM_CALLS:
            _leave_alone(function)
        return checked(*arguments, **named)

    return check


def _has_result(function: Callable[..., Any]) -> bool:
    """Return whether the last argument is the result of a call, which jaxtyping names `ret0`, `ret1` and so on."""
    code = function.__code__
    last = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount][-1:]
    return code.co_kwonlyargcount > 0 and re.fullmatch(r"ret\d+", last[0]) is not None


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
