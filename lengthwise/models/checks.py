"""Checks of the arguments of a model's constructor and of its methods for states."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from lengthwise.conventions import Diverged
from lengthwise.devices import lowers_precision
from lengthwise.models.containers import first_line
from lengthwise.ops.shapes import check_shape, check_tensors
from lengthwise.validation import check_kind, whole_number, with_article

MAX_STRINGS = 1 << 32
"""The largest number of strings for which a recurrent model makes states; more are probably a mistake."""

InitialState = Callable[[Any, int], Tensor]


def checks_batch_size(initial_state: InitialState) -> InitialState:
    """Wrap `initial_state`, so that the number of strings is checked first, except in graphs, where it is a symbol."""

    @wraps(initial_state)
    def checked(self: Any, batch_size: Any) -> Tensor:
        if not torch.compiler.is_compiling() and not torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            whole_number("batch_size", batch_size, 0, MAX_STRINGS)
        return initial_state(self, batch_size)

    return checked


def check_made_from(kind: type, config: object, generator: object) -> None:
    """Raise a ValueError unless a constructor's arguments are a configuration of this kind, and a generator or None."""
    check_kind("config", config, kind, with_article(kind.__name__))
    check_kind("generator", generator, (torch.Generator, type(None)), "a torch.Generator")


def check_state(model: nn.Module, state: Tensor, first: Tensor) -> None:
    """Raise a ValueError unless a state has the shape of the first state, and the dtype of this state or of a weight.

    A product of lower precision may change the dtype of a state, so its dtype is then not checked.
    """
    way_out = f"begin with initial_state({len(first)})"
    check_shape("state", state, first.shape, way_out)
    if state.dtype == first.dtype or lowers_precision():
        return
    if all(state.dtype != parameter.dtype for parameter in model.parameters()):
        raise ValueError(f"state: expected the model's dtype {first.dtype}, got {state.dtype}; {way_out}")


def logits_from(readout: nn.Module, states: object) -> Tensor:
    """Return the logits that a read-out computes; raise a ValueError for states that the read-out cannot read.

    Only the read-out itself determines which shapes and dtypes it can read.
    """
    check_tensors(states=states)
    try:
        logits: Tensor = readout(states)
    except (Diverged, torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except (RuntimeError, IndexError) as problem:
        got = f"{states.dtype} {list(states.shape)} ({first_line(problem)})"  # type: ignore[attr-defined]  # a tensor
        raise ValueError(
            f"states: expected hidden states that the model's read-out can read, got {got}; give states as last_state "
            "returns them"
        ) from problem
    return logits
