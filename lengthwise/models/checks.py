"""Checks of the arguments of models: symbols, positions, states, and the arguments of constructors."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from lengthwise.conventions import PAD
from lengthwise.devices import SYNCHRONOUS_DEVICES, lowers_precision, on_device_assert
from lengthwise.ops.shapes import check_shape
from lengthwise.validation import check_kind, type_in_words, whole_number, with_article

MAX_STRINGS = 1 << 32
"""The largest number of strings for which a recurrent model makes states; more are probably a mistake."""

InitialState = Callable[[Any, int], Tensor]


def checks_batch_size(initial_state: InitialState) -> InitialState:
    """Make `initial_state` check the number of strings first, except in graphs, where numbers are symbolic."""

    @wraps(initial_state)
    def checked(self: Any, batch_size: Any) -> Tensor:
        if not torch.compiler.is_compiling() and not torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            whole_number("batch_size", batch_size, 0, MAX_STRINGS)
        return initial_state(self, batch_size)

    return checked


def check_made_from(kind: type, config: object, generator: object) -> None:
    """Raise a ValueError unless `config` has type `kind`, and `generator` is a torch.Generator or None."""
    check_kind("config", config, kind, with_article(kind.__name__))
    check_kind("generator", generator, (torch.Generator, type(None)), "a torch.Generator")


def check_state(model: nn.Module, state: Tensor, first: Tensor) -> None:
    """Raise a ValueError unless a state has the shape of `first`, and the dtype of `first` or of a weight of the model.

    While matrix products have lower precision, they may change a state's dtype, so the dtype is not checked.
    """
    way_out = f"begin with model.initial_state({len(first)})"
    check_shape("state", state, first.shape, way_out)
    if state.dtype == first.dtype or lowers_precision():
        return
    if all(state.dtype != parameter.dtype for parameter in model.parameters()):
        raise ValueError(f"state: expected the model's dtype {first.dtype}, got {state.dtype}; {way_out}")


def check_ids(inputs: object) -> None:
    """Raise a ValueError unless the inputs are a tensor of int64 ids [B, T]; exported graphs skip this check."""
    if torch.compiler.is_exporting():
        return
    if not isinstance(inputs, Tensor):
        raise ValueError(
            f"inputs: expected a tensor of ids of symbols [B, T], got {type_in_words(inputs)}; "
            "torch.as_tensor(ids) makes one"
        )
    if inputs.ndim != 2 or inputs.dtype != torch.int64:
        raise ValueError(
            f"inputs: expected ids of symbols [B, T], torch.int64, got {list(inputs.shape)} of {inputs.dtype}; "
            "ids[None] is a batch of one string, and ids.long() converts whole numbers to torch.int64"
        )
    if not len(inputs):
        raise ValueError("inputs: expected at least 1 string, got none; give a batch of one or more strings")
    if not inputs.shape[1]:
        raise ValueError("length: expected at least 1 symbol, got 0; give strings of at least one symbol")


def check_indices(indices: object, inputs: Tensor) -> None:
    """Raise a ValueError unless `indices` contains one position 0 ... T-1 for each string of the inputs [B, T]."""
    batch_size, length = inputs.shape[:2]
    if not isinstance(indices, Tensor) or indices.dtype != torch.int64 or indices.shape != (batch_size,):
        got = f"{list(indices.shape)} of {indices.dtype}" if isinstance(indices, Tensor) else type_in_words(indices)
        raise ValueError(
            f"indices: expected one position of each string, [{batch_size}] of torch.int64, got {got}; give one for "
            "each string"
        )
    inside = (indices >= 0) & (indices < length)
    expected = f"indices: expected positions from 0 to {length - 1}"
    # If the host looked at the numbers, it would have to wait for the device. So the device checks them.
    if indices.device.type not in SYNCHRONOUS_DEVICES:
        on_device_assert(inside, f"{expected}, got other positions; count from 0")
    elif not inside.all():
        raise ValueError(f"{expected}, got {int(indices[~inside][0])}; count from 0, and from the start of the string")


def check_symbols(inputs: Int64[Tensor, "B T"], num_symbols: int, *, accepts_pads: bool) -> None:
    """Raise a ValueError unless the inputs are strings of symbols 0 ... num_symbols - 1 and, if accepted, pads.

    While a graph is exported, nothing is checked, because its tensors have no values yet.
    """
    if torch.compiler.is_exporting():
        return
    check_ids(inputs)
    lowest = PAD if accepts_pads else 0
    # If the host looked at the numbers, it would have to wait for the device. So the device checks them.
    if inputs.device.type not in SYNCHRONOUS_DEVICES:
        expected = (
            f"inputs: expected symbol ids in {lowest}..{num_symbols - 1}, got other numbers; encode strings "
            "with task.encode of the model's own task"
        )
        on_device_assert((lowest <= inputs) & (inputs < num_symbols), expected)
        return
    # One pass finds the smallest and the largest id, because each pass costs as much as a step of a fast
    # `TransducerModel`.
    low, high = map(int, inputs.aminmax())
    if not lowest <= low <= high < num_symbols:
        or_pad = f" or the pad {PAD}" if accepts_pads else ""
        way_out = "encode strings with task.encode of the model's own task"
        if low == PAD and not accepts_pads and high < num_symbols:
            way_out = f"{PAD} is the pad, which fills up shorter strings of a batch; use a model that reads pads"
        raise ValueError(
            f"inputs: expected symbol ids in 0..{num_symbols - 1}{or_pad}, got ids in {low}..{high}; {way_out}"
        )
