"""Checks that shapes of tensors fit together. Without these checks, kernels could read memory outside of a tensor."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from types import NoneType
from typing import Any, NamedTuple, ParamSpec, TypeVar, get_args

import torch
from torch import Tensor

from lengthwise.devices import SYNCHRONOUS_DEVICES
from lengthwise.validation import type_in_words

Given = ParamSpec("Given")
Result = TypeVar("Result")


TO_TENSOR = "make a tensor of it with torch.as_tensor"


class Axis(NamedTuple):
    """An axis of an annotated shape. Its size is the size that `letter` stands for, plus `more`.

    Axis `P+1` has letter P and `more` 1.
    """

    letter: str
    more: int = 0


def check_shapes(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function compare the shapes of its tensors with its annotations before it runs.

    Axes with the same letter must have the same size, and T, the number of positions, must not be 0. Axes such as
    `_` and `*N` are not supported. Arguments without a shape in their annotation are not checked. Arguments annotated
    as `Float` must contain real numbers, and arguments annotated as `Int64` whole numbers. A check takes a few
    microseconds. Exported graphs contain no checks.

    Raises:
        ValueError: a shape does not fit the shapes of the arguments before it, or a tensor contains numbers of another
            kind. The returned function raises this error.

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
    optional = {name for name in expected if NoneType in get_args(hints[name])}
    letters = {axis.letter for axes in expected.values() for axis in axes}
    constants = {letter: int(letter) for letter in letters if letter.isdigit()}
    checks = {name: check for name in expected if (check := _check_of_numbers(hints[name]))}

    @wraps(function)
    def run(*given: Given.args, **named: Given.kwargs) -> Result:
        if not torch.compiler.is_exporting():  # in an export, sizes may be symbols instead of numbers
            by_name: dict[str, Any] = {**dict(zip(names, given, strict=False)), **named}
            by_name = {name: value for name, value in by_name.items() if value is not None or name not in optional}
            _check(expected, by_name, dict(constants))
            for name, check in checks.items():
                if name in by_name:
                    check(name, by_name[name])
        return function(*given, **named)

    return run


def check_tensors(**given: object) -> None:
    """Raise a ValueError that names the first argument that is not a tensor.

    A function that compares shapes by itself calls `check_tensors` first. Only types are read.

    Example:
        >>> check_tensors(inputs=torch.ones(2), kernels=[1.0, 2.0])
        Traceback (most recent call last):
        ValueError: kernels: expected a tensor, got a list; make a tensor of it with torch.as_tensor
    """
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: expected a tensor, got {type_in_words(value)}; {TO_TENSOR}")


def check_optional_tensors(**given: object) -> None:
    """Raise a ValueError that names the first argument that is neither None nor a tensor."""
    check_tensors(**{name: value for name, value in given.items() if value is not None})


def check_axes(name: str, tensor: Tensor, axes: str) -> None:
    """Raise a ValueError, with the argument's name, if the tensor does not have the axes in `axes`, as in "B, T"."""
    count = axes.count(",") + 1
    if tensor.ndim != count:
        raise ValueError(f"{name}: expected shape [{axes}], got {list(tensor.shape)}; reshape it to {count} axes")


def check_shape(name: str, tensor: Tensor, shape: Sequence[int], way_out: str) -> None:
    """Raise a ValueError, with the argument's name and `way_out`, if the tensor does not have the given shape."""
    if tuple(tensor.shape) != tuple(shape):
        raise ValueError(f"{name}: expected shape {list(shape)}, got {list(tensor.shape)}; {way_out}")


def check_broadcast(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Raise a ValueError, with both arguments' names, unless the shapes of two tensors fit by broadcasting."""
    # Proofs check each operation on intervals, and `torch.broadcast_shapes` takes as long as such an operation.
    sizes = zip(tensor.shape[::-1], other.shape[::-1], strict=False)  # an axis that one shape lacks fits any size
    if tensor.shape != other.shape and any(one != another and 1 not in (one, another) for one, another in sizes):
        raise ValueError(
            f"{name}: expected a shape that fits {list(other.shape)}, the shape of {other_name}, got "
            f"{list(tensor.shape)}; make the sizes equal, or 1"
        )


def check_real(name: str, tensor: Tensor) -> None:
    """Raise a ValueError, with the argument's name, unless the tensor's numbers are real, such as float32."""
    if not tensor.is_floating_point():
        raise ValueError(f"{name}: expected real numbers, got {tensor.dtype}; convert them with Tensor.float")


def check_whole(name: str, tensor: Tensor) -> None:
    """Raise a ValueError, with the argument's name, unless the tensor's numbers are indices, such as int64."""
    if tensor.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name}: expected whole numbers, got {tensor.dtype}; convert them with Tensor.long")


