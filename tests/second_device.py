"""A second device without hardware: tensors that say they lie there, and what a program makes the CPU wait for.

Numbers lie on the CPU and are computed there, so that everything gives the same bits; torch is told another device.
Every operation is looked at: one that gives numbers of the device to Python or to the CPU, or whose result has a size
that only the numbers tell, is a host round trip; one that mixes numbers of both devices, which a GPU refuses, is mixed.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("lazy:0")
"""A kind that torch knows by name and has no kernels for."""

aten = torch.ops.aten

WAITS = {
    *(aten._local_scalar_dense.default, aten.equal.default, aten.is_nonzero.default, aten.nonzero.default),
    *(aten._unique2.default, aten.unique_dim.default, aten.masked_select.default, aten.bincount.default),
    *(aten.repeat_interleave.Tensor,),
}
"""Operations whose result, or its size, the CPU has to wait for."""


class Visits:
    """What was found: round trips and mixed operations, by the function of the package that own for them."""

    def __init__(self) -> None:
        self.trips: set[str] = set()
        self.mixed: set[str] = set()

    def note(self, kind: set[str], operation: object) -> None:
        package = [
            frame
            for frame in traceback.extract_stack()
            if "/lengthwise/" in frame.filename and not frame.name.startswith("<")
        ]
        own = package[-1] if package else None
        name = "torch" if own is None else f"{own.filename.rpartition('/lengthwise/')[2]}:{own.name}"
        kind.add(name if kind is self.trips else f"{name} ({operation})")


_visits: list[Visits] = []


class OnDevice(Tensor):
    """A tensor that says it lies on the second device; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "OnDevice":
        made = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})

    def __repr__(self) -> str:  # type: ignore[override]
        return f"OnDevice({tuple(self.shape)})"

    def tolist(self) -> Any:
        _visits[-1].note(_visits[-1].trips, "tolist")
        return self.held.tolist()


class _Operations(TorchDispatchMode):
    """Sees what no tensor of the device takes part in: what is moved there, or made there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Literals(TorchFunctionMode):
    """`torch.tensor` makes its numbers where no other mode sees them: they are made on the CPU, then moved."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func is torch.tensor and torch.device(named.get("device") or "cpu").type == DEVICE.type:
            return func(*args, **{**named, "device": "cpu"}).to(DEVICE)
        return func(*args, **named)


@contextmanager
def second_device() -> Iterator[Visits]:
    """Within it there is a second device, and what the program does with it is written down."""
    visits = Visits()
    _visits.append(visits)
    fused = "torch.optim.optimizer._get_fused_kernels_supported_devices"
    try:
        with mock.patch(fused, return_value=["cpu", DEVICE.type]), _Operations(), _Literals():
            yield visits
    finally:
        _visits.pop()


def _run(func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    target = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [tensor for tensor in tensors if isinstance(tensor, OnDevice)]
    if not there and (target is None or target.type != DEVICE.type):
        return func(*args, **kwargs)
    is_fetched = _is_fetched(func, args, target)
    if there:
        visits = _visits[-1]
        by_mask = func in (aten.index.Tensor, aten.index_put_.default, aten.index_put.default) and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if func in WAITS or is_fetched or by_mask:
            visits.note(visits.trips, func)
        copies = func in (aten.copy_.default, aten._to_copy.default)
        if not copies and any(tensor.ndim and not isinstance(tensor, OnDevice) for tensor in tensors):
            visits.note(visits.mixed, func)
    made = {**kwargs, "device": torch.device("cpu")} if target is not None else dict(kwargs)
    held = func(*tree_map_only(OnDevice, _held, args), **tree_map_only(OnDevice, _held, made))
    if is_fetched:
        return args[0] if func is aten.copy_.default else held
    return return_and_correct_aliasing(func, args, kwargs, tree_map_only(Tensor, OnDevice, held))


def _held(tensor: OnDevice) -> Tensor:
    return tensor.held


def _is_fetched(func: Any, args: Any, target: torch.device | None) -> bool:
    """Whether an operation moves numbers from the device to the CPU."""
    if func is aten._to_copy.default:
        return target is not None and target.type == "cpu" and isinstance(args[0], OnDevice)
    return func is aten.copy_.default and not isinstance(args[0], OnDevice) and isinstance(args[1], OnDevice)
