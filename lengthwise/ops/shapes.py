"""A check that the shapes of tensors fit together. Otherwise, some kernels would read memory outside of the tensors."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_args

import torch
from torch import Tensor

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Axis(NamedTuple):
    """An axis of an annotated shape. Its size is the size that `letter` stands for, plus `more`.

    Axis `P+1` has letter P and `more` 1.
    """

    letter: str
    more: int = 0


def check_shapes(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function compare the shapes of its tensors with its annotations before it runs.

    Axes with the same letter must have the same size, and T, the number of positions, must not be 0. Axes such as
    `_` and `*N` are not supported. Arguments without a shape in their annotation are not checked. A check takes a few
    microseconds, and an exported graph contains none.

    Raises:
        ValueError: a shape does not fit the shapes of the arguments before it. The returned function raises this error.

    Example:
        >>> from jaxtyping import Float
        >>> @check_shapes
        ... def weighted(values: Float[Tensor, "B T"], weights: Float[Tensor, "T"]) -> Tensor:
        ...     return values @ weights
        >>> weighted(torch.ones(2, 3), torch.ones(4))
        Traceback (most recent call last):
        ValueError: weights: expected shape [3] (T as in values), got [4]; give tensors whose shapes fit together
    """
    names = list(signature(function).parameters)
    hints = function.__annotations__
    expected = {name: axes for name in names if (axes := _axes(hints.get(name)))}
    letters = {axis.letter for axes in expected.values() for axis in axes}
    constants = {letter: int(letter) for letter in letters if letter.isdigit()}

    @wraps(function)
    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        if not torch.compiler.is_exporting():  # sizes are symbols there
            _check(expected, {**dict(zip(names, given, strict=False)), **named}, dict(constants))
        return function(*given, **named)

    return run


def _axes(hint: Any) -> list[Axis]:
    """Return the axes of a jaxtyping annotation, or of the first one in a union; return [] for other annotations."""
    for each in (hint, *get_args(hint)):
        if text := getattr(each, "dim_str", ""):
            parts = [axis.partition("+") for axis in text.split()]
            return [Axis(letter, int(more or 0)) for letter, _, more in parts]
    return []


def _check(expected: Mapping[str, list[Axis]], given: Mapping[str, Any], sizes: dict[str, int]) -> None:
    for name, axes in expected.items():
        tensor = given.get(name)
        if tensor is None:  # an optional argument
            continue
        if not isinstance(tensor, Tensor):
            letters = ", ".join(axis.letter for axis in axes)
            got = type(tensor).__name__
            raise ValueError(f"{name}: expected a tensor of shape [{letters}], got a {got}; give a tensor")
        shape = tensor.shape
        if len(shape) != len(axes):
            raise ValueError(_sentence(name, expected, sizes, tensor))
        for (letter, more), size in zip(axes, shape, strict=True):
            if sizes.setdefault(letter, size - more) != size - more:
                raise ValueError(_sentence(name, expected, sizes, tensor))
    if not sizes.get("T", 1):
        name = next(name for name, axes in expected.items() if any(axis.letter == "T" for axis in axes))
        raise ValueError(f"{name}: expected at least 1 position, got 0; a string must not be empty")


def _sentence(name: str, expected: Mapping[str, list[Axis]], sizes: Mapping[str, int], tensor: Tensor) -> str:
    earlier = list(expected)[: list(expected).index(name)]
    # Only earlier tensors determine the expected size of a letter, not this tensor itself.
    known = {axis.letter: other for other in reversed(earlier) for axis in expected[other]}
    axes = [axis.letter + (f"+{axis.more}" if axis.more else "") for axis in expected[name]]
    fitting = [
        str(sizes[axis.letter] + axis.more) if axis.letter in known or axis.letter.isdigit() else text
        for axis, text in zip(expected[name], axes, strict=True)
    ]
    sources = dict.fromkeys(known[axis.letter] for axis in expected[name] if axis.letter in known)
    source = f" ({' '.join(axes)} as in {' and '.join(sources)})" if sources else ""
    return (
        f"{name}: expected shape [{', '.join(fitting)}]{source}, got {list(tensor.shape)}; "
        "give tensors whose shapes fit together"
    )