def values_outside(tensor: Tensor, low: int, high: int) -> str:
    """Return the range of the values, such as ``-1..3``, if a value is below `low` or above `high`, and else "".

    On a device that would have to wait for the values, they are not compared.
    """
    if tensor.device.type not in SYNCHRONOUS_DEVICES or not tensor.numel():
        return ""
    lowest, highest = (int(end) for end in tensor.aminmax())
    return "" if low <= lowest <= highest <= high else f"{lowest}..{highest}"


def check_one_dtype(**given: Tensor) -> None:
    """Raise a ValueError, with the arguments' names, unless all tensors have the same real dtype."""
    dtypes = {tensor.dtype for tensor in given.values()}
    if len(dtypes) > 1 or not next(iter(dtypes)).is_floating_point:
        *names, last = given
        got = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(
            f"dtypes: expected one real dtype for {', '.join(names)} and {last}, got {got}; convert them with Tensor.to"
        )


def check_strings(name: str, tensor: Tensor) -> None:
    """Raise a ValueError, with the argument's name, unless the tensor contains symbol indices [B, T] with T >= 1."""
    check_axes(name, tensor, "B, T")
    if tensor.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name}: expected whole numbers (torch.int64), got {tensor.dtype}; give the index of each symbol"
        )
    if not tensor.shape[1]:
        raise ValueError(f"{name}: expected at least 1 step, got 0; give strings of at least one symbol")


def check_tensor_list(name: str, value: object) -> None:
    """Raise a ValueError unless the argument is a list, tuple or other collection of tensors."""
    if isinstance(value, Tensor) or not isinstance(value, Iterable):
        got = "one tensor" if isinstance(value, Tensor) else type_in_words(value)
        raise ValueError(f"{name}: expected a list or tuple of tensors, got {got}; put the tensors into a list")
    for index, each in enumerate(value):
        if not isinstance(each, Tensor):
            got = type_in_words(each)
            raise ValueError(f"{name}: expected tensors, got {got} at index {index}; {TO_TENSOR}")


def _axes(hint: Any) -> list[Axis]:
    """Return the axes of a jaxtyping annotation, or of a union's first jaxtyping annotation; return [] for others."""
    for each in (hint, *get_args(hint)):
        if text := getattr(each, "dim_str", ""):
            parts = [axis.partition("+") for axis in text.split()]
            return [Axis(letter, int(more or 0)) for letter, _, more in parts]
    return []


def _check_of_numbers(hint: Any) -> Callable[[str, Tensor], None] | None:
    """Return the check of the numbers of an annotated tensor, or None if the annotation allows several kinds."""
    kinds = [getattr(each, "dtype", None) for each in get_args(hint) or (hint,) if each is not NoneType]
    name = getattr(kinds[0], "__name__", "") if len(kinds) == 1 else ""
    return {"Float": check_real, "Int64": check_whole}.get(name)


def _check(expected: Mapping[str, list[Axis]], given: Mapping[str, Any], sizes: dict[str, int]) -> None:
    for name, axes in expected.items():
        if name not in given:  # an optional argument
            continue
        tensor = given[name]
        if not isinstance(tensor, Tensor):
            letters = ", ".join(axis.letter for axis in axes)
            got = type_in_words(tensor)
            raise ValueError(f"{name}: expected a tensor of shape [{letters}], got {got}; {TO_TENSOR}")
        shape = tensor.shape
        if len(shape) != len(axes):
            raise ValueError(_sentence(name, expected, sizes, tensor))
        for (letter, more), size in zip(axes, shape, strict=True):
            if sizes.setdefault(letter, size - more) != size - more:
                raise ValueError(_sentence(name, expected, sizes, tensor))
    if not sizes.get("T", 1):
        name = next(name for name, axes in expected.items() if any(axis.letter == "T" for axis in axes))
        raise ValueError(f"{name}: expected at least 1 position, got 0; give tensors with at least one position")


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
