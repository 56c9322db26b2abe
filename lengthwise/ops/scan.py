r"""Prefix scans of any associative operator: the definition, and a scan with logarithmically many steps.

Elements are tuples of tensors with time in dimension 1 and any other dimensions. ``operator(earlier, later)`` combines
the elements of two such tuples at each time. For elements x_1 ... x_T and the operator *, the prefixes are

    y_1 = x_1,   y_t = y_{t-1} * x_t.

The definition takes T steps. `scan` takes about 2 log_2 T steps with fewer than 2 T products. It combines adjacent
elements, scans the sequence of half the length, and computes each remaining prefix by one more product. The
operator need only be associative, and T need not be a power of two.

Source: Blelloch, "Prefix sums and their applications" (1990).
Differs from Fan et al. (2024), section 3.4 and appendix A.2: each of their log_2 T steps multiplies T / 2 matrices.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lengthwise.ops.shapes import check_tensor_list
from lengthwise.validation import check_function

Elements = tuple[Tensor, ...]
Operator = Callable[[Elements, Elements], Elements]


def scan_by_definition(operator: Operator, elements: Elements) -> Elements:
    """Return all prefixes x_1 * ... * x_t for the operator *, computed one after another.

    Example:
        >>> (sums,) = scan_by_definition(lambda one, other: (one[0] + other[0],), (torch.arange(5)[None],))
        >>> sums.tolist()
        [[0, 1, 3, 6, 10]]
    """
    _check(operator, elements)
    latest = _at(elements, slice(0, 1))
    prefixes = [latest]
    for t in range(1, elements[0].shape[1]):
        latest = operator(latest, _at(elements, slice(t, t + 1)))
        prefixes.append(latest)
    return tuple(torch.cat(parts, 1) for parts in zip(*prefixes, strict=True))


def scan(operator: Operator, elements: Elements) -> Elements:
    """Return all prefixes x_1 * ... * x_t for an associative operator *, in about 2 log_2 T steps.

    Example:
        >>> (sums,) = scan(lambda one, other: (one[0] + other[0],), (torch.arange(5)[None],))
        >>> sums.tolist()
        [[0, 1, 3, 6, 10]]
    """
    _check(operator, elements)
    length = elements[0].shape[1]
    if length == 1:
        return elements
    first = _at(elements, slice(0, 1))
    # Associativity allows joining adjacent elements before the prefix to their left is known.
    pairs = operator(_at(elements, slice(0, length - 1, 2)), _at(elements, slice(1, length, 2)))
    at_even = scan(operator, pairs)  # prefixes of 2, 4, ... elements
    # For two elements, the second prefix is the pair itself, so only the first prefix is missing.
    if length == 2:
        at_odd = first
    else:
        count = (length - 1) // 2
        at_odd = operator(_at(at_even, slice(0, count)), _at(elements, slice(2, length, 2)))
        at_odd = tuple(torch.cat(parts, 1) for parts in zip(first, at_odd, strict=True))
    return tuple(interleaved(odd, even) for odd, even in zip(at_odd, at_even, strict=True))


def interleaved(first: Tensor, second: Tensor) -> Tensor:
    """Interleave two tensors along dimension 1; `first` may have one entry more than `second`."""
    joined = first.new_empty((first.shape[0], first.shape[1] + second.shape[1], *first.shape[2:]))
    joined[:, ::2], joined[:, 1::2] = first, second
    return joined


def _check(operator: Operator, elements: Elements) -> None:
    check_function("operator", operator)
    check_tensor_list("elements", elements)
    # A tensor without dimension 1 has the length 0.
    lengths = {element.shape[1] if element.ndim > 1 else 0 for element in elements}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            "elements: expected tensors with an equal size of at least 1 in dimension 1 (time), got sizes "
            f"{sorted(lengths)}; give each tensor the same number of steps"
        )


def _at(elements: Elements, positions: slice) -> Elements:
    return tuple(element[:, positions] for element in elements)
